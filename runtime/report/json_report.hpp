#pragma once

#include <cstddef>
#include <string>

#include <nlohmann/json.hpp>

#include "runtime/fold/run_model.hpp"
#include "runtime/judge/judge.hpp"

namespace mp::trace {

inline constexpr int kJsonReportVersion = 1;

struct JsonLimits {
    // Records of steps that are listed. A longer run lists every n-th step; "steps_every" says n, and sums
    // are over all steps in any case.
    std::size_t step_records = 100'000;
};

// The run as a JSON value, keys in a fixed order: docs/report.schema.json. A number that JSON cannot hold is null, and
// the same key with "_hex" says "nan", "inf" or "-inf"; losses have both always, null where there is none. Depth is at
// most 6. Needs a model with tables.
nlohmann::ordered_json json_report(const RunModel&, const Judgement&, const JsonLimits& = {});

// As text in ASCII, ending in a newline; bytes of names that are no UTF-8 become U+FFFD.
std::string json_text(const nlohmann::ordered_json& report);

}  // namespace mp::trace
