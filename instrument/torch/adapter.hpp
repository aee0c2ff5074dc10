#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>
#include <vector>

#include "instrument/torch/gradient_sums.hpp"
#include "instrument/torch/inferred_clock.hpp"
#include "instrument/torch/parts.hpp"
#include "instrument/torch/step_clock.hpp"
#include "instrument/torch/twin.hpp"

namespace mp::twin {

// The adapter of this process: its parts, and the objects that work on them. There is one. start_adapter makes it,
// and it is never destroyed, because static destructors of the program may still dispatch ops. Safe from any thread.
struct Adapter final : Parts {
    using Parts::Parts;

    StepClock clock{*this};
    InferredClock inferred_clock{*this, clock};
    Twin twin{*this};
    GradientSums gradient_sums{*this};

    // Called once, at the end of the program. Saves the requested state, closes the recording and prints the summary.
    // `how`: the exception that ends the program, or its exit status; empty: it ends in an orderly way; kExits: by
    // exit(3), whose status exited() will know, and so the summary waits for it.
    void finish(std::string_view how = {});
    static constexpr std::string_view kExits = "exits";
    // exit(3) was called, or main() has returned. Ends a program without Python.
    void exited(int status);
    // A worker of a pool has ended a task (`how` as above): the recording has its end, because the pool may kill the
    // worker from now on. The next task takes the end back.
    void task_ends(std::string_view how);
    void task_begins();
    // Prints the summaries of children that had no time to do so.
    void summarize_children(const std::vector<std::int64_t>& pids) const;

private:
    // `waits`: for the figures of a device.
    void finish(std::string_view how, bool waits);
    void end_recording(std::string_view how);
    void summarize();

    std::atomic<bool> finished_{false};
    std::atomic<bool> exits_{false};  // finished, and its status is not known yet
};

// Null until attached. For callers that torch or libc calls through a plain function; all others hold a reference.
Adapter* adapter() noexcept;

// Whether this process is the child of a fork that a traced process made; true once, for the line that says so.
bool take_forked() noexcept;

// Makes the adapter of this process and registers fork handlers, so that a child of the process is not traced unless it
// begins anew.
Adapter& start_adapter(trace::Options, trace::Identity, bool has_python);

// Called by the shim in the child of a fork. If the parent has recorded nothing, the child gets an adapter of its own:
// a rank that trains. It is made where the parent's is, because every op refers to it. What the parent's holds is never
// freed, because threads that are not here may have held its locks.
void begin_in_child();

}  // namespace mp::twin
