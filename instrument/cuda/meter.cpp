#include "instrument/cuda/meter.hpp"

#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "instrument/cuda/activity.hpp"
#include "instrument/cuda/real.hpp"
#include "kernels/cuda/driver.hpp"
#include "kernels/cuda/measure.hpp"

namespace mp::raw {
namespace {

constexpr std::size_t kMostSlots = 64;
constexpr int kNotReady = 600;                  // CUDA_ERROR_NOT_READY
constexpr unsigned kNoTiming = 2;               // CU_EVENT_DISABLE_TIMING
constexpr unsigned kPortable = 1, kMapped = 2;  // CU_MEMHOSTREGISTER_PORTABLE, _DEVICEMAP
constexpr int kSameAddress = 91;                // CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM
constexpr int kRelaxed = 2;                     // CU_STREAM_CAPTURE_MODE_RELAXED

// What libcuda offers beside what kernels/cuda launches with.
struct More {
    int (*context)(void**) = nullptr;
    int (*context_id)(void*, unsigned long long*) = nullptr;  // CUDA 12
    int (*context_of)(abi::Stream, void**) = nullptr;
    int (*push)(void* context) = nullptr;
    int (*pop)(void** context) = nullptr;
    int (*make_event)(void**, unsigned) = nullptr;
    int (*record)(void*, abi::Stream) = nullptr;
    int (*query)(void*) = nullptr;
    int (*destroy)(void*) = nullptr;
    int (*pin)(void*, std::size_t, unsigned) = nullptr;
    int (*capture_mode)(int*) = nullptr;
    int (*free_memory)(std::size_t* free, std::size_t* all) = nullptr;
    int (*pointer_attribute)(void*, int attribute, unsigned long long at) = nullptr;
    int (*copy)(unsigned long long to, unsigned long long from, std::size_t, abi::Stream) = nullptr;

