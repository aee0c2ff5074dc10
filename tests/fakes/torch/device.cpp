// Streams, events, memory and random numbers of the device.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "tests/fakes/cuda/device.hpp"
#include "tests/fakes/torch/late_device.hpp"

namespace mp::late {
namespace {

std::atomic<std::uint64_t> synchronisations{0};

void check(CUresult result, const char* what) {
    TORCH_CHECK(result == CUDA_SUCCESS, "late: ", what, " failed: ", static_cast<int>(result));
}

// ---- Streams. Number 0 is the legacy stream, whose handle is null. ------------------------------------

constexpr int kPool = 8;
constexpr int kOfCollectives = kPool + 1;

CUstream of_pool(c10::StreamId id) {
    static std::mutex mutex;
    static auto* const streams = new std::vector<CUstream>(kOfCollectives + 1);
    const std::lock_guard lock(mutex);
    CUstream& stream = streams->at(static_cast<std::size_t>(id));
    const fake::Inside inside;
    if (id != 0 && !stream) check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "a stream");
    return stream;
}

thread_local c10::StreamId current = 0;

c10::Stream stream_of(c10::StreamId id) {
    fake::make_current();
    return c10::Stream(c10::Stream::UNSAFE, c10::Device(kType, 0), id);
}

// MP_LATE_EVENTS=never: events that are asked whether they have passed say no, as those of a device that hangs do.
bool never_passes() {
    static const bool never = std::getenv("MP_LATE_EVENTS") != nullptr;
    return never;
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
    c10::DeviceType type() const override { return kType; }
    c10::Device exchangeDevice(c10::Device) const override { return getDevice(); }
    c10::Device getDevice() const override { return {kType, 0}; }
    void setDevice(c10::Device) const override { fake::make_current(); }
    void uncheckedSetDevice(c10::Device) const noexcept override { fake::make_current(); }
    c10::Stream getStream(c10::Device) const override { return stream_of(current); }
    c10::Stream getDefaultStream(c10::Device) const override { return stream_of(0); }
    c10::Stream getNewStream(c10::Device, int) const override {
        static std::atomic<int> next{0};
        return stream_of(1 + next++ % kPool);
    }
    c10::Stream getStreamFromGlobalPool(c10::Device d, bool) const override { return getNewStream(d, 0); }
    c10::Stream exchangeStream(c10::Stream stream) const override {
        return stream_of(std::exchange(current, stream.id()));
    }
    void* getStreamNativeHandle(const c10::Stream stream) const override { return native(stream); }

    void record(void** event, const c10::Stream& stream, const c10::DeviceIndex,
                const c10::EventFlag) const override {
        fake::make_current();
        const fake::Inside inside;
        if (!*event) check(cuEventCreate(reinterpret_cast<CUevent*>(event), 0), "an event");
        check(cuEventRecord(static_cast<CUevent>(*event), native(stream)), "recording");
    }
    void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
        fake::make_current();
        const fake::Inside inside;
        if (event) cuEventDestroy(static_cast<CUevent>(event));
    }
    void block(void* event, const c10::Stream& stream) const override {
        fake::make_current();
        const fake::Inside inside;
        if (event) check(cuStreamWaitEvent(native(stream), static_cast<CUevent>(event), 0), "waiting");
    }
    bool queryEvent(void* event) const override {
        fake::make_current();
        const fake::Inside inside;
        return !event || (!never_passes() && cuEventQuery(static_cast<CUevent>(event)) == CUDA_SUCCESS);
    }
    void synchronizeEvent(void* event) const override {
        ++synchronisations;
        fake::make_current();
        const fake::Inside inside;
        while (event && never_passes()) std::this_thread::sleep_for(std::chrono::hours(1));
        if (event) check(cuEventSynchronize(static_cast<CUevent>(event)), "waiting for an event");
    }
    bool queryStream(const c10::Stream& stream) const override {
        fake::make_current();
        const fake::Inside inside;
        return cuStreamQuery(native(stream)) == CUDA_SUCCESS;
    }
    void synchronizeStream(const c10::Stream& stream) const override { synchronise(stream); }
    void synchronizeDevice(const c10::DeviceIndex) const override {
        ++synchronisations;
        drain();
    }
    void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
        record_stream(data, stream);
    }
    c10::DeviceIndex deviceCount() const noexcept override { return 1; }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

// ---- Memory. ------------------------------------------------------------------------------------------

