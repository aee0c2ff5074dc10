#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "instrument/cuda/event_log.hpp"
#include "instrument/cuda/events.hpp"
#include "instrument/cuda/memory_names.hpp"
#include "instrument/cuda/meter.hpp"
#include "instrument/cuda/open_steps.hpp"
#include "instrument/cuda/ranges.hpp"
#include "instrument/cuda/sketches.hpp"
#include "instrument/cuda/skips.hpp"
#include "instrument/cuda/step_tally.hpp"
#include "instrument/cuda/weights.hpp"
#include "runtime/trace/dtype_places.hpp"
#include "runtime/trace/identity.hpp"
#include "runtime/trace/options.hpp"
#include "runtime/trace/recorder.hpp"

namespace mp::raw {

// The recording of one process: adds up calls by place, op and dtype until the step ends, and writes the record of a
// step once all of its figures have come from the device. Safe from any thread. Nothing waits for the device before
// finish().
class Run {
public:
    Run(trace::Options, trace::Identity);

    const trace::Options& options() const noexcept { return options_; }
    // A thread enters a range inside of another place.
    const Place& enter(PlaceId parent, std::string_view range);
    MemoryNames& names() noexcept { return names_; }

    // Around a range that names a step. False: another step is open already, and this is a part of it.
    bool begin_step(std::int64_t number);
    void end_step();
    // The same for a range that may cross threads.
    bool begin_step_apart(std::int64_t number);
    void end_step_apart(std::int64_t number);
    // A program that counts its steps with mptrace_step().
    void step_done(bool skipped, double loss_scale);
    void name_tensor(NamedTensor);

    // Around a call of a library: counts it and measures its inputs, then its result. The ticket connects the two.
    struct Ticket {
        std::uint64_t batch = 0;  // 0: nothing is to be measured
        std::size_t call = 0;
        bool operator==(const Ticket&) const = default;
    };
    Ticket before(PlaceId, const Product&);
    void after(Ticket, const Product&, bool succeeded);
    Ticket before(const Collective&);
    void after(Ticket, const Collective&, bool succeeded);

    // What NCCL chose for a call, after before().
    void chose(const Collective&, const std::string& algorithm);
    // A collective that NCCL reported and whose call was not seen.
    void told(const Collective&, const std::string& algorithm);

    // A kernel that is known by its name alone. Takes no lock under which the driver is called.
    void launched(const char* symbol);
    bool has_launched() const;  // since the last step ended

    void learn_rank(int rank, int ranks);
    // Recorded once per text, with the number of times.
    void note(trace::NoteKind, std::string_view text, std::uint64_t count = 1);

    // Completes and writes what is there. Waits at most two seconds for the device.
    void finish(int status = 0) noexcept;  // of the process, as exit() gets it
    void abandon_after_fork() noexcept;
    // Records nothing more.
    void abandon() noexcept;
    std::int32_t rank() const;
    // Where the recording is; empty: nothing was recorded.
    std::string directory() const;

private:
    // A call whose figures are on their way.
    struct Call {
        std::shared_ptr<StepTally> step;
        bool product = true;
        std::size_t record = 0;  // index in the step's ops or collectives
        std::uint64_t ordinal = 0;
        TensorStats* figures = nullptr;  // of `inputs` tensors, then of the result
        int inputs = 0;
        bool has_result = false;
        cuda::SampledProduct sampled;         // rows 0: no element of it is computed again
        cuda::ProductError* error = nullptr;  // null: not compared
        cuda::RowsError* rows = nullptr;      // of its sketch; null: there is none
        bool is_sketched = false;             // the figures are complete
        const void* into = nullptr;           // the memory of the result
        std::uint64_t allocation = 0;         // that had it then
    };
    // Slots, with the calls that use them.
    struct Batch {
        std::uint64_t id = 0;
        std::unique_ptr<Slots> slots;
        std::vector<Call> calls;
        Meter::Fence fence;
        std::shared_ptr<StepTally> step;            // of the weights
        std::vector<Weights::Compared> weights;     // then there are no calls
        std::map<std::size_t, Sketching> sketches;  // by the index of the call
    };

    bool begin(std::int64_t number, bool of_thread);
    std::uint64_t number_of_step() const;
    Ticket measure(Call, abi::Stream, const cpu::TensorView* inputs);
    void measure_result(Ticket, abi::Stream, const cpu::TensorView&, bool succeeded);
    void expect(Ticket, Call&, const Product&);
    void expect_sketch(Call&, abi::Stream);
    void compare(Ticket, abi::Stream, bool succeeded);
    void sketch(Ticket, const Collective&);
    void sketch_result(Ticket, abi::Stream, bool succeeded);
    // "'logits', byte 512", "allocation 12 of 4096 bytes"; empty: unknown.
    std::string memory_of(const void* at, std::uint64_t allocation) const;
    bool provide_slots();
    void close_batch();
    bool is_sampled() const;
    void look_at_weights(abi::Stream, int device);
    void leave_weights(const std::shared_ptr<StepTally>& ended);
    bool is_of_other_device(const Collective&) const;
    void end_step_locked(const OpenSteps::Ended&, bool ended);
    void add(StepTally&, const Call&) const;
    static void add(StepTally&, std::vector<Weights::Compared>&);
    void drain();
    void write_ready();
    std::vector<trace::DTypePlace> named_places() const;
    bool open();
    void write_notes();
    void note_locked(trace::NoteKind, std::string_view text, std::uint64_t count);
    void add_launches(trace::StepRecord&);

    const trace::Options options_;
    trace::Identity identity_;
    Places places_;
    MemoryNames names_;
    const std::unique_ptr<EventLog> log_;  // null: no events are logged

    // Held while kernels are launched. A launch blocks while the queue of its stream is full, and what the stream waits
    // for may be a launch of another thread, as with NCCL and several GPUs in a process. So no thread waits for long.
    using Lock = std::unique_lock<std::timed_mutex>;
    Lock lock_soon(std::chrono::milliseconds most) const;
    mutable std::timed_mutex mutex_;
    mutable std::atomic<std::uint64_t> missed_{0};  // calls that did not get the lock
    OpenSteps steps_;
    std::deque<std::shared_ptr<StepTally>> ended_;  // in their order, not written
    Batch batch_;                                   // that is being filled
    Ticket sampled_;             // the product whose exact elements are on their way; one at a time
    std::deque<Batch> waiting_;  // for the device
    std::vector<std::unique_ptr<Slots>> free_;
    std::uint64_t batches_ = 0;
    Meter meter_;
    Weights weights_;
    Skips skips_;
    std::map<const void*, trace::DTypePlace> named_;  // the tensors that the program named
    trace::DTypePlaces places_of_steps_{true};
    bool closing_ = false;
    std::map<int, std::shared_ptr<StepTally>>
        weighed_;            // the step before which a device's weights were copied
    std::set<int> devices_;  // that were used
    std::int64_t last_step_ = -1;
    std::int64_t named_step_ = -1;
    bool any_step_ = false;
    std::int64_t written_ = 0;
    std::int64_t step_began_ns_ = 0;
    std::uint64_t unmeasured_ = 0, loose_sums_ = 0;
    bool finished_ = false;

    bool tried_ = false;
    std::unique_ptr<trace::Recorder> recorder_;
    std::string directory_;
    std::map<std::pair<trace::NoteKind, std::string>, std::pair<std::uint64_t, std::int64_t>> notes_;

    mutable std::mutex launch_mutex_;
    std::unordered_map<std::string, std::uint64_t> kernels_;  // by mangled name, over the run
    std::uint64_t launches_ = 0;                              // in this step
};

}  // namespace mp::raw
