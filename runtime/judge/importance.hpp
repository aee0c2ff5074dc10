#pragma once

// What the findings of one severity are sorted by; the first is the first cause. One line for each kind of finding,
// from the cause to its consequences: a value that left the format explains what comes after it, so it has a higher
// importance than the errors or the stagnation that it leads to. Below 1 an importance is the share of the damage that
// the finding explains.

namespace mp::trace::importance {

struct Weight {
    double base = 0, slope = 0;

    constexpr double operator()(double x = 0) const { return base + slope * x; }
};

// The ranks are not the same model from here on; what leaves a format later is a consequence.
inline constexpr Weight kRanksDisagreeFirst{2.5};
// Values left a format. x: how many places came before; the earliest is the cause of the others.
inline constexpr Weight kOverflow{2, -0.01};
// The update that lost the weights, after the op that began it.
inline constexpr Weight kUnguarded{1.6};
// The weights are lost, but the op that began it is not known.
inline constexpr Weight kLostWeights{1.5};
// The loss is lost, but the twin's too: precision did not do it.
inline constexpr Weight kSharedNan{1.45};
// A sum over ranks left the format, where no skip says so: what is lost is lost by it.
inline constexpr Weight kReductionOverflow{1.44};
// Memory of other tensors is read or overwritten.
inline constexpr Weight kBeyond{1.42};
// A part of a product is lost or written over, so what it depends on cannot be right.
inline constexpr Weight kLocalFault{1.41};
// The same without the op that began it.
inline constexpr Weight kLostLoss{1.4};
// Ranks disagree, after a value left a format or for a reason that has a finding of its own.
inline constexpr Weight kRanksDisagree{1.3};
// The forward does not see the updates of weights.
inline constexpr Weight kOutdatedCopies{1.25};
// Steps are lost, and a lower loss scale does not bring them back. x: the step; the earlier one first.
inline constexpr Weight kSkipCause{1.2, -1e-9};
// A scalar that multiplies every update, or counts them, is wrong.
inline constexpr Weight kWrongScalar{1.05};
// Updates are divided by what became 0.
inline constexpr Weight kFlushedState{1.02};
// Updates have another length than in fp32.
inline constexpr Weight kUpdateDeparture{1.01};
// A running sum loses its addends for good, which the errors of single steps do not show. x: the share of them.
inline constexpr Weight kSwallowedAddends{1, 1};
// Every update is divided by the loss scale twice.
inline constexpr Weight kScaledClip{1.06};
// Positions that cannot be told apart.
inline constexpr Weight kLostIntegers{0.9};
// Errors of ops. x: the share of all introduced error, or the relative error that is left.
inline constexpr Weight kIntroducedError{0, 1}, kRoundingBias{0, 1}, kAmplifiedError{0, 1};
// The gradients are off. x: by how much what the op makes of them is, 1 at most.
inline constexpr Weight kGradientDeparture{0, 1};
// Inferred from the descriptor of a product. x: the limit as a share of the expected error, so below any measured one.
inline constexpr Weight kHalfSums{0.6, 0.1}, kSplitSums{0.3};
// The loss is above its twin's. x: by how much, as a share of the twin's, 1 at most.
inline constexpr Weight kLossDeparture{0, 1};
// x: the share of the magnitude that is lost.
inline constexpr Weight kFlushToZero{0, 1};
// Stagnation, in the order in which the model is hurt. x: the share of the updates that is lost.
inline constexpr Weight kStagnantWeights{0, 1}, kStagnantAverages{0, 0.9}, kStagnantState{0, 0.6},
    kStagnantBuffers{0, 0.5};
// fp32 weights that hold 16-bit values. x: the error that one rounding leaves in an update, 1 at most.
inline constexpr Weight kRoundedMasters{0, 1};
// Replicas drift apart slowly: a symptom, but one that does not heal.
inline constexpr Weight kReplicaMismatch{0.8};
// Steps are lost that a better loss scale brings back. x: the share of all steps.
inline constexpr Weight kSkippedSteps{0.5, 0.1};
// An error in what is reduced, once a step.
inline constexpr Weight kReductionError{0.5};
// x: the gain of every reduced value.
inline constexpr Weight kAverageGain{0.3, 1};
// A scale that only falls is rarely the cause of the skips, so it is less important.
inline constexpr Weight kScaleCollapse{0.4};
// Off the policy is a question of intent; nothing is known to be lost. One that the user declared comes first.
inline constexpr Weight kOffDeclaredPolicy{0.3}, kOffFoundPolicy{0.2};
// Slow, not wrong.
inline constexpr Weight kEmulated{0.1};
// Nothing has happened yet. x: the largest value, as a share of the format's.
inline constexpr Weight kNearOverflow{0, 0.1};

}  // namespace mp::trace::importance