// As torch's caching allocator: freed memory serves the next allocation on its stream at once. Here the device
// overwrites it first, so a reader on another stream that nobody recorded gets garbage.
class Memory final : public c10::Allocator {
public:
    c10::DataPtr allocate(std::size_t bytes) override {
        if (bytes == 0) return {nullptr, nullptr, nullptr, c10::Device(kType, 0)};
        std::size_t size = 512;
        while (size < bytes) size *= 2;
        const std::lock_guard lock(mutex_);
        TORCH_CHECK_WITH(OutOfMemoryError, used_ + size <= limit(), "late: out of memory: ", used_, " of ",
                         limit(), " bytes are in use, ", size, " are wanted");
        used_ += size;
        most_ = std::max(most_, used_);
        fake::make_current();
        const fake::Inside inside;
        reuse();
        std::vector<void*>& free = free_[{late::current, size}];
        void* at = nullptr;
        if (free.empty()) {
            at = carve(size);
        } else {
            at = free.back();
            free.pop_back();
        }
        blocks_[at] = {size, late::current, {}};
        return {at, at, &Memory::release, c10::Device(kType, 0)};
    }
    c10::DeleterFnPtr raw_deleter() const override { return &Memory::release; }
    void copy_data(void* to, const void* from, std::size_t bytes) const override {
        fake::make_current();
        const fake::Inside inside;
        check(fake::copy(to, from, bytes, native(current_stream())), "a copy");
    }

    void record(const void* at, c10::StreamId stream) {
        const std::lock_guard lock(mutex_);
        const auto block = blocks_.find(const_cast<void*>(at));
        if (block != blocks_.end() && block->second.stream != stream) block->second.users.insert(stream);
    }

    std::size_t most() {
        const std::lock_guard lock(mutex_);
        return most_;
    }

    static Memory& only() {
        static Memory* const memory = new Memory;
        return *memory;
    }

private:
    struct Block {
        std::size_t size = 0;
        c10::StreamId stream = 0;
        std::set<c10::StreamId> users{};
    };

    // MP_LATE_MEMORY: the bytes of the device; MP_LATE_MEMORY_OF: the rank for which that holds, else all.
    static std::size_t limit() {
        static const std::size_t bytes = [] {
            const char* const given = std::getenv("MP_LATE_MEMORY");
            const char* const of = std::getenv("MP_LATE_MEMORY_OF");
            const char* const rank = std::getenv("RANK");
            const bool holds = given && !(of && rank && std::strcmp(of, rank) != 0);
            return holds ? static_cast<std::size_t>(std::atoll(given)) : ~std::size_t{0};
        }();
        return bytes;
    }

    void* carve(std::size_t size) {
        constexpr std::size_t kChunk = std::size_t{32} << 20;
        if (size > left_) {
            fake::make_current();
            const fake::Inside inside;
            CUdeviceptr at = 0;
            const std::size_t chunk = std::max(kChunk, size);
            check(fake::allocate(&at, chunk), "allocating");
            next_ = reinterpret_cast<char*>(at);
            left_ = chunk;
        }
        left_ -= size;
        return std::exchange(next_, next_ + size);
    }

    static void release(void* at) {
        fake::make_current();
        const fake::Inside inside;
        Memory& memory = only();
        const std::lock_guard lock(memory.mutex_);
        const Block block = memory.blocks_.extract(at).mapped();
        memory.used_ -= block.size;
        std::vector<CUevent> readers;
        for (const c10::StreamId user : block.users) {
            cuEventCreate(&readers.emplace_back(), 0);
            cuEventRecord(readers.back(), of_pool(user));
        }
        memory.read_.push_back({at, block, std::move(readers)});
        memory.reuse();
    }

    // Freed memory whose readers are done.
    void reuse() {
        std::erase_if(read_, [this](Read& read) {
            for (const CUevent event : read.readers)
                if (cuEventQuery(event) != CUDA_SUCCESS) return false;
            for (const CUevent event : read.readers) cuEventDestroy(event);
            fake::enqueue(of_pool(read.block.stream), [at = read.at, size = read.block.size] {
                std::memset(fake::on_device(at), 0xA5, size);
            });
            free_[{read.block.stream, read.block.size}].push_back(read.at);
            return true;
        });
    }

    struct Read {
        void* at = nullptr;
        Block block{};
        std::vector<CUevent> readers{};  // on other streams
    };

    std::mutex mutex_;
    std::map<void*, Block> blocks_;
    std::vector<Read> read_;
    std::map<std::pair<c10::StreamId, std::size_t>, std::vector<void*>> free_;
    char* next_ = nullptr;
    std::size_t left_ = 0;
    std::size_t used_ = 0, most_ = 0;
};

// Allocates host memory that the device can read.
class Pinned final : public c10::Allocator {
public:
    c10::DataPtr allocate(std::size_t bytes) override {
        const fake::Inside inside;
        void* at = nullptr;
        if (bytes > 0) check(fake::pin(&at, bytes), "pinning");
        return {at, at, &Pinned::release, c10::Device(c10::DeviceType::CPU)};
    }
    c10::DeleterFnPtr raw_deleter() const override { return &Pinned::release; }
    void copy_data(void* to, const void* from, std::size_t bytes) const override {
        std::memcpy(to, from, bytes);
    }

private:
    static void release(void* at) {
        const fake::Inside inside;
        drain();  // work that reads it may not have run
        fake::unpin(at);
    }
};

