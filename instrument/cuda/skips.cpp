#include "instrument/cuda/skips.hpp"

#include <algorithm>

namespace mp::raw {
namespace {

constexpr std::uint64_t kFewestSteps = 8;  // from which on their ranges show which steps were skipped

std::uint64_t nonfinite(const trace::OpRecord& op) { return op.nan + op.pos_inf + op.neg_inf; }

bool lost_gradients(const trace::StepRecord& record) {
    return std::ranges::any_of(
               record.ops,
               [](const trace::OpRecord& op) { return op.phase == Phase::backward && nonfinite(op) > 0; }) ||
           std::ranges::any_of(record.collectives, [](const trace::CollectiveRecord& c) {
               return !c.reduction.empty() && is_low_precision(c.dtype) && c.lost_results > 0;
           });
}

}  // namespace

void Skips::ended(const StepTally& s) {
    trained_ += s.trained;
    updated_ += s.trained && s.updated;
}

// A program that names its backward and its update left out the update of a step: it skipped the step if values were
// lost in it, or if nearly all other steps have an update. One that accumulates gradients over steps leaves out half of
// the updates or more.
bool Skips::settle(StepTally& s, bool can_wait) {
    const bool lost = lost_gradients(s.record);
    if (s.trained && !s.updated && !s.told) {
        const bool usual = trained_ >= kFewestSteps && updated_ * 4 >= trained_ * 3;
        s.record.skipped = updated_ > 0 && (usual || (lost && idle_ == 0));
        const bool open = updated_ == 0 || trained_ < kFewestSteps;
        if (!s.record.skipped && open && can_wait) return false;
        idle_ += !lost && !s.record.skipped;
    }
    mark_unguarded(s.record, s.updated, lost);
    return true;
}

// The optimizer ran on gradients that were not finite, and the next forward begins with such values: the weights are
// lost. A program that decides on the device whether it updates has finite weights then.
void Skips::mark_unguarded(trace::StepRecord& record, bool updated, bool lost) {
    if (updated_in_ >= 0) {
        trace::OpRecord* first = nullptr;
        for (trace::OpRecord& op : record.ops)
            if (op.phase == Phase::forward && nonfinite(op) > 0 && (!first || op.first < first->first))
                first = &op;
        if (first && first->origins == 0) first->unguarded = static_cast<double>(updated_in_ + 1);
    }
    updated_in_ = lost && updated && !record.skipped ? record.step.value : -1;
}

}  // namespace mp::raw
