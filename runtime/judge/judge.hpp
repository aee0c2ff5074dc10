#pragma once

#include <string>
#include <vector>

#include "kernels/numerics/divergence.hpp"
#include "runtime/fold/run_model.hpp"
#include "runtime/judge/finding.hpp"
#include "runtime/judge/skips.hpp"

namespace mp::trace {

// The limits of the rules with their defaults; mp-gate.toml can change them. docs/measures.md gives the source of each
// number.
struct Limits {
    double loc_warn_phi = 1.5, loc_fail_phi = 2.0;  // MPT010; widened by 3/sqrt(n) below 1,024 elements
    double gain_bias_u = 0.25;                      // MPT011, in unit roundoffs
    double skips_per_1000 = 1;                      // MPT002, after warm-up
    int consecutive_skips = 3;
    int warm_up_skips = 6;                                    // GradScaler's first halvings are normal
    int scale_halvings = 4;                                   // MPT003
    double flush_gradients = 0.01, flush_activations = 0.05;  // MPT030
    double near_overflow_bits = 2;                            // MPT031
    double stagnation_warn = 0.3, stagnation_fail = 0.7;      // MPT040
    double reduction_phi = 3;                                 // MPT050
    double average_gain = 0.001;                              // MPT073, as a share of every value
    double coverage_ops = 0.95;                               // MPT090
    double local_fault_phi = 6;                               // MPT078, in what rounding explains
    double absorbed = 0.1;  // MPT012: share of a running sum's addends that are absorbed
    // MPT013, relative L2 of the inherited error: the error of one rounding to two significant bits, and to one.
    double amplified_warn = one_rounding_floor(2), amplified_fail = one_rounding_floor(1);
    double loss_warn = 0.1,
           loss_fail = 0.25;    // MPT024: by how much the loss is above its twin's, as a share of it
    double update_share = 0.5;  // MPT010: share of the gradients' error that a kernel must explain
};

// One (layer, op, phase) as the divergence ladder shows it, in one-rounding floors of its dtype.
struct Rung {
    std::string layer, op;
    Phase phase = Phase::unknown;
    DType dtype = DType::unknown;
    double introduced = -1;  // LOC; -1: not sampled
    double inherited = -1;   // PROP
    double total = -1;       // CUM
    std::uint64_t order = 0;
};

struct FirstOverflow {
    bool found = false;
    std::string layer, op, source;
    Phase phase = Phase::unknown;
    DType dtype = DType::unknown;
    Rank rank;
    int device = -1;  // as in Finding
    Step step;
    std::uint64_t nonfinite = 0, elements = 0;
    double input_amax = 0, twin_amax = 0;
};

// Whether the program's loss is the loss of its fp32 twin, over the last quarter of the steps with both (at least 3).
struct LossAgreement {
    enum class Answer : std::uint8_t {
        not_compared,
        agrees,
        scattered,  // further apart, with either sign: two runs that went different ways
        above,      // of the twin's, in nearly all of these steps
        below,
        lost,          // not finite, and the twin's is
        lost_in_both,  // neither is finite
        lost_in_twin,
    } answer = Answer::not_compared;
    std::uint64_t steps = 0;    // that were compared
    double loss = 0, twin = 0;  // means over them
    double last_loss = 0, last_twin = 0;
    std::int32_t last_backwards = 0;
    // Which of the losses it is: the farthest from its twin of all that the run has.
    std::int32_t optimizer = 0, optimizers = 1;  // from 0
    int training = 0, trainings = 1;             // of the process, from 0
    double apart = 0;  // (loss - twin) / |twin|; as a share of the twin's span where a loss is not positive
    double farthest = 0;     // of a single step, without its sign
    bool one_sided = false;  // nearly all of these steps are on the same side of the twin
    double noise = -1;       // of the twin, in the same unit: what one rounding changes; -1: not measured
    Step begins;  // of above and below: from here on nearly all steps are at least a quarter as far apart
};

// "optimizer 2 of 2", "training 1 of 3"; empty: the run has one loss.
std::string which_loss(const LossAgreement&);

// One checked sentence: "the reduction runs in fp32", true or not, or not observed.
struct Check {
    enum class Answer : std::uint8_t { yes, no, not_observed } answer = Answer::not_observed;
    std::string sentence;
    std::string evidence;   // "reduce_scatter in bf16, 240 calls"
    bool violated = false;  // the answer is no, and a policy requires yes
};

struct Judgement {
    std::vector<Finding> findings;  // by severity, then importance; the first is the first cause
    std::vector<Rung> ladder;       // along depth: forward, then backward, then optimizer
    std::vector<SkipVerdict> skips;
    FirstOverflow first_overflow;
    LossAgreement loss;
    std::vector<Check> checks;              // of declared and found policies
    double samples_lost = 0;                // share of steps skipped
    std::vector<std::string> inconclusive;  // why a verdict cannot be given: coverage, missing ranks
    struct NotRun {
        std::string rule, why;
    };
    std::vector<NotRun> not_run;  // rules whose measure was not taken: no twin, no sampled step
};

// Whether the program is one without torch, whose calls of CUDA's libraries were recorded.
bool is_raw(const RunModel&);

// `policies` as --policy takes them (runtime/judge/policy_check.hpp), beside those that the program itself declares.
Judgement judge(const RunModel&, const Limits& = {}, const std::vector<std::string>& policies = {});

}  // namespace mp::trace
