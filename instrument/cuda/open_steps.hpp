#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "instrument/cuda/step_tally.hpp"
#include "kernels/numerics/phase.hpp"

namespace mp::raw {

// The steps that are open. Threads that drive a device each share the steps of a number, and one of them may be in the
// next step while others are not. What a thread without a step of its own does belongs to the newest one. Only saw() is
// safe from several threads at once.
class OpenSteps {
public:
    struct Ended {
        std::int64_t number = -1;
        std::shared_ptr<StepTally> tally;
        unsigned phases = 0;  // whose ranges began in it, a bit each
    };

    // A range begins that names a step; `of_thread`: the calling thread is inside of it until it ends. False: another
    // step is open, of which this is a part.
    bool begin(std::int64_t number, bool of_thread);
    // A range that names a step ends. The steps in which no thread is any more, in their order.
    std::vector<Ended> end(std::int64_t number);
    std::vector<Ended> end_of_thread();
    // The program reports the end of a step. This wins over its ranges.
    Ended end_now();
    // All that are left, the newest one last; of no calls: left out.
    std::vector<Ended> end_all();

    // What the calling thread works on. This thread now is one that launches.
    const std::shared_ptr<StepTally>& work();
    const std::shared_ptr<StepTally>& newest();
    // The number of the calling thread's step; -1: it has none.
    std::int64_t own() const;
    bool are_several() const { return open_.size() > 1; }

    // A range of a phase begins on the calling thread.
    void saw(Phase) noexcept;

private:
    struct Open {
        std::shared_ptr<StepTally> tally;
        int ranges = 0;
    };
    static constexpr std::size_t kMostOpen = 16;
    static constexpr std::int64_t kSlots = 32;

    // 0: threads that have no step of their own.
    std::atomic<unsigned>& phases_of(std::int64_t number) noexcept;
    Ended take(std::map<std::int64_t, Open>::iterator);
    std::vector<Ended> take_ended();

    std::map<std::int64_t, Open> open_;
    std::shared_ptr<StepTally> newest_;  // between steps the one to come; null: nothing was done for it yet
    std::array<std::atomic<unsigned>, kSlots + 1> phases_{};
};

}  // namespace mp::raw
