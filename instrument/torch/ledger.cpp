#include "instrument/torch/ledger.hpp"

#include <algorithm>
#include <utility>

#include "instrument/torch/tensors.hpp"

namespace mp::twin {

void Ledger::begin_step(bool sampled) {
    const std::lock_guard lock(mutex_);
    sampled_ = sampled;
    entries_.clear();
}

trace::OpRecord Ledger::describe(const Site& site, const OpInfo& op, at::ScalarType dtype) {
    trace::OpRecord record;
    record.layer = layers_.name(site.layer);
    record.guessed = site.guessed;
    record.op = op.name;
    record.phase = site.phase;
    record.dtype = dtype_of(dtype);
    record.first = site.ordinal;
    record.source = sources_.of(site, op, dtype);
    return record;
}

Ledger::Entries Ledger::take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(entries_, {});
}

std::vector<trace::OpRecord> Ledger::records(Entries entries) {
    std::vector<trace::OpRecord> records;
    records.reserve(entries.size());
    for (auto& [key, record] : entries)
        if (record.calls > 0 || record.added > 0 || record.inexact > 0 || record.total_of > 0 ||
            record.updated > 0)
            records.push_back(std::move(record));
    std::sort(records.begin(), records.end(),
              [](const trace::OpRecord& a, const trace::OpRecord& b) { return a.first < b.first; });
    return records;
}

}  // namespace mp::twin
