#include "instrument/torch/ledger.hpp"

#include <algorithm>

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
    record.source = sources_.of(site, op);
    return record;
}

std::vector<trace::OpRecord> Ledger::take() {
    const std::lock_guard lock(mutex_);
    std::vector<trace::OpRecord> records;
    records.reserve(entries_.size());
    for (auto& [key, record] : entries_) records.push_back(std::move(record));
    entries_.clear();
    std::sort(records.begin(), records.end(),
              [](const trace::OpRecord& a, const trace::OpRecord& b) { return a.first < b.first; });
    return records;
}

}  // namespace mp::twin
