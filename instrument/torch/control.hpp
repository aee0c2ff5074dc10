#pragma once

#include <atomic>
#include <mutex>

#include "runtime/trace/identity.hpp"
#include "runtime/trace/options.hpp"

namespace mp::twin {

// Whether the user listed this rank; without a list every rank is listed.
bool lists(const trace::Options&, Rank);

// The options of this process and whether it is still traced. The options never change, the identity only before the
// recording is opened. The
// switches are read on every op without a lock; `mutex_` orders their rare changes. Once disarmed, a process stays so.
class Control {
public:
    Control(trace::Options, trace::Identity, bool has_python);

    const trace::Options& options() const { return options_; }
    const trace::Identity& identity() const { return identity_; }
    // The rank in torch.distributed, for a process that no launcher gave a rank.
    void learn_rank(std::int32_t rank, std::int32_t local_rank, std::int32_t world_size);
    bool has_python() const { return has_python_; }
    bool local() const { return options_.mode == trace::Mode::local; }
    // Whether the mode has a twin with a history, in some steps at least.
    bool follows() const {
        return options_.mode == trace::Mode::step || options_.mode == trace::Mode::trajectory;
    }
    bool is_listed() const { return lists(options_, identity_.rank); }

    // Whether ops are watched at all.
    bool armed() const noexcept { return armed_.load(std::memory_order_relaxed); }
    // Whether ops are currently followed by a twin (or, in local mode, measured).
    bool twin_active() const noexcept { return twin_active_.load(std::memory_order_relaxed); }
    // Whether this rank has lost its twin but still takes part in the twin's collectives, so that no other rank hangs.
    bool attends_only() const noexcept { return attends_only_.load(std::memory_order_relaxed); }

    // A step begins, with a twin or without.
    void begin_step(bool with_twin);
    // The twin's memory is the program's from now on: there is no twin in any step. Ops are watched, and the twin's
    // collectives attended. Returns whether it had not been given up before.
    bool give_up();
    bool given_up() const noexcept { return given_up_.load(std::memory_order_relaxed); }
    // Returns whether it was armed. `attend`: still take part in the twin's collectives if the twin is active.
    bool disarm(bool attend);
    // The file, the helper thread and the step are the parent's. Takes no lock: another thread of the parent may have
    // held it.
    void after_fork_in_child() noexcept;
    // This process is the child of a fork, traced by itself. Only a training is a reason to record it: children also
    // read data, or answer for the helper of a library.
    void begin_in_child() noexcept { is_child_ = true; }
    bool is_child() const noexcept { return is_child_; }

private:
    const trace::Options options_;
    trace::Identity identity_;
    const bool has_python_;
    bool is_child_ = false;
    std::mutex mutex_;
    std::atomic<bool> armed_{true};
    std::atomic<bool> twin_active_{false};
    std::atomic<bool> attends_only_{false};
    std::atomic<bool> given_up_{false};
};

}  // namespace mp::twin
