#include "instrument/torch/collective_records.hpp"

#include <algorithm>
#include <utility>

namespace mp::twin {

trace::CollectiveRecord* CollectiveRecords::find(const trace::CollectiveRecord& like) {
    const auto it = std::find_if(records_.begin(), records_.end(), [&](const trace::CollectiveRecord& known) {
        return known.op == like.op && known.reduction == like.reduction && known.dtype == like.dtype &&
               known.group == like.group;
    });
    return it == records_.end() ? nullptr : &*it;
}

void CollectiveRecords::count(trace::CollectiveRecord record) {
    const std::lock_guard lock(mutex_);
    seen_ = true;
    if (trace::CollectiveRecord* const known = find(record)) {
        known->calls += record.calls;
        known->bytes += record.bytes;
        known->finite_inputs += record.finite_inputs;
        known->lost_inputs += record.lost_inputs;
    } else {
        records_.push_back(std::move(record));
    }
}

void CollectiveRecords::add_figures(const trace::CollectiveRecord& like, const Divergence& d) {
    const std::lock_guard lock(mutex_);
    trace::CollectiveRecord* const known = find(like);
    if (!known) return;
    known->compared += d.compared;
    known->error_squares += d.ee;
    known->sum_squares += d.yy;
    known->made_nonfinite += d.nonfinite_real;
}

void CollectiveRecords::finish_later(std::function<void()> finish) {
    const std::lock_guard lock(mutex_);
    unfinished_.push_back(std::move(finish));
}

void CollectiveRecords::finish_now() {
    std::vector<std::function<void()>> unfinished;
    {
        const std::lock_guard lock(mutex_);
        unfinished.swap(unfinished_);
    }
    for (const auto& finish : unfinished) finish();
}

std::vector<trace::CollectiveRecord> CollectiveRecords::take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(records_, {});
}

}  // namespace mp::twin
