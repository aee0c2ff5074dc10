#pragma once

#include <cstddef>
#include <string>

#include <nlohmann/json.hpp>

#include "runtime/fold/run_model.hpp"
#include "runtime/judge/judge.hpp"
#include "runtime/trace/reader.hpp"

namespace mp::trace {

inline constexpr int kJsonReportVersion = 1;

struct JsonLimits {
    // Records of steps that are listed. A longer run lists every n-th step; "steps_every" says n, and sums
    // are over all steps in any case.
    std::size_t step_records = 100'000;
};

// The run as a JSON value, keys in a fixed order. A number that JSON cannot hold is null, and the same key
// with "_hex" says "nan", "inf" or "-inf"; losses have both always, null where there is none. Depth is at most 6.
nlohmann::ordered_json json_report(const Run&, const JsonLimits& = {});

// The same with what the run was judged to be: "verdict", "findings", "layers" and the rest of
// docs/report.schema.json. "collectives" then also holds their errors.
nlohmann::ordered_json json_report(const Run&, const RunModel&, const Judgement&, const JsonLimits& = {});

// As text in ASCII, ending in a newline; bytes of names that are no UTF-8 become U+FFFD.
std::string json_text(const nlohmann::ordered_json& report);

}  // namespace mp::trace
