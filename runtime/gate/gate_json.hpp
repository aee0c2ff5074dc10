#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace mp::trace {

// One line; bytes that are no UTF-8 are replaced.
std::string written(const nlohmann::ordered_json&);

}  // namespace mp::trace
