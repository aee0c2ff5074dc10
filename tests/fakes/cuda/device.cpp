#include "tests/fakes/cuda/device.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "tests/fakes/cuda/streams.hpp"

namespace mp::fake {
namespace {

std::uint64_t now() {
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

// Memory that is mapped twice: once without access rights, for programs, and once for the device. Freed parts are given
// back to the system and not used again.
class Guarded {
public:
    bool used() const { return begin_ != nullptr; }
    bool holds(const void* at) const { return at >= begin_ && at < begin_ + kBytes; }
    char* on_device(const void* at) const {
        return const_cast<char*>(static_cast<const char*>(at)) + (holds(at) ? distance_ : 0);
    }
    // Null: no room.
    char* take(std::size_t bytes) {
        if (bytes > kBytes - taken_) return nullptr;
        return begin_ + std::exchange(taken_, taken_ + bytes);
    }
    void give(char* at, std::size_t bytes) {
        ::fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at - begin_,
                    static_cast<off_t>(bytes));
    }

    Guarded() {
        if (!std::getenv("MP_FAKE_CUDA_GUARDED")) return;
        file_ = ::memfd_create("fake GPU", MFD_CLOEXEC);
        if (file_ < 0 || ::ftruncate(file_, kBytes) != 0) std::abort();
        const auto map = [this](int rights) {
            void* const at = ::mmap(nullptr, kBytes, rights, MAP_SHARED | MAP_NORESERVE, file_, 0);
            if (at == MAP_FAILED) std::abort();
            return static_cast<char*>(at);
        };
        begin_ = map(PROT_NONE);
        distance_ = map(PROT_READ | PROT_WRITE) - begin_;
    }

private:
    static constexpr std::size_t kBytes = std::size_t{8} << 30;
    int file_ = -1;
    char* begin_ = nullptr;
    std::ptrdiff_t distance_ = 0;
    std::size_t taken_ = 0;
};

// One mutex and one condition for the whole device: tests have few streams. Never destroyed, because workers outlive
// main().
struct Device {
    std::mutex mutex;
    std::condition_variable changed;
    std::set<CUstream> streams;
    std::map<int, CUstream> legacy;  // by device
    std::map<const char*, std::size_t> memory, pinned;
    std::map<const char*, std::uint64_t> ids;  // of `memory`
    std::map<const char*, int> owners;         // the devices of `memory`
    std::set<const char*> pooled, mapped;      // among `memory`
    std::uint64_t allocations = 0;
    Guarded guarded;
    std::atomic<Hook> hook{nullptr};
    std::atomic<RanHook> ran{nullptr};
    std::atomic<std::uint32_t> correlations{0};
    useconds_t late = 0;       // before each work of a stream
    std::uint64_t queue = ~0;  // works that wait in a stream; another one blocks its caller

    // A stream that was destroyed has finished its work.
    bool has(CUstream stream) const {
        if (streams.count(stream) != 0) return true;
        return std::any_of(legacy.begin(), legacy.end(),
                           [stream](const auto& l) { return l.second == stream; });
    }

