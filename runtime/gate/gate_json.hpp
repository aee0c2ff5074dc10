#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace mp::trace {

// One line. Invalid UTF-8 is replaced.
std::string written(const nlohmann::ordered_json&);

}  // namespace mp::trace
