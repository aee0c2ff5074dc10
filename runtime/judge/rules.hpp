#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/judge/judge.hpp"

// The rules, each a function from the model to findings. Internal to runtime/judge.

namespace mp::trace {

// The input of every rule, and the judgement that rules add to.
struct Case {
    const RunModel& model;
    const Limits& limits;
    Judgement& out;
};

Finding finding(std::string_view rule, Severity);
// As finding(), with the place of an op.
Finding finding_at(std::string_view rule, Severity, const OpRecord&);
std::string place_text(const OpRecord&);  // "blocks.2.fc2 addmm forward bf16", escaped
bool has_twin(const RunModel&);           // mode step or trajectory
// "steps 17, 34, 35 and 4 more"
std::string step_list(const std::vector<Step>&);

// Whether the NaN that the op made is in the twin too. Precision is then not its cause.
bool shared_with_twin(const OpSum&, const RunModel&);
// Whether the op made its non-finite value in the scaled part of a skipped step. The rules of skips judge it then.
bool left_to_the_skips(const OpSum&, const std::vector<SkipVerdict>&);

void judge_nonfinite(Case&);   // MPT001
void judge_skips(Case&);       // MPT002, MPT003, MPT004; needs out.skips
void judge_sums(Case&);        // MPT012; call it before judge_ops, which omits the places it reported
void judge_ops(Case&);         // MPT010, MPT011
void judge_amplified(Case&);   // MPT013
void judge_range(Case&);       // MPT030, MPT031
void judge_updates(Case&);     // MPT040
void judge_reductions(Case&);  // MPT050, MPT051
void judge_coverage(Case&);    // inconclusive, not_run

}  // namespace mp::trace
