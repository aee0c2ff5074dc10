// Every rule, in the order of its id. script/new-rule adds the two lines of a new one; a test
// checks that ids, files and pages agree.

#include <algorithm>
#include <array>

#include "analyzer/rules/rule.hpp"

namespace mp::lint {

extern const Rule kUnusedSuppression;
extern const Rule kSuppressionWithoutReason;
extern const Rule kManualCastInAutocast;
extern const Rule kFp32OpInLowPrecision;
extern const Rule kBannedOpInAutocast;
extern const Rule kAutocastRegionLeak;
extern const Rule kBackwardUnscaled;
extern const Rule kClipBeforeUnscale;
extern const Rule kOptimizerStepSkipsScaler;
extern const Rule kScalerUpdateMissing;
extern const Rule kScalerAccumulation;
extern const Rule kScaledGradInspection;
extern const Rule kSchedulerIgnoresSkippedStep;
extern const Rule kHalfConstantOverflow;
extern const Rule kHalfConstantUnderflow;
extern const Rule kIntInHalf;
extern const Rule kHalfAccumulator;
extern const Rule kHalfReduceCall;
extern const Rule kHalfAtomic;
extern const Rule kHalfNormStats;
extern const Rule kCublasCompute16f;
extern const Rule kMmaHalfAccumulator;
extern const Rule kReduceInHalf;
extern const Rule kHalfOptimizerUpdateWithoutMaster;
extern const Rule kDoubleCast;
extern const Rule kImplicitHalfNarrowing;

namespace {

constexpr std::array kRules{
    &kUnusedSuppression,                 // MP001
    &kSuppressionWithoutReason,          // MP002
    &kManualCastInAutocast,              // MP101
    &kFp32OpInLowPrecision,              // MP102
    &kBannedOpInAutocast,                // MP103
    &kAutocastRegionLeak,                // MP110
    &kBackwardUnscaled,                  // MP202
    &kClipBeforeUnscale,                 // MP203
    &kOptimizerStepSkipsScaler,          // MP204
    &kScalerUpdateMissing,               // MP205
    &kScalerAccumulation,                // MP206
    &kScaledGradInspection,              // MP209
    &kSchedulerIgnoresSkippedStep,       // MP211
    &kHalfConstantOverflow,              // MP301
    &kHalfConstantUnderflow,             // MP302
    &kIntInHalf,                         // MP306
    &kHalfAccumulator,                   // MP401
    &kHalfReduceCall,                    // MP402
    &kHalfAtomic,                        // MP403
    &kHalfNormStats,                     // MP405
    &kCublasCompute16f,                  // MP406
    &kMmaHalfAccumulator,                // MP407
    &kReduceInHalf,                      // MP409
    &kHalfOptimizerUpdateWithoutMaster,  // MP501
    &kDoubleCast,                        // MP601
    &kImplicitHalfNarrowing,             // MP602
};

}  // namespace

std::span<const Rule* const> all_rules() { return kRules; }

const Rule* find_rule(std::string_view id_or_name) {
    const auto found = std::ranges::find_if(kRules, [&](const Rule* rule) {
        return rule->id == id_or_name || rule->name == id_or_name;
    });
    return found == kRules.end() ? nullptr : *found;
}

}  // namespace mp::lint
