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
extern const Rule kDisabledRegionWithoutUpcast;
extern const Rule kAutocastDeviceMismatch;
extern const Rule kAutocastFp32Dtype;
extern const Rule kBackwardUnderAutocast;
extern const Rule kOptimizerStepInRegion;
extern const Rule kOpListOverride;
extern const Rule kAutocastRegionLeak;
extern const Rule kAutocastCacheNotCleared;
extern const Rule kAutocastCacheNoGrad;
extern const Rule kAutocastThread;
extern const Rule kCustomFunctionWithoutCustomFwd;
extern const Rule kCustomOpWithoutAutocastKernel;
extern const Rule kInplaceInAutocast;
extern const Rule kMixedHalfTypes;
extern const Rule kNestedPrecisionEngine;
extern const Rule kCheckpointAutocast;
extern const Rule kDeprecatedAmpApi;
extern const Rule kMissingGradScaler;
extern const Rule kBackwardUnscaled;
extern const Rule kClipBeforeUnscale;
extern const Rule kOptimizerStepSkipsScaler;
extern const Rule kScalerUpdateMissing;
extern const Rule kScalerAccumulation;
extern const Rule kScalerOnHalfGrads;
extern const Rule kScalerWithBf16;
extern const Rule kScaledGradInspection;
extern const Rule kScalerStateNotSaved;
extern const Rule kSchedulerIgnoresSkippedStep;
extern const Rule kFsdpFp16WithoutShardedScaler;
extern const Rule kStaticLossScaleNoOverflowCheck;
extern const Rule kHalfConstantOverflow;
extern const Rule kHalfConstantUnderflow;
extern const Rule kHalfOptimizerEps;
extern const Rule kFinfoMinAdditiveMask;
extern const Rule kBf16ToFp16;
extern const Rule kIntInHalf;
extern const Rule kFp8UnscaledCast;
extern const Rule kHalfAccumulator;
extern const Rule kHalfReduceCall;
extern const Rule kHalfAtomic;
extern const Rule kScatterInHalf;
extern const Rule kHalfNormStats;
extern const Rule kCublasCompute16f;
extern const Rule kMmaHalfAccumulator;
extern const Rule kReducedPrecisionReduction;
extern const Rule kReduceInHalf;
extern const Rule kRunningAccumulatorInHalf;
extern const Rule kExplicitHalfReductionDtype;
extern const Rule kHalfOptimizerUpdateWithoutMaster;
extern const Rule kEmaInHalf;
extern const Rule kBufferFollowsModelCast;
extern const Rule kEightBitOptimizerEmbedding;
extern const Rule kDoubleCast;
extern const Rule kImplicitHalfNarrowing;
extern const Rule kTf32Global;
extern const Rule kBf16WithoutSupportCheck;
extern const Rule kItemSync;

namespace {

constexpr std::array kRules{
    &kUnusedSuppression,                 // MP001
    &kSuppressionWithoutReason,          // MP002
    &kManualCastInAutocast,              // MP101
    &kFp32OpInLowPrecision,              // MP102
    &kBannedOpInAutocast,                // MP103
    &kDisabledRegionWithoutUpcast,       // MP104
    &kAutocastDeviceMismatch,            // MP105
    &kAutocastFp32Dtype,                 // MP106
    &kBackwardUnderAutocast,             // MP107
    &kOptimizerStepInRegion,             // MP108
    &kOpListOverride,                    // MP109
    &kAutocastRegionLeak,                // MP110
    &kAutocastCacheNotCleared,           // MP111
    &kAutocastCacheNoGrad,               // MP112
    &kAutocastThread,                    // MP113
    &kCustomFunctionWithoutCustomFwd,    // MP114
    &kCustomOpWithoutAutocastKernel,     // MP115
    &kInplaceInAutocast,                 // MP116
    &kMixedHalfTypes,                    // MP117
    &kNestedPrecisionEngine,             // MP118
    &kCheckpointAutocast,                // MP119
    &kDeprecatedAmpApi,                  // MP120
    &kMissingGradScaler,                 // MP201
    &kBackwardUnscaled,                  // MP202
    &kClipBeforeUnscale,                 // MP203
    &kOptimizerStepSkipsScaler,          // MP204
    &kScalerUpdateMissing,               // MP205
    &kScalerAccumulation,                // MP206
    &kScalerOnHalfGrads,                 // MP207
    &kScalerWithBf16,                    // MP208
    &kScaledGradInspection,              // MP209
    &kScalerStateNotSaved,               // MP210
    &kSchedulerIgnoresSkippedStep,       // MP211
    &kFsdpFp16WithoutShardedScaler,      // MP212
    &kStaticLossScaleNoOverflowCheck,    // MP213
    &kHalfConstantOverflow,              // MP301
    &kHalfConstantUnderflow,             // MP302
    &kHalfOptimizerEps,                  // MP303
    &kFinfoMinAdditiveMask,              // MP304
    &kBf16ToFp16,                        // MP305
    &kIntInHalf,                         // MP306
    &kFp8UnscaledCast,                   // MP307
    &kHalfAccumulator,                   // MP401
    &kHalfReduceCall,                    // MP402
    &kHalfAtomic,                        // MP403
    &kScatterInHalf,                     // MP404
    &kHalfNormStats,                     // MP405
    &kCublasCompute16f,                  // MP406
    &kMmaHalfAccumulator,                // MP407
    &kReducedPrecisionReduction,         // MP408
    &kReduceInHalf,                      // MP409
    &kRunningAccumulatorInHalf,          // MP410
    &kExplicitHalfReductionDtype,        // MP411
    &kHalfOptimizerUpdateWithoutMaster,  // MP501
    &kEmaInHalf,                         // MP502
    &kBufferFollowsModelCast,            // MP503
    &kEightBitOptimizerEmbedding,        // MP504
    &kDoubleCast,                        // MP601
    &kImplicitHalfNarrowing,             // MP602
    &kTf32Global,                        // MP603
    &kBf16WithoutSupportCheck,           // MP604
    &kItemSync,                          // MP605
};

}  // namespace

std::span<const Rule* const> all_rules() { return kRules; }

const Rule* find_rule(std::string_view id_or_name) {
    const auto found = std::ranges::find_if(
        kRules, [&](const Rule* rule) { return rule->id == id_or_name || rule->name == id_or_name; });
    return found == kRules.end() ? nullptr : *found;
}

}  // namespace mp::lint
