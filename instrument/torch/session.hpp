#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "instrument/torch/compat.hpp"
#include "instrument/torch/ledger.hpp"
#include "instrument/torch/parameters.hpp"
#include "kernels/numerics/divergence.hpp"
#include "runtime/trace/identity.hpp"
#include "runtime/trace/options.hpp"
#include "runtime/trace/recorder.hpp"

namespace mp::twin {

class ShadowMap;

// What this process records: counts of the step under way, its losses, the step clock, and the file.
// One object per process, made by attach and never destroyed. Every member function may be called from
// any thread and never throws into the program.
class Session {
public:
    Session(trace::Options, trace::Identity, bool has_python);

    const trace::Options& options() const { return options_; }
    bool has_python() const { return has_python_; }
    // Whether ops of this moment are followed by a twin (or measured, in local mode).
    bool twin_active() const noexcept { return twin_active_.load(std::memory_order_relaxed); }
    bool local() const { return options_.mode == trace::Mode::local; }
    bool armed() const noexcept { return armed_.load(std::memory_order_relaxed); }
    // This rank gave its twin up, and goes on attending the twin's collectives so that no other rank hangs.
    bool attends_only() const noexcept { return attends_only_.load(std::memory_order_relaxed); }
    void disarm(std::string_view reason);
    void after_fork_in_child();

    // ---- Counted by the interceptor and the twin.
    void count_op(at::ScalarType dtype);
    void count_shadowed(std::uint64_t bytes);
    void count_unshadowed(std::string_view op, std::string_view why, std::uint64_t bytes);
    void count_failed(std::string_view op, std::string_view what, std::uint64_t bytes);
    enum class Seed : std::uint8_t { external, lost, stale };
    void count_seed(std::string_view op, Seed, std::uint64_t bytes);
    void count_flips(std::uint64_t elements);
    void count_leak(std::string_view op, double real, double twin);
    void count_collective(trace::CollectiveRecord);
    void internal_fault(std::string_view where, std::string_view what);
    // As above, of measuring: a figure is missing, the twin is whole and goes on.
    void measuring_fault(std::string_view where, std::string_view what);

    // ---- Measured by the twin and the interceptor.
    Ledger& ledger() noexcept { return ledger_; }
    std::uint64_t next_ordinal() noexcept { return ordinal_.fetch_add(1, std::memory_order_relaxed); }
    // Between before_step and after_step; and whether a backward() of this step has begun.
    bool in_optimizer() const noexcept { return in_optimizer_.load(std::memory_order_relaxed); }
    bool backward_ran() const noexcept { return backward_ran_.load(std::memory_order_relaxed); }
    // A low-precision reduction against the fp32 reduction of the same inputs.
    void count_reduction(const trace::CollectiveRecord&, const Divergence&);
    // Called when the step ends, if the program has not waited for the reduction by itself (DDP chains futures).
    void finish_later(std::function<void()>);

    // ---- Losses. A candidate is a scalar result made while gradients are recorded.
    void candidate(const at::Tensor& scalar);
    void scaled_loss(const at::Tensor& root, const at::Tensor& loss);
    // The program says what its loss is (mptrace_loss); it counts in place of the root of the next backward().
    void declared_loss(const at::Tensor& loss);
    // An autograd node begins; the first of a backward() is the root's.
    void node_begins(std::int64_t sequence, std::int64_t previous, const at::Tensor& root_gradient);

    // ---- The step clock.
    void before_step(std::int64_t optimizer);
    void after_step(std::int64_t optimizer, bool skipped, double scale);
    // The program ends its step itself (mptrace_step); the clock for programs without Python then rests.
    void declared_step(bool skipped, double scale);
    // For programs without Python: a forward op that records gradients, and the writes between.
    void forward_op(const Stack& arguments, std::size_t count);
    void wrote(const at::Tensor& target, bool zeroed);

    std::int64_t steps() const { return next_step_; }
    Parameters& parameters() { return parameters_; }
    // A dtype that the adapter cannot see by itself: of a checkpoint's tensors.
    void place(trace::DTypePlace);
    void note(trace::NoteKind, std::string_view text);
    void finish();

private:
    struct Candidate {
        c10::weak_intrusive_ptr<c10::TensorImpl> tensor;
    };
    struct Scaled {
        c10::weak_intrusive_ptr<c10::TensorImpl> root, loss;
    };

    bool measures() const;
    bool is_sampled_step() const;
    bool looks_at_tensors() const;
    void measure_tensors();
    void put_places();
    void finish_reductions();
    void begin_step();
    void end_step(std::int64_t optimizer, bool skipped, double scale);
    void record_loss(const at::Tensor& root);
    bool open_recorder();
    void say_forecast();
    void save(const std::string& pattern, bool twin);

    trace::Options options_;
    trace::Identity identity_;
    bool has_python_;
    std::atomic<bool> armed_{true};
    std::atomic<bool> twin_active_{false};
    std::atomic<bool> attends_only_{false};
    std::recursive_mutex mutex_;

    std::unique_ptr<trace::Recorder> recorder_;
    bool recording_tried_ = false;
    trace::StepRecord step_;      // under way
    std::int64_t next_step_ = 0;  // of the first optimizer
    std::int64_t last_record_ns_ = 0;
    std::int64_t steps_recorded_ = 0;
    std::vector<std::uint64_t> ops_by_dtype_;
    std::set<std::string> said_;  // (kind, text) already noted
    Ledger ledger_;
    std::atomic<std::uint64_t> ordinal_{0};
    std::atomic<bool> in_optimizer_{false};
    std::atomic<bool> backward_ran_{false};
    std::vector<trace::TensorRecord> gradients_;  // measured before the step, while they are there
    std::vector<trace::DTypePlace> checkpoints_;
    std::string last_places_;  // as recorded last
    std::vector<std::function<void()>> unfinished_;
    at::Tensor declared_loss_;
    bool declares_steps_ = false;
    std::vector<Candidate> candidates_;
    std::size_t next_candidate_ = 0;
    std::vector<Scaled> scaled_;
    bool forecast_said_ = false;
    bool collective_seen_ = false;
    bool finished_ = false;
    int faults_ = 0;

    // Without Python: has a backward ended, and was a parameter written or a gradient cleared since?
    bool backward_seen_ = false;
    bool parameter_written_ = false;
    std::uint64_t leaves_at_backward_ = 0;  // fingerprint of the leaves' values
    bool gradient_cleared_ = false;
    double root_gradient_ = 1;

    Parameters parameters_;
};

// Null until attached.
Session* session() noexcept;
void set_session(Session*) noexcept;

}  // namespace mp::twin
