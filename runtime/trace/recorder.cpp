#include "runtime/trace/recorder.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <utility>
#include <variant>

#include "runtime/trace/encode.hpp"
#include "runtime/trace/frame.hpp"

namespace mp::trace {
namespace {

// The program may rely on getting the lowest free descriptor, so ours has a high number.
constexpr int kHighDescriptor = 512;
constexpr int kMaxSameName = 1000;
// The longest time for which a hanging file system may delay the end of the program.
constexpr std::chrono::seconds kPatienceAtEnd{5};
// The last bytes of a budget are reserved for notes, the last eighth for steps without tensors, the eighth
// before it for steps without ops.
constexpr std::uint64_t kReservedForNotes = 4096;
// Names are written again after this many times their size was written. So they take at most 6 % of a file, and
// damage loses at most the names of one such stretch.
constexpr std::uint64_t kRepeatNames = 16;
constexpr std::uint64_t kRepeatNamesAtLeast = 1u << 20;

using Record = std::variant<ProcessRecord, StepRecord, NoteRecord>;

struct Entry {
    Record record;
    std::uint64_t bytes = 0;
};

int open_new(const std::string& directory, const std::string& name, std::string& path) {
    const std::size_t dot = std::min(name.rfind('.'), name.size());
    for (int n = 1; n < kMaxSameName; ++n) {
        path =
            directory + "/" + name.substr(0, dot) + (n > 1 ? "." + std::to_string(n) : "") + name.substr(dot);
        const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
        if (fd >= 0 || errno != EEXIST) return fd;
    }
    return -1;
}

int moved_up(int fd) {
    const int high = ::fcntl(fd, F_DUPFD_CLOEXEC, kHighDescriptor);
    if (high < 0) return fd;
    ::close(fd);
    return high;
}

// A step that is too large for the queue, without its ops and, where needed, without its tensors.
StepRecord shortened(const StepRecord& s, bool with_tensors) {
    StepRecord out;
    out.step = s.step;
    out.optimizer = s.optimizer;
    out.skipped = s.skipped;
    out.has_loss_scale = s.has_loss_scale;
    out.loss_scale = s.loss_scale;
    out.wall_ns = s.wall_ns;
    out.losses = s.losses;
    out.dtypes = s.dtypes;
    out.collectives = s.collectives;
    if (with_tensors) out.tensors = s.tensors;
    out.coverage = s.coverage;
    out.sampled = s.sampled;
    out.places = s.places;
    out.sketches = s.sketches;
    out.times = s.times;
    out.products = s.products;
    out.matmuls = s.matmuls;
    return out;
}

}  // namespace

// Owned by the Recorder and used by the writer thread; leaked when that thread does not end.
struct Recorder::State {
    Limits limits;
    std::string path;
    int fd = -1;
    pid_t pid = 0;
    pthread_t thread{};

    std::mutex mutex;
    std::condition_variable wake;     // for the writer: work, or the end
    std::condition_variable settled;  // for waiting callers: started, drained or finished
    std::deque<Entry> queue;
    std::uint64_t queued_bytes = 0;  // including the entry that is being written
    bool running = false;            // there is a thread
    bool started = false;
    bool busy = false;
    bool ending = false;
    bool finished = false;
    int error = 0;  // errno of the write that stopped the recording

    std::atomic<bool> stopped{false};    // by a failed write or the end of the budget
    std::atomic<bool> abandoned{false};  // the child of a fork
    std::atomic<std::uint64_t> dropped{0};
    std::atomic<std::uint64_t> dropped_by_queue{0};
    std::atomic<std::uint64_t> shortened_by_queue{0};

    // Used by the writer thread only.
    NameTable names;
    std::size_t names_written = 0;
    std::uint64_t names_at = 0;
    std::uint64_t written = 0;
    std::uint64_t told_dropped = 0;
    std::uint64_t told_shortened = 0;
    std::uint32_t sequence = 0;
    bool without_ops = false;
    bool without_tensors = false;
    Step last_step;
    Packer packer;
    std::string payload;
    std::string ops_payload;