    Device() {
        if (const char* works = std::getenv("MP_FAKE_CUDA_QUEUE")) queue = std::strtoull(works, nullptr, 10);
        if (const char* us = std::getenv("MP_FAKE_CUDA_LATE")) late = static_cast<useconds_t>(std::atoi(us));
    }
};

Device& device() {
    static Device* const only = new Device;
    return *only;
}

void run_stream(CUstream stream) {
    Device& d = device();
    std::unique_lock lock(d.mutex);
    for (;;) {
        d.changed.wait(lock, [&] { return !stream->works.empty() || stream->ended; });
        if (stream->works.empty()) break;
        const Work work = std::move(stream->works.front());
        stream->works.pop_front();
        lock.unlock();
        if (d.late > 0) usleep(d.late);
        work();
        lock.lock();
        ++stream->done;
        d.changed.notify_all();
    }
    lock.unlock();
    delete stream;
}

CUstream start(bool blocking, int device) {
    auto* const stream = new CUstream_st;
    stream->device = device;
    static std::atomic<std::uint32_t> numbers{0};
    stream->number = ++numbers;
    stream->blocking = blocking;
    std::thread(run_stream, stream).detach();
    return stream;
}

// The legacy stream of the current device. Needs the mutex.
CUstream legacy() {
    const int number = std::max(current_device(), 0);
    CUstream& stream = device().legacy[number];
    if (!stream) stream = start(false, number);
    return stream;
}

void push(CUstream stream, Work work) {
    stream->works.push_back(std::move(work));
    ++stream->submitted;
}

void push_wait(CUstream stream, CUstream other, std::uint64_t until) {
    push(stream, [other, until] {
        std::unique_lock lock(device().mutex);
        device().changed.wait(lock, [&] { return !device().has(other) || other->done >= until; });
    });
}

// The legacy stream waits for all blocking streams of its device, and they wait for it.
void push_implicit_waits(CUstream stream) {
    const auto wait_for = [stream](CUstream other) {
        if (other && other->done < other->submitted) push_wait(stream, other, other->submitted);
    };
    const CUstream legacy = device().legacy[stream->device];
    if (stream == legacy) {
        for (CUstream other : device().streams)
            if (other->blocking && other->device == stream->device) wait_for(other);
    } else if (stream->blocking) {
        wait_for(legacy);
    }
}

bool holds(const std::map<const char*, std::size_t>& all, const void* at) {
    auto next = all.upper_bound(static_cast<const char*>(at));
    if (next == all.begin()) return false;
    --next;
    return static_cast<const char*>(at) < next->first + next->second;
}

// The addresses of the device among the words of a kernel's argument.
void put_on_device(std::vector<char>& argument) {
    if (!device().guarded.used()) return;
    for (std::size_t i = 0; i + sizeof(void*) <= argument.size(); i += sizeof(void*)) {
        const void* at = nullptr;
        std::memcpy(&at, argument.data() + i, sizeof at);
        at = on_device(at);
        std::memcpy(argument.data() + i, &at, sizeof at);
    }
}

thread_local int current = -1;  // the device whose context is current
thread_local int selected = 0;  // the device that the runtime makes current where none is
thread_local int depth = 0;

}  // namespace

std::mutex& mutex() { return device().mutex; }

char* on_device(const void* at) { return device().guarded.on_device(at); }

CUstream resolve(CUstream stream) {
    if (stream && stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD) return stream;
    return legacy();
}

CUstreamCaptureMode& capture_mode_of_thread() {
    thread_local CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    return mode;
}

bool forbidden_by_capture() {
    if (capture_mode_of_thread() == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
    Device& d = device();
    const std::lock_guard lock(d.mutex);
    for (CUstream stream : d.streams) {
        if (!stream->capture || stream->mode == CU_STREAM_CAPTURE_MODE_RELAXED) continue;
        if (stream->mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL &&
            stream->capturer != std::this_thread::get_id())
            continue;
        stream->invalid = true;
        return true;
    }
    return false;
}

CUresult make_stream(CUstream* into, bool blocking) {
    *into = start(blocking, current);
    const std::lock_guard lock(mutex());
    device().streams.insert(*into);
    return CUDA_SUCCESS;
}

CUresult end_stream(CUstream stream) {
    const std::lock_guard lock(mutex());
    if (device().streams.erase(stream) == 0) return CUDA_ERROR_INVALID_HANDLE;
    stream->ended = true;
    device().changed.notify_all();
    return CUDA_SUCCESS;
}

CUresult wait_for(CUstream stream, CUstream other, std::uint64_t until) {
    const std::lock_guard lock(mutex());
    push_wait(resolve(stream), other, until);
    device().changed.notify_all();
    return CUDA_SUCCESS;
}

bool has_passed(CUstream stream, std::uint64_t until) {
    const std::lock_guard lock(mutex());
    return !device().has(stream) || stream->done >= until;
}

void block_until(CUstream stream, std::uint64_t until) {
    std::unique_lock lock(mutex());
    device().changed.wait(lock, [&] { return !device().has(stream) || stream->done >= until; });
}

CUresult wait_all() {
    std::vector<std::pair<CUstream, std::uint64_t>> all;
    {
        const std::lock_guard lock(mutex());
        all.emplace_back(legacy(), legacy()->submitted);
        for (CUstream stream : device().streams)
            if (stream->device == current) all.emplace_back(stream, stream->submitted);
    }
    for (const auto& [stream, until] : all) block_until(stream, until);
    return CUDA_SUCCESS;
}

CUresult enqueue(CUstream given, Work work) {
    std::unique_lock lock(mutex());
    const CUstream stream = resolve(given);
    device().changed.wait(lock, [stream] { return stream->submitted - stream->done < device().queue; });
    if (stream->capture) {
        stream->capture->works.push_back(std::move(work));
        return CUDA_SUCCESS;
    }
    push_implicit_waits(stream);
    push(stream, std::move(work));
    device().changed.notify_all();
    return CUDA_SUCCESS;
}

CUresult wait(CUstream given) {
    CUstream stream = nullptr;
    std::uint64_t until = 0;
    {
        const std::lock_guard lock(mutex());
        stream = resolve(given);
        if (stream->capture) {
            stream->invalid = true;
            return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
        push_implicit_waits(stream);
        until = stream->submitted;
        device().changed.notify_all();
    }
    block_until(stream, until);
    return CUDA_SUCCESS;
}

Announced::Announced(const Call& call) : call_(call), hook_(device().hook.load()) {
    call_.correlation = ++device().correlations;
    call_.data = &data_;
    tell(true);
}
Announced::~Announced() { tell(false); }

// The subscriber's own calls are calls from outside.
void Announced::tell(bool enter) {
    if (!hook_) return;
    const int before = std::exchange(inside(), 0);
    hook_(enter, call_);
    inside() = before;
}

CUresult launch(CUfunction function, const cuuint32_t (&grid)[3], const cuuint32_t (&block)[3],
                unsigned shared, CUstream stream, void** arguments, void** extra) {
    CUresult result = CUDA_SUCCESS;
    const LaunchParameters parameters{
        function, {grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]}, shared, stream, arguments,
        extra};
    const Announced announced(
        {kCbidLaunchKernel, "cuLaunchKernel", function->name.c_str(), &parameters, &result, 0, nullptr});
    if (current < 0) return result = CUDA_ERROR_INVALID_CONTEXT;
    if (!is_of_current(stream) || (function->device >= 0 && function->device != current))
        return result = CUDA_ERROR_INVALID_HANDLE;
    auto copies = std::make_shared<std::vector<std::vector<char>>>();
    for (std::size_t i = 0; i < function->sizes.size(); ++i) {
        const char* const from = static_cast<const char*>(arguments[i]);
        copies->emplace_back(from, from + function->sizes[i]);
    }
    Ran ran{function->name.c_str(),      announced.correlation(),       0, 0, 0,
            {grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]}};
    const unsigned threads = grid[0] * grid[1] * grid[2] * block[0] * block[1] * block[2];
    return result = enqueue(stream, [function, copies, ran, threads]() mutable {
               std::vector<void*> pointers;
               for (std::vector<char>& copy : *copies) put_on_device(copy);
               for (std::vector<char>& copy : *copies) pointers.push_back(copy.data());
               ran.start = now();
               function->run(threads, pointers.data());
               ran.end = now();
               if (const RanHook hook = device().ran.load()) hook(ran);
           });
}

CUresult allocate(CUdeviceptr* into, std::size_t bytes, bool from_pool) {
    *into = 0;
    if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    if (!from_pool && forbidden_by_capture()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    const std::size_t whole = (bytes + 511) / 512 * 512;
    const std::lock_guard lock(mutex());
    Guarded& guarded = device().guarded;
    char* const at =
        guarded.used() ? guarded.take(whole) : static_cast<char*>(std::aligned_alloc(512, whole));
    if (!at) return CUDA_ERROR_OUT_OF_MEMORY;
    std::memset(on_device(at), 0xA5, bytes);  // a program that forgets to fill its memory notices
    device().memory[at] = bytes;
    device().ids[at] = ++device().allocations;
    device().owners[at] = std::max(current, 0);
    if (from_pool) device().pooled.insert(at);
    *into = reinterpret_cast<CUdeviceptr>(at);
    return CUDA_SUCCESS;
}

CUresult release(CUdeviceptr at) {
    wait_all();
    return forget(at);
}

CUresult forget(CUdeviceptr at) {
    const std::lock_guard lock(mutex());
    const auto known = device().memory.find(reinterpret_cast<const char*>(at));
    if (known == device().memory.end()) return CUDA_ERROR_INVALID_VALUE;
    if (device().guarded.used())
        device().guarded.give(reinterpret_cast<char*>(at), known->second);
    else
        std::free(reinterpret_cast<void*>(at));
    device().pooled.erase(known->first);
    device().memory.erase(known);
    return CUDA_SUCCESS;
}

namespace {

bool is_in(const std::set<const char*>& some, const void* at) {
    const std::lock_guard lock(mutex());
    const auto next = device().memory.upper_bound(static_cast<const char*>(at));
    return next != device().memory.begin() && some.count(std::prev(next)->first) != 0;
}

}  // namespace

bool is_pooled(const void* at) { return is_in(device().pooled, at); }
bool is_mapped(const void* at) { return is_in(device().mapped, at); }

CUresult add_mapping(CUdeviceptr at, std::size_t bytes) {
    const std::lock_guard lock(mutex());
    const auto* const begin = reinterpret_cast<const char*>(at);
    if (holds(device().memory, begin)) return CUDA_ERROR_INVALID_VALUE;
    device().memory[begin] = bytes;
    device().ids[begin] = ++device().allocations;
    device().owners[begin] = std::max(current, 0);
    device().mapped.insert(begin);
    return CUDA_SUCCESS;
}

CUresult remove_mapping(CUdeviceptr at, std::size_t bytes) {
    wait_all();
    const std::lock_guard lock(mutex());
    const auto known = device().memory.find(reinterpret_cast<const char*>(at));
    if (known == device().memory.end() || known->second != bytes) return CUDA_ERROR_INVALID_VALUE;
    device().mapped.erase(known->first);
    device().memory.erase(known);
    return CUDA_SUCCESS;
}

CUresult add_pinned(void* at, std::size_t bytes) {
    const std::lock_guard lock(mutex());
    device().pinned[static_cast<const char*>(at)] = bytes;
    return CUDA_SUCCESS;
}

CUresult remove_pinned(void* at) {
    wait_all();
    const std::lock_guard lock(mutex());
    const bool known = device().pinned.erase(static_cast<const char*>(at)) != 0;
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult pin(void** into, std::size_t bytes) {
    *into = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    return *into ? add_pinned(*into, bytes) : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult unpin(void* at) {
    const CUresult result = remove_pinned(at);
    if (result == CUDA_SUCCESS) std::free(at);
    return result;
}

Memory kind_of(const void* at) {
    const std::lock_guard lock(mutex());
    if (holds(device().memory, at)) return Memory::device;
    return holds(device().pinned, at) ? Memory::pinned : Memory::pageable;
}

bool range_of(const void* at, const char** base, std::size_t* bytes, std::uint64_t* id, int* owner) {
    const std::lock_guard lock(mutex());
    if (!holds(device().memory, at)) return false;
    const auto found = std::prev(device().memory.upper_bound(static_cast<const char*>(at)));
    *base = found->first;
    *bytes = found->second;
    if (id) *id = device().ids[found->first];
    if (owner) *owner = device().owners[found->first];
    return true;
}

CUresult copy(void* to, const void* from, std::size_t bytes, CUstream stream) {
    if (bytes == 0) return CUDA_SUCCESS;
    if (kind_of(from) == Memory::pageable) {  // staged: the program may change its memory at once
        const char* const start = static_cast<const char*>(from);
        auto staged = std::make_shared<std::vector<char>>(start, start + bytes);
        return enqueue(stream, [to, staged, bytes] { std::memcpy(on_device(to), staged->data(), bytes); });
    }
    const CUresult result =
        enqueue(stream, [to, from, bytes] { std::memmove(on_device(to), on_device(from), bytes); });
    return result == CUDA_SUCCESS && kind_of(to) == Memory::pageable ? wait(stream) : result;
}

CUresult initialise() {
    static std::atomic<bool> done{false};
    if (done.exchange(true)) return CUDA_SUCCESS;
    const char* const path = std::getenv("CUDA_INJECTION64_PATH");
    void* const library = path ? dlopen(path, RTLD_NOW | RTLD_GLOBAL) : nullptr;
    if (library)
        if (auto* const begin = reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"))) begin();
    return CUDA_SUCCESS;
}

void make_current() {
    initialise();
    if (current < 0) current = selected;
}
void select_device(int number) {
    initialise();
    current = selected = number;
}
int& inside() { return depth; }
int current_device() { return current; }
void set_current(int number) { current = number; }

bool is_of_current(CUstream stream) {
    const std::lock_guard lock(mutex());
    return resolve(stream)->device == current;
}

void set_hook(Hook hook) { device().hook = hook; }
void set_ran_hook(RanHook hook) { device().ran = hook; }

}  // namespace mp::fake
