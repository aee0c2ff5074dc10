#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/fold/run_model.hpp"
#include "runtime/judge/finding_json.hpp"
#include "runtime/judge/judge.hpp"

// A folded run and its judgement as JSON values: the parts that the JSON report and the page share.
// Numbers are as in finding_json.hpp. Texts are those of the recording, unescaped.

namespace mp::trace {

// The run in one word. fail: an error was found; inconclusive: no error was found, but too little was observed to rule
// one out; warn: warnings only.
enum class Outcome : std::uint8_t { pass, warn, fail, inconclusive };
Outcome outcome_of(const Judgement&);
std::string_view name_of(Outcome);
// The first cause as a sentence, or a sentence on the observed part without findings. Not escaped.
std::string headline_of(const RunModel&, const Judgement&);

void put_coverage(Json& into, const CoverageSum&);  // fractions are null where nothing was counted
Json verdict_section(const RunModel&, const Judgement&);
Json findings_section(const Judgement&);
Json first_overflow_section(const Judgement&);  // null: there is none
Json layers_section(const RunModel&);           // per layer and phase, its ops inside
int lowest_exponent(const LayerExponents&);     // of the first count
Json exponents_entry(const LayerExponents&);
// Pointers into the model, along depth.
std::vector<const LayerExponents*> exponents_by_depth(const RunModel&);
Json ladder_section(const Judgement&);
Json skips_section(const Judgement&);
Json loss_scale_section(const RunModel&);  // the steps at which it changes
Json dtype_map_section(const RunModel&);
std::string shown_dtype(DType);  // of the map: "bf16", "fp32 (TF32)"
Json checks_section(const Judgement&);
Json collectives_section(const RunModel&);
std::string ranks_text(const RunModel&);  // "2 ranks", "4 ranks in 2 processes"
Json matmuls_section(const RunModel&);
Json times_section(const RunModel&);
Json products_section(const RunModel&);  // whole products, from their sketches; empty with torch
Json figures_section(const RunModel&);   // what they rest on; empty with torch

// The op that the finding names. Null if the finding names no op or the op was not recorded.
const OpSum* op_of(const RunModel&, const Finding&);
const Rung* rung_of(const Judgement&, const Finding&);

}  // namespace mp::trace