    bool complete() const {
        return context && make_event && record && query && destroy && pin && free_memory && copy;
    }
};

More found() {
    More m;
    void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return m;
    find(library, "cuCtxGetCurrent", m.context);
    find(library, "cuCtxGetId", m.context_id);
    find(library, "cuStreamGetCtx", m.context_of);
    find(library, "cuCtxPushCurrent_v2", m.push);
    find(library, "cuCtxPopCurrent_v2", m.pop);
    find(library, "cuEventCreate", m.make_event);
    find(library, "cuEventRecord", m.record);
    find(library, "cuEventQuery", m.query);
    find(library, "cuEventDestroy_v2", m.destroy);
    find(library, "cuMemHostRegister_v2", m.pin);
    find(library, "cuMemGetInfo_v2", m.free_memory);
    find(library, "cuMemcpyDtoDAsync_v2", m.copy);
    find(library, "cuPointerGetAttribute", m.pointer_attribute);
    find(library, "cuThreadExchangeStreamCaptureMode", m.capture_mode);
    return m;
}

const More& more() {
    static const More functions = found();
    return functions;
}

// Lets this thread load and allocate while another one records a graph, which such calls would otherwise spoil.
class Relaxed {
public:
    Relaxed() {
        if (more().capture_mode) more().capture_mode(&mode_);
    }
    ~Relaxed() {
        if (more().capture_mode) more().capture_mode(&mode_);
    }
    Relaxed(const Relaxed&) = delete;
    Relaxed& operator=(const Relaxed&) = delete;

private:
    int mode_ = kRelaxed;
};

// Makes the context of a stream current: at the end of a group of NCCL the streams of several devices are used, and the
// context of none of them has to be current.
class InContextOf {
public:
    explicit InContextOf(abi::Stream stream) {
        void *wanted = nullptr, *current = nullptr;
        if (abi::is_default(stream) || !more().context_of || !more().push || !more().pop) return;
        if (more().context_of(stream, &wanted) != 0 || more().context(&current) != 0) return;
        pushed_ = wanted && wanted != current && more().push(wanted) == 0;
    }
    ~InContextOf() {
        void* popped = nullptr;
        if (pushed_) more().pop(&popped);
    }
    InContextOf(const InContextOf&) = delete;
    InContextOf& operator=(const InContextOf&) = delete;

private:
    bool pushed_ = false;
};

// 0: the context does not exist any more. Drivers before CUDA 12 have no ids.
std::uint64_t id_of(void* context) {
    unsigned long long id = 0;
    if (!more().context_id) return reinterpret_cast<std::uintptr_t>(context);
    return more().context_id(context, &id) == 0 ? id : 0;
}

}  // namespace

struct Meter::Gpu {
    void* context = nullptr;
    std::uint64_t id = 0;
    cuda::Measure measure;
    std::map<abi::Stream, cuda::Scratch> scratch;
};

void* Slots::take_bytes(std::size_t bytes) noexcept {
    bytes = (bytes + 15) & ~std::size_t{15};
    if (used_ + bytes > kBytes) return nullptr;
    return static_cast<char*>(at_) + std::exchange(used_, used_ + bytes);
}

Meter::Meter() {
    if (!cuda::has_kernels()) refusal_ = "this mp-trace was built without CUDA kernels";
}

Meter::~Meter() = default;

bool Meter::can_measure() noexcept {
    if (!cuda::has_kernels()) return false;
    if (cuda::driver().complete() && more().complete()) return true;
    if (refusal_.empty()) refusal_ = "no CUDA driver (libcuda.so.1), or one that is too old";
    return false;
}

Allocation Meter::allocation_of(const void* at) noexcept {
    Allocation a;
    const auto ask = more().pointer_attribute;
    const auto address = reinterpret_cast<std::uintptr_t>(at);
    std::size_t bytes = 0;
    bool is_whole = false;
    if (!ask || ask(&a.begin, abi::kRangeStart, address) != 0 || ask(&bytes, abi::kRangeSize, address) != 0)
        return {};
    a.bytes = bytes;
    a.id = allocation_id_of(at);
    if (a.id == 0) a.id = a.begin;
    a.is_whole = ask(&is_whole, abi::kIpcCapable, address) == 0 && is_whole;
    void* pool = nullptr;
    if (ask(&a.device, abi::kDeviceOrdinal, address) != 0) a.device = -1;
    a.is_pooled = !a.is_whole && ask(&pool, abi::kPool, address) == 0 && pool;
    return a;
}

std::uint64_t Meter::extent_of(const void* at, std::uint64_t bytes) noexcept {
    std::uint64_t ids = 0;
    const auto* next = static_cast<const char*>(at);
    for (std::uint64_t left = bytes; left > 0;) {
        const Allocation a = allocation_of(next);
        if (!a.holds(next, 1)) return 0;
        const std::uint64_t here = a.begin + a.bytes - reinterpret_cast<std::uintptr_t>(next);
        ids = ids * 0x100000001b3 + a.id;
        left -= std::min(left, here);
        next += here;
    }
    return ids;
}

std::uint64_t Meter::allocation_id_of(const void* at) noexcept {
    unsigned long long id = 0;
    const auto ask = more().pointer_attribute;
    return ask && ask(&id, abi::kBufferId, reinterpret_cast<std::uintptr_t>(at)) == 0 ? id : 0;
}

int Meter::device() noexcept {
    int device = -1;
    const cuda::Driver& driver = cuda::driver();
    return driver.complete() && driver.device(&device) == 0 ? device : -1;
}

bool Meter::is_below_capability(int capability) noexcept {
    const int here = device();
    if (here < 0) return false;
    const auto [known, fresh] = capabilities_.try_emplace(here, 0);
    if (fresh) {
        int major = 0, minor = 0;
        const cuda::Driver& driver = cuda::driver();
        if (driver.attribute(&major, abi::kCapabilityMajor, here) == 0 &&
            driver.attribute(&minor, abi::kCapabilityMinor, here) == 0)
            known->second = major * 10 + minor;
    }
    return known->second > 0 && known->second < capability;
}

std::unique_ptr<Slots> Meter::slots() noexcept {
    if (!can_measure() || slots_made_ == kMostSlots) return nullptr;
    void* const at =
        ::mmap(nullptr, Slots::kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return nullptr;
    const Relaxed relaxed;
    if (more().pin(at, Slots::kBytes, kPortable | kMapped) != 0) {
        ::munmap(at, Slots::kBytes);
        return nullptr;
    }
    ++slots_made_;
    auto slots = std::make_unique<Slots>();
    slots->at_ = at;
    return slots;
}

Meter::Gpu* Meter::gpu_of_context() noexcept {
    void* context = nullptr;
    if (more().context(&context) != 0 || !context) return nullptr;
    // A reset gives the context a new id and often the same address.
    const std::uint64_t id = id_of(context);
    if (id == 0) return nullptr;
    std::unique_ptr<Gpu>& gpu = gpus_[id];
    if (!gpu) {
        gpu = std::make_unique<Gpu>();
        gpu->context = context;
        gpu->id = id;
        const Relaxed relaxed;
        int device = 0, same = 0;
        const cuda::Driver& driver = cuda::driver();
        const bool addressed =
            driver.device(&device) == 0 && driver.attribute(&same, kSameAddress, device) == 0 && same != 0;
        const cuda::Outcome outcome =
            addressed ? gpu->measure.load() : cuda::Outcome{cuda::Status::unsupported, 0};
        if (!outcome) refusal_ = std::string("the measuring kernels: ") + cuda::name_of(outcome.status);
    }
    return gpu->measure.ready() ? gpu.get() : nullptr;
}

template <class Run>
bool Meter::launch(abi::Stream stream, const Run& run) noexcept {
    try {
        if (!can_measure()) return false;
        const InContextOf stream_is_current(stream);
        int capturing = 0;
        if (cuda::driver().capturing(stream, &capturing) != 0) return false;
        if (capturing != 0) {
            if (refusal_.empty()) refusal_ = "a CUDA graph recorded them";
            return false;
        }
        Gpu* const gpu = gpu_of_context();
        if (!gpu) return false;
        const activity::Ours ours;
        cuda::Scratch& scratch = gpu->scratch[stream];
        if (!scratch.ready()) {
            const Relaxed relaxed;
            if (!scratch.make(stream)) return false;
        }
        if (!run(*gpu, scratch)) return false;
        mark(stream, *gpu);
        return true;
    } catch (const std::exception&) {
        return false;
    }
}

bool Meter::statistics(abi::Stream stream, const cpu::TensorView* views, int count,
                       TensorStats* into) noexcept {
    return launch(stream, [&](const Gpu& gpu, cuda::Scratch& scratch) {
        return bool(gpu.measure.statistics(stream, scratch, views, count, into));
    });
}

bool Meter::expect(abi::Stream stream, const cuda::SampledProduct& product) noexcept {
    return launch(stream, [&](const Gpu& gpu, cuda::Scratch& scratch) {
        return bool(gpu.measure.expect(stream, scratch, product));
    });
}

bool Meter::compare(abi::Stream stream, const cuda::SampledProduct& product,
                    cuda::ProductError* into) noexcept {
    return launch(stream, [&](const Gpu& gpu, cuda::Scratch& scratch) {
        return bool(gpu.measure.compare(stream, scratch, product, into));
    });
}

bool Meter::expect_sketch(abi::Stream stream, const cuda::SampledProduct& product,
                          cuda::RowsError* into) noexcept {
    return launch(stream, [&](const Gpu& gpu, cuda::Scratch& scratch) {
        return bool(gpu.measure.expect_sketch(stream, scratch, product, into));
    });
}

bool Meter::compare_sketch(abi::Stream stream, const cuda::SampledProduct& product,
                           cuda::RowsError* into) noexcept {
    return launch(stream, [&](const Gpu& gpu, cuda::Scratch& scratch) {
        return bool(gpu.measure.compare_sketch(stream, scratch, product, into));
    });
}

bool Meter::sketch(abi::Stream stream, const cuda::SketchedBlocks& blocks, cuda::Sketch* into) noexcept {
    return launch(stream, [&](const Gpu& gpu, cuda::Scratch& scratch) {
        return bool(gpu.measure.sketch(stream, scratch, blocks, into));
    });
}

bool Meter::stagnation(abi::Stream stream, const cpu::TensorView* before, const cpu::TensorView* after,
                       int count, cpu::Stagnation* into) noexcept {
    return launch(stream, [&](const Gpu& gpu, cuda::Scratch& scratch) {
        return bool(gpu.measure.stagnation(stream, scratch, before, after, nullptr, nullptr, count, into));
    });
}

DeviceMemory Meter::memory(abi::Stream stream, std::uint64_t bytes) noexcept {
    DeviceMemory memory;
    const bool made = launch(stream, [&](const Gpu& gpu, cuda::Scratch&) {
        const Relaxed relaxed;
        std::size_t free = 0, all = 0;
        // The program needs it more.
        if (more().free_memory(&free, &all) != 0 || free / 4 < bytes) return false;
        memory.context_ = gpu.id;
        return cuda::driver().allocate(&memory.at_, bytes) == 0;
    });
    if (made) memory.bytes_ = bytes;
    return memory;
}

bool Meter::copy(abi::Stream stream, const DeviceMemory& to, const void* from, std::uint64_t bytes) noexcept {
    return launch(stream, [&](const Gpu& gpu, cuda::Scratch&) {
        return gpu.id == to.context_ &&
               more().copy(to.at_, reinterpret_cast<std::uintptr_t>(from), bytes, stream) == 0;
    });
}

// The event is recorded again after each figure, because the program may destroy the stream at any time.
void Meter::mark(abi::Stream stream, const Gpu& gpu) {
    auto mark = std::find_if(next_.marks_.begin(), next_.marks_.end(), [&](const Fence::Mark& m) {
        return m.stream == stream && m.context_id == gpu.id;
    });
    if (mark == next_.marks_.end()) {
        void* event = nullptr;
        const Relaxed relaxed;
        if (more().make_event(&event, kNoTiming) != 0) {
            next_.valid_ = false;
            return;
        }
        mark = next_.marks_.insert(mark, {stream, event, gpu.context, gpu.id});
    }
    if (more().record(mark->event, stream) != 0) next_.valid_ = false;
}

bool Meter::Fence::passed() noexcept {
    for (; !marks_.empty(); marks_.pop_back()) {
        const Mark& mark = marks_.back();
        // The events of a context end with it.
        const bool alive = id_of(mark.context) == mark.context_id;
        const int code = alive ? more().query(mark.event) : -1;
        if (code == kNotReady) return false;
        if (code != 0) valid_ = false;
        if (alive) more().destroy(mark.event);
    }
    return true;
}

Meter::Fence Meter::fence() { return std::exchange(next_, Fence{}); }

}  // namespace mp::raw
