#include "instrument/torch/collective_records.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace mp::twin {

bool same_kind(const trace::CollectiveRecord& a, const trace::CollectiveRecord& b) {
    return a.op == b.op && a.reduction == b.reduction && a.dtype == b.dtype && a.group == b.group;
}

void add_figures(trace::CollectiveRecord& record, const Divergence& d) {
    record.compared += d.compared;
    record.error_squares += d.ee;
    record.sum_squares += d.yy;
    record.made_nonfinite += d.nonfinite_real;
}

trace::CollectiveRecord* CollectiveRecords::find(const trace::CollectiveRecord& like) {
    const auto it = std::find_if(records_.begin(), records_.end(), [&](const trace::CollectiveRecord& known) {
        return same_kind(known, like);
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
    if (trace::CollectiveRecord* const known = find(like)) twin::add_figures(*known, d);
}

void CollectiveRecords::finish_later(std::function<void()> finish,
                                     std::shared_ptr<const std::atomic<bool>> chained) {
    const std::lock_guard lock(mutex_);
    unfinished_.push_back({std::move(finish), std::move(chained)});
}

void CollectiveRecords::finish_now() {
    std::vector<Unfinished> unfinished;
    {
        const std::lock_guard lock(mutex_);
        unfinished.swap(unfinished_);
    }
    for (const Unfinished& each : unfinished) each.finish();
}

void CollectiveRecords::finish_chained() {
    std::vector<Unfinished> chained;
    {
        const std::lock_guard lock(mutex_);
        const auto rest = std::stable_partition(unfinished_.begin(), unfinished_.end(),
                                                [](const Unfinished& each) { return !*each.chained; });
        chained.assign(std::make_move_iterator(rest), std::make_move_iterator(unfinished_.end()));
        unfinished_.erase(rest, unfinished_.end());
    }
    for (const Unfinished& each : chained) each.finish();
}

std::vector<trace::CollectiveRecord> CollectiveRecords::take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(records_, {});
}

}  // namespace mp::twin