    template <typename R>
    bool add(const R& record) noexcept;  // whether it is in the queue
    void add_step(const StepRecord& step) noexcept;
    int start();
    void run() noexcept;
    void handle(const Record& record) noexcept;
    void tell_losses(bool at_end);
    void tell(const std::string& what, std::uint64_t now, std::uint64_t& told, bool at_end);
    bool put_bytes(const char* bytes, std::size_t size);
    bool put_frame(FrameKind kind, std::uint64_t limit);
    bool put_names(std::uint64_t limit);
    bool put_with_ops(const StepRecord& step, std::uint64_t limit);
    void put_step(const StepRecord& step);
    void put_note(std::string text, std::uint64_t count);
    void stop(int reason);
    bool mine() const noexcept { return !abandoned && ::getpid() == pid; }
};

template <typename R>
bool Recorder::State::add(const R& record) noexcept {
    if (abandoned) return false;
    if (stopped) {
        ++dropped;
        return false;
    }
    try {
        Entry entry{Record(record), sizeof(Entry) + memory_of(record)};
        const std::scoped_lock lock(mutex);
        if (ending || queued_bytes + entry.bytes > limits.queue_bytes) {
            ++dropped;
            ++dropped_by_queue;
            return false;
        }
        const std::uint64_t bytes = entry.bytes;
        queue.push_back(std::move(entry));
        queued_bytes += bytes;
        wake.notify_one();
        return true;
    } catch (...) {  // no memory for the copy
        ++dropped;
        ++dropped_by_queue;
        return false;
    }
}

// A step that the queue has no room for loses its ops first, then its tensors.
void Recorder::State::add_step(const StepRecord& step) noexcept {
    if (abandoned || stopped || (step.ops.empty() && step.tensors.empty())) {
        add(step);
        return;
    }
    try {
        std::uint64_t room = 0;
        {
            const std::scoped_lock lock(mutex);
            room = limits.queue_bytes - std::min(queued_bytes, limits.queue_bytes);
        }
        if (sizeof(Entry) + memory_of(step) <= room) {
            add(step);
            return;
        }
        StepRecord part = shortened(step, true);
        if (sizeof(Entry) + memory_of(part) > room) part = shortened(step, false);
        if (add(part)) ++shortened_by_queue;
    } catch (...) {
        ++dropped;
        ++dropped_by_queue;
    }
}

// One write(2), so that only the last frame of a file can be incomplete.
bool Recorder::State::put_bytes(const char* bytes, std::size_t size) {
    ssize_t put = 0;
    do {
        put = ::write(fd, bytes, size);
    } while (put < 0 && errno == EINTR);
    if (put == static_cast<ssize_t>(size)) {
        written += size;
        return true;
    }
    stop(put < 0 ? errno : ENOSPC);
    return false;
}

void Recorder::State::stop(int reason) {
    const std::scoped_lock lock(mutex);
    error = reason;
    stopped = true;
}

bool Recorder::State::put_frame(FrameKind kind, std::uint64_t limit) {
    const std::string& frame = packer.frame(kind, sequence, payload);
    if (frame.empty() || written + frame.size() > limit) return false;
    if (!put_bytes(frame.data(), frame.size())) return false;
    ++sequence;
    return true;
}

bool Recorder::State::put_names(std::uint64_t limit) {
    const bool repeat = names_written > 0 && written - names_at > kRepeatNamesAtLeast &&
                        written - names_at > kRepeatNames * names.bytes();
    if (names_written == names.size() && !repeat) return true;
    std::string step_payload;
    step_payload.swap(payload);
    names.encode(repeat ? 0 : names_written, payload);
    const bool put = put_frame(FrameKind::names, limit);
    payload.swap(step_payload);
    if (!put) return false;
    if (repeat || names_written == 0) names_at = written;
    names_written = names.size();
    return true;
}

// Writes the ops first, so that every readable step has its ops. They are written only when their step fits too.
bool Recorder::State::put_with_ops(const StepRecord& step, std::uint64_t limit) {
    encode(step, names, true, payload);
    encode_ops(step, names, ops_payload);
    if (!put_names(limit)) return false;
    const std::uint64_t step_size = kFrameOverhead + payload.size();
    payload.swap(ops_payload);
    const bool put = put_frame(FrameKind::ops, limit - std::min(limit, step_size));
    payload.swap(ops_payload);
    return put && put_frame(FrameKind::step, limit);
}

void Recorder::State::put_step(const StepRecord& step) {
    const std::uint64_t whole = limits.file_bytes - kReservedForNotes;
    const std::string nearly =
        "the budget of " + std::to_string(limits.file_bytes) + " bytes is nearly used up: ";
    if (!without_ops && !step.ops.empty()) {
        if (put_with_ops(step, whole - whole / 4)) return;
        if (stopped) {
            ++dropped;
            return;
        }
        names.forget(names_written);
        without_ops = true;
        put_note(nearly + "ops are left out of this step and later ones", 1);
    }
    if (!without_tensors && !step.tensors.empty()) {
        encode(step, names, true, payload);
        const std::uint64_t limit = whole - whole / 8;
        if (put_names(limit) && put_frame(FrameKind::step, limit)) return;
        if (stopped) {
            ++dropped;
            return;
        }
        names.forget(names_written);
        without_tensors = true;
        put_note(nearly + "tensors are left out of this step and later ones", 1);
    }
    encode(step, names, false, payload);
    if (put_names(whole) && put_frame(FrameKind::step, whole)) return;
    ++dropped;
    if (stopped) return;
    put_note("the budget of " + std::to_string(limits.file_bytes) + " bytes is used up: recording stopped",
             1);
    stop(0);
}

void Recorder::State::put_note(std::string text, std::uint64_t count) {
    NoteRecord note;
    note.kind = NoteKind::lossy;
    note.step = last_step;
    note.text = std::move(text);
    note.count = count;
    encode(note, payload);
    put_frame(FrameKind::note, limits.file_bytes);
}

void Recorder::State::handle(const Record& record) noexcept {
    try {
        if (stopped) {
            ++dropped;
        } else if (const auto* step = std::get_if<StepRecord>(&record)) {
            last_step = step->step;
            put_step(*step);
        } else {
            const bool process = std::holds_alternative<ProcessRecord>(record);
            if (process) {
                encode(std::get<ProcessRecord>(record), payload);
            } else {
                encode(std::get<NoteRecord>(record), payload);
            }
            if (!put_frame(process ? FrameKind::process : FrameKind::note,
                           limits.file_bytes - kReservedForNotes / 2))
                ++dropped;
        }
    } catch (...) {
        ++dropped;
    }
}

// Records a loss when the queue has room again, then at every doubling, and at the end.
void Recorder::State::tell(const std::string& what, std::uint64_t now, std::uint64_t& told, bool at_end) {
    if (stopped || now == told || (!at_end && now < 2 * told)) return;
    put_note(what + ": the queue of " + std::to_string(limits.queue_bytes) + " bytes was full", now);
    told = now;
}

void Recorder::State::tell_losses(bool at_end) {
    try {
        tell("records were dropped", dropped_by_queue, told_dropped, at_end);
        tell("steps lost their ops or tensors", shortened_by_queue, told_shortened, at_end);
    } catch (...) {  // NOLINT(bugprone-empty-catch)
        // The next call tries again.
    }
}

void Recorder::State::run() noexcept {
    ::pthread_setname_np(::pthread_self(), "mp-trace");
    try {
        const std::string header = file_header();
        put_bytes(header.data(), header.size());
        std::unique_lock lock(mutex);
        started = true;
        settled.notify_all();
        for (;;) {
            wake.wait(lock, [this] { return ending || !queue.empty(); });
            if (queue.empty()) break;
            const Entry entry = std::move(queue.front());
            queue.pop_front();
            busy = true;
            lock.unlock();
            handle(entry.record);
            tell_losses(false);
            lock.lock();
            busy = false;
            queued_bytes -= entry.bytes;
            if (queue.empty()) settled.notify_all();
        }
        lock.unlock();
        tell_losses(true);
    } catch (...) {
        stopped = true;
    }
    const std::scoped_lock lock(mutex);
    started = true;
    finished = true;
    settled.notify_all();
}

// 0 or an error number. The thread inherits the mask: no signal of the program is handled on it, and a write
// past RLIMIT_FSIZE or into a closed pipe is an error code instead of SIGXFSZ or SIGPIPE.
int Recorder::State::start() {
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = ::pthread_create(
        &thread, nullptr,
        [](void* it) -> void* {
            static_cast<State*>(it)->run();
            return nullptr;
        },
        this);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    running = failed == 0;
    return failed;
}

Recorder::Recorder(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<Recorder>> Recorder::open(const std::string& directory, const std::string& name,
                                                 Limits limits) {
    try {
        if (name.empty() || name.find('/') != std::string::npos)
            return Error{"'" + name + "' is not a name for a recording", {}};
        std::unique_ptr<Recorder> recorder(new Recorder(std::make_unique<State>()));
        State& s = *recorder->state_;
        s.limits = limits;
        s.limits.file_bytes = std::max<std::uint64_t>(limits.file_bytes, 4 * kReservedForNotes);
        s.pid = ::getpid();
        const int fd = open_new(directory, name, s.path);
        if (fd < 0) return Error{s.path + ": " + std::strerror(errno), "choose another directory with -o"};
        s.fd = moved_up(fd);
        int error = s.start();
        if (error == 0) {
            std::unique_lock lock(s.mutex);
            s.settled.wait(lock, [&s] { return s.started; });
            error = s.error;
        }
        if (error == 0) return recorder;
        ::unlink(s.path.c_str());
        return Error{s.path + ": " + std::strerror(error), {}};
    } catch (...) {
        return Error{"out of memory", {}};  // short enough for std::string to need no memory
    }
}

Recorder::~Recorder() {
    State& s = *state_;
    if (!s.mine()) {
        static_cast<void>(state_.release());  // its thread is in another process, its locks in any state
        return;
    }
    if (!s.running) {
        if (s.fd >= 0) ::close(s.fd);
        return;
    }
    std::unique_lock lock(s.mutex);
    s.ending = true;
    s.wake.notify_one();
    const bool finished = s.settled.wait_for(lock, kPatienceAtEnd, [&s] { return s.finished; });
    lock.unlock();
    if (!finished) {
        ::pthread_detach(s.thread);
        static_cast<void>(state_.release());
        return;
    }
    ::pthread_join(s.thread, nullptr);
    ::close(s.fd);
}

void Recorder::process(const ProcessRecord& record) noexcept { state_->add(record); }
void Recorder::step(const StepRecord& record) noexcept { state_->add_step(record); }
void Recorder::note(const NoteRecord& record) noexcept { state_->add(record); }

bool Recorder::flush(int milliseconds) noexcept {
    State& s = *state_;
    if (!s.mine()) return false;
    try {
        std::unique_lock lock(s.mutex);
        const bool drained = s.settled.wait_for(lock, std::chrono::milliseconds(milliseconds),
                                                [&s] { return s.finished || (s.queue.empty() && !s.busy); });
        return drained && !s.stopped;
    } catch (...) {
        return false;
    }
}

void Recorder::abandon_after_fork() noexcept {
    State& s = *state_;
    if (s.abandoned.exchange(true)) return;
    ::close(s.fd);
}

std::uint64_t Recorder::dropped() const noexcept { return state_->dropped; }

const std::string& Recorder::path() const noexcept { return state_->path; }

}  // namespace mp::trace
