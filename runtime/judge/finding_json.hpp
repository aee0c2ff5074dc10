#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "runtime/judge/finding.hpp"

// Findings as JSON values, for the reports and for the gate. Ranks, steps and numbers that are not known are null. A
// number that JSON cannot hold is null, and the same key with "_hex" holds "nan", "inf" or "-inf".

namespace mp::trace {

using Json = nlohmann::ordered_json;

void put_number(Json& into, const std::string& key, double value);
Json known(Rank);
Json known(Step);
Json known_device(int);
Json finding_entry(const Finding&);

}  // namespace mp::trace
