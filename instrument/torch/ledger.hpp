#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "instrument/torch/compat.hpp"
#include "instrument/torch/layers.hpp"
#include "instrument/torch/op_info.hpp"
#include "instrument/torch/sources.hpp"
#include "runtime/trace/records.hpp"

namespace mp::twin {

// The measurements of the current step, one entry per (layer, op, phase, dtype). Safe from any thread: one lock per
// measured result.
class Ledger {
public:
    Ledger(const Layers& layers, Sources& sources) : layers_(layers), sources_(sources) {}

    void begin_step(bool sampled);
    // Whether this step measures everything. Otherwise only layer boundaries and non-finite values are measured.
    bool sampled() const noexcept { return sampled_.load(std::memory_order_relaxed); }

    struct Key {
        const OpInfo* op;
        LayerId layer;
        Phase phase;
        at::ScalarType dtype;
        bool operator==(const Key&) const = default;
    };
    struct Hash {
        std::size_t operator()(const Key& k) const noexcept {
            return (reinterpret_cast<std::size_t>(k.op) >> 4) * 0x9E3779B97F4A7C15ull +
                   (static_cast<std::size_t>(k.layer) << 16) + (static_cast<std::size_t>(k.phase) << 8) +
                   static_cast<std::size_t>(k.dtype);
        }
    };
    using Entries = std::unordered_map<Key, trace::OpRecord, Hash>;

    static Key key_of(const Site& site, const OpInfo& op, at::ScalarType dtype) {
        return {&op, site.layer, site.phase, dtype};
    }

    // Calls `add` with the entry of this place, under the lock.
    template <typename Add>
    void add(const Site& site, const OpInfo& op, at::ScalarType dtype, const Add& add) {
        std::unique_lock lock(mutex_);
        auto it = entries_.find(key_of(site, op, dtype));
        if (it == entries_.end()) {
            // describe() may take the GIL, and the thread that holds the GIL may wait for this lock.
            lock.unlock();
            trace::OpRecord fresh = describe(site, op, dtype);
            lock.lock();
            it = entries_.emplace(key_of(site, op, dtype), std::move(fresh)).first;
        }
        add(it->second);
    }

    // The entries of the step; empties the ledger.
    Entries take();
    // Those that measured something, in the order of their first calls.
    static std::vector<trace::OpRecord> records(Entries);

private:
    trace::OpRecord describe(const Site&, const OpInfo&, at::ScalarType);

    const Layers& layers_;
    Sources& sources_;
    std::mutex mutex_;
    std::atomic<bool> sampled_{false};
    Entries entries_;
};

}  // namespace mp::twin
