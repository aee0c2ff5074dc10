#include "runtime/judge/rule_pack.hpp"

#include <array>

namespace mp::trace {
namespace {

constexpr RuleInfo kRules[] = {
    {"MPT001", "nonfinite-value", "an op made a value that is not finite from finite inputs", Needs::nothing},
    {"MPT002", "skipped-steps", "steps skipped after warm-up", Needs::nothing},
    {"MPT003", "loss-scale-collapse", "the loss scale keeps falling", Needs::nothing},
    {"MPT004", "skip-not-by-scale", "skipped step not caused by the loss scale", Needs::nothing},
    {"MPT010", "introduced-error", "an op introduces more error than its roundings cost", Needs::local},
    {"MPT011", "rounding-bias", "an op's rounding errors do not cancel", Needs::local},
    {"MPT012", "swallowed-addends", "a running sum loses what is added to it", Needs::nothing},
    {"MPT013", "amplified-error", "an op makes a large error out of near-clean inputs", Needs::twin},
    {"MPT014", "narrowed-value", "a value that is rounded to fp8 and read in a wider format", Needs::twin},
    {"MPT015", "lost-integers", "positions or time steps that 16 bits cannot count make angles",
     Needs::torch},
    {"MPT023", "kernel-error", "a kernel of this torch introduces more error than its roundings cost",
     Needs::local},
    {"MPT024", "loss-departure", "the loss departs from its fp32 twin", Needs::twin},
    {"MPT025", "flushed-state", "an optimizer's state loses its small values, and its updates are wrong",
     Needs::twin},
    {"MPT026", "gradient-departure", "gradients depart from their fp32 twins where an op of backward cancels",
     Needs::twin},
    {"MPT027", "update-departure", "an optimizer moves parameters farther or less far than in fp32",
     Needs::twin},
    {"MPT028", "rounded-master", "fp32 weights that the program rounds to 16 bits after each update",
     Needs::twin},
    {"MPT030", "flush-to-zero", "values flushed to zero", Needs::twin},
    {"MPT031", "near-overflow", "values close to the largest of the format", Needs::nothing},
    {"MPT040", "stagnation", "updates below half an ulp do not move the weights", Needs::nothing},
    {"MPT041", "wrong-scalar",
     "a scalar of 16 bits that feeds every update stands still or is far from its twin", Needs::torch},
    {"MPT043", "not-mixed", "nothing ran below fp32 although mixed precision was declared", Needs::policy},
    {"MPT050", "reduction-error", "a collective's reduction loses more than its rounding", Needs::collective},
    {"MPT051", "replica-mismatch", "replicas hold different parameters", Needs::ddp},
    {"MPT060", "off-policy", "an op or a tensor off the precision policy", Needs::policy},
    {"MPT061", "outdated-copy", "autocast's copy of a weight is read after the weight was updated",
     Needs::torch},
    {"MPT062", "scaled-clip", "gradients are clipped before the loss scale is taken out", Needs::local},
    {"MPT071", "half-sums", "a matrix product adds its terms in fp16", Needs::nothing},
    {"MPT072", "split-sums", "a matrix product adds the parts of its sums in 16 bits", Needs::nothing},
    {"MPT073", "average-gain", "an average over ranks multiplies every value by a rounded 1/N",
     Needs::nothing},
    {"MPT074", "unguarded-update", "the optimizer ran on gradients that are not finite", Needs::nothing},
    {"MPT075", "emulated-bf16", "bf16 products on a device that has no bf16", Needs::nothing},
    {"MPT076", "collective-overrun", "a collective reads or writes past the end of its buffers",
     Needs::nothing},
    {"MPT077", "ranks-received", "ranks received different results of one reduction", Needs::nothing},
    {"MPT078", "local-fault", "some rows of a matrix product have an error that the others do not have",
     Needs::nothing},
    {"MPT090", "coverage", "what was not observed", Needs::nothing},
};

}  // namespace

std::span<const RuleInfo> rule_pack() { return kRules; }

const RuleInfo* rule_called(std::string_view id) {
    for (const RuleInfo& rule : kRules) {
        if (rule.id == id) return &rule;
    }
    return nullptr;
}

}  // namespace mp::trace
