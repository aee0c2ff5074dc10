#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
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
// Like finding(), with the place of an op.
Finding finding_at(std::string_view rule, Severity, const OpRecord&);
std::string place_text(const OpRecord&);  // "blocks.2.fc2 addmm forward bf16", escaped
bool has_twin(const RunModel&);           // mode step or trajectory
// "steps 17, 34, 35 and 4 more"
std::string step_list(const std::vector<Step>&);
// "; and 4 more layers: a, b, c, ..."
std::string others_text(const std::vector<std::string>& layers);

// What the map has of the op's layer and phase, by step; null: nothing, or several steps share a cell.
const std::vector<Cell>* cells_by_step(const RunModel&, const OpRecord&);

// Whether no op of forward came before this one in its step.
bool before_the_first_forward(Step, std::uint64_t ordinal, const RunModel&);
// Whether precision is not the cause of the value that the op made: the twin has it too, or an initialisation drew it
// and it was gone when the model ran.
bool is_harmless(const OpSum&, const RunModel&);
// Whether the op made its non-finite value in the scaled part of a skipped step. The rules of skips judge it then.
bool left_to_the_skips(const OpSum&, const std::vector<SkipVerdict>&, const RunModel&);

LossAgreement agreement_of(const RunModel&, const Limits&);
// Whether no matrix product follows in forward: the op belongs to the criterion, or to the end of the model.
bool near_the_loss(const OpRecord&, const RunModel&);

// The relative error that one rounding of the op's inputs, or of its own results, leaves in its results.
double cost_of_rounding(const OpRecord&, const RunModel&);

using OpPlace = std::tuple<std::string, std::string, Phase>;  // layer, op, phase
OpPlace place_of(const OpRecord&);

// What one rule needs of another is its result.
std::optional<Step> judge_nonfinite(Case&);  // MPT001. The earliest step of its findings
// MPT002, MPT003, MPT004, of out.skips. Ranks that disagree after `first_nonfinite` are a consequence of it.
void judge_skips(Case&, std::optional<Step> first_nonfinite);
std::set<OpPlace> judge_sums(Case&);                         // MPT012. Where it found something
void judge_ops(Case&, const std::set<OpPlace>& swallowing);  // MPT010, MPT011; not there, MPT012 explains it
void judge_totals(Case&, const std::set<OpPlace>& named);    // MPT012 of single values, likewise
void judge_accumulation(
    Case&, const std::set<OpPlace>& named);   // MPT012 of gradients, where judge_sums() found nothing
std::set<std::string> judge_integers(Case&);  // MPT015. The layers whose angles it explains
void judge_amplified(Case&, const std::set<std::string>& explained);  // MPT013; not in these layers
void judge_narrowed(Case&);                                           // MPT014
void judge_gradients(Case&);                                          // MPT026
void judge_parameters(Case&);  // MPT027. After the rules that find causes in the optimizer
void judge_rounded(Case&);     // MPT028
void judge_departure(Case&);   // MPT024, of out.loss. After the rules that find causes
void judge_range(Case&);       // MPT030, MPT031
void judge_updates(Case&);     // MPT040
void judge_scalars(Case&);     // MPT041
// The optimizer state whose small values became 0 where its fp32 twin has a number, and that did most harm.
struct FlushedState {
    const TensorSum* state = nullptr;
    double parameter_error = 0;  // relative, of its parameter
    std::uint64_t others = 0;    // parameters with such a state
    std::string format;          // that lost the values: the state may be stored in a wider one
};
std::optional<FlushedState> flushed_state(const RunModel&);
void judge_state(Case&);  // MPT025
// Whether a sum over ranks made values that are not finite of finite ones. One in a skipped step is judged with it.
bool overflows(const CollectiveTotal&, const Case&);
void judge_reductions(Case&);   // MPT050, MPT051, MPT073, MPT076, MPT077
void judge_copies(Case&);       // MPT061
void judge_scaled_clip(Case&);  // MPT062
void judge_products(Case&);     // MPT071, MPT072, MPT074, MPT075
void judge_coverage(Case&);     // inconclusive, not_run

}  // namespace mp::trace
