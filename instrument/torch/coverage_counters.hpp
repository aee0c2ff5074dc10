#pragma once

#include <ATen/ATen.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>
#include <vector>

#include "instrument/torch/control.hpp"
#include "instrument/torch/current_step.hpp"
#include "instrument/torch/notes.hpp"
#include "runtime/trace/records.hpp"

namespace mp::twin {

// How much of the step under way was seen and followed. Safe from any thread and without locks: every counter is a
// separate atomic. Counts that another thread adds during `take` may fall into either step.
class CoverageCounters {
public:
    CoverageCounters(const Control& control, Notes& notes, const CurrentStep& now)
        : control_(control), notes_(notes), now_(now) {}

    void op(at::ScalarType dtype) noexcept { add(by_dtype_[static_cast<std::size_t>(dtype)], 1); }
    void shadowed(std::uint64_t bytes) noexcept;
    // These also note the op and the reason.
    void unshadowed(std::string_view op, std::string_view why, std::uint64_t bytes);
    void failed(std::string_view op, std::string_view what, std::uint64_t bytes);
    // A sum of gradients that an fp32 run groups otherwise.
    void regrouped(std::string_view layer, std::string_view why);
    void relaid() noexcept { add(relaid_, 1); }
    // Random numbers that an op of the model drew in 16 bits.
    void drawn(std::string_view op, std::string_view dtype);
    // A value that the program computed where no op was seen. `where` names the code.
    void outside(std::string_view where, std::uint64_t bytes);
    enum class Seed : std::uint8_t { external, lost, stale };
    void seed(std::string_view op, Seed, std::uint64_t bytes);
    void flips(std::uint64_t elements) noexcept { add(flips_, elements); }
    // Notes an op whose integers differ in the twin and which the program reads.
    void decision(std::string_view op);
    void leak(std::string_view op, double real, double twin);
    // The same for a step that ended before the values were known.
    void leak(trace::StepRecord&, std::string_view op, double real, double twin);

    // Writes the coverage and the ops by dtype into the record, and resets the counters.
    void take(trace::StepRecord&);

private:
    using Counter = std::atomic<std::uint64_t>;
    static void add(Counter& counter, std::uint64_t more) noexcept {
        counter.fetch_add(more, std::memory_order_relaxed);
    }

    const Control& control_;
    Notes& notes_;
    const CurrentStep& now_;
    std::array<Counter, static_cast<std::size_t>(at::ScalarType::NumOptions) + 1> by_dtype_{};
    Counter shadowed_{0}, shadowed_bytes_{0}, unshadowed_{0}, unshadowed_bytes_{0}, failed_{0};
    Counter seeds_{0}, seeded_bytes_{0}, external_{0}, stale_{0}, flips_{0}, leaks_{0}, outside_{0};
    Counter regrouped_{0}, relaid_{0}, drawn_{0};
    std::atomic<double> worst_leak_{0};  // a NaN stays
};

}  // namespace mp::twin