const struct SetMemory {
    SetMemory() { c10::SetAllocator(kType, &Memory::only(), 1); }
} set_memory;

// ---- Random numbers. ----------------------------------------------------------------------------------

// The state of the host alone decides what an op draws, however late it runs: a seed, and the number of the op.
struct Numbers final : c10::GeneratorImpl {
    Numbers() : GeneratorImpl(c10::Device(kType, 0), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)) {}

    void set_current_seed(std::uint64_t seed) override { seed_ = seed, offset_ = 0; }
    void set_offset(std::uint64_t offset) override { offset_ = offset; }
    std::uint64_t get_offset() const override { return offset_; }
    std::uint64_t current_seed() const override { return seed_; }
    std::uint64_t seed() override { return seed_; }
    void set_state(const c10::TensorImpl& state) override {
        const auto* const words = static_cast<const std::uint64_t*>(state.data());
        seed_ = words[0], offset_ = words[1];
    }
    c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
        const at::Tensor state = at::detail::empty_cpu({2 * sizeof(std::uint64_t)}, at::kByte);
        auto* const words = static_cast<std::uint64_t*>(state.mutable_data_ptr());
        words[0] = seed_, words[1] = offset_;
        return state.getIntrusivePtr();
    }
    std::uint64_t next() { return seed_ * 0x9E3779B97F4A7C15ull + ++offset_; }

protected:
    Numbers* clone_impl() const override {
        auto* const copy = new Numbers;
        copy->seed_ = seed_, copy->offset_ = offset_;
        return copy;
    }

private:
    std::uint64_t seed_ = c10::default_rng_seed_val, offset_ = 0;
};

const at::Generator& default_generator() {
    static const auto* const generator = new at::Generator(at::make_generator<Numbers>());
    return *generator;
}

struct Hooks final : at::PrivateUse1HooksInterface {
    bool isBuilt() const override { return true; }
    bool isAvailable() const override { return true; }
    bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
    c10::DeviceIndex deviceCount() const override { return 1; }
    c10::DeviceIndex getCurrentDevice() const override { return 0; }
    void setCurrentDevice(c10::DeviceIndex) const override {}
    c10::DeviceIndex exchangeDevice(c10::DeviceIndex) const override { return 0; }
    c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex) const override { return 0; }
    const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override { return default_generator(); }
    at::Generator getNewGenerator(c10::DeviceIndex) const override { return at::make_generator<Numbers>(); }
    c10::Allocator* getPinnedMemoryAllocator() const override {
        static auto* const pinned = new Pinned;
        return pinned;
    }
    bool isPinnedPtr(const void* at) const override { return fake::kind_of(at) == fake::Memory::pinned; }
    c10::Device getDeviceFromPtr(void*) const override { return {kType, 0}; }
    void resizePrivateUse1Bytes(const c10::Storage& storage, std::size_t bytes) const override {
        c10::DataPtr fresh = Memory::only().allocate(bytes);
        const std::size_t kept = std::min(bytes, storage.nbytes());
        if (kept > 0) Memory::only().copy_data(fresh.get(), storage.data(), kept);
        storage.set_data_ptr_noswap(std::move(fresh));
        storage.unsafeGetStorageImpl()->set_nbytes(bytes);
    }
};

const struct SetHooks {
    SetHooks() { at::RegisterPrivateUse1HooksInterface(new Hooks); }
} set_hooks;

}  // namespace

c10::Stream current_stream() { return stream_of(current); }
c10::Stream stream_of_collectives() { return stream_of(kOfCollectives); }

CUstream native(const c10::Stream& stream) { return of_pool(stream.id()); }

void synchronise(const c10::Stream& stream) {
    ++synchronisations;
    fake::make_current();
    const fake::Inside inside;
    check(fake::wait(native(stream)), "waiting");
}

void drain() {
    fake::make_current();
    const fake::Inside inside;
    check(cuCtxSynchronize(), "waiting");
}

c10::Allocator* allocator() { return &Memory::only(); }

void record_stream(const c10::DataPtr& data, const c10::Stream& stream) {
    Memory::only().record(data.get(), stream.id());
}

at::Generator next_numbers(const std::optional<at::Generator>& given) {
    at::Generator generator = given && given->defined() ? *given : default_generator();
    const std::lock_guard lock(generator.mutex());
    return at::detail::createCPUGenerator(static_cast<Numbers*>(generator.unsafeGetGeneratorImpl())->next());
}

}  // namespace mp::late

// For late.py, so that asking is no op of torch.
extern "C" __attribute__((visibility("default"))) std::uint64_t late_synchronisations() {
    return mp::late::synchronisations;
}
extern "C" __attribute__((visibility("default"))) std::uint64_t late_most_memory() {
    return mp::late::Memory::only().most();
}
extern "C" __attribute__((visibility("default"))) void late_seed(std::uint64_t seed) {
    at::detail::getPrivateUse1Hooks().getDefaultGenerator(0).unsafeGetGeneratorImpl()->set_current_seed(seed);
}
