// A driver that runs the kernels' bodies, compiled for the host: tests and the launcher notice no difference but the
// time. Linked in place of driver.cpp and image.cpp.
#include "kernels/cuda/driver.hpp"

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/cuda/image.hpp"
#include "kernels/cuda/nonfinite.hpp"
#include "kernels/cuda/optimizer_body.hpp"
#include "kernels/cuda/paired.hpp"
#include "kernels/cuda/statistics.hpp"
#include "tests/kernels/cuda/fake_driver.hpp"

namespace mp::cuda {

FakeDriver& fake() {
    static FakeDriver state;
    return state;
}

namespace {

struct HostHistogram {
    static constexpr bool kCounts = true;
    U64* bins = nullptr;
    void add(U32 bin) { ++bins[bin]; }
};

template <class Measure>
constexpr bool kHasHistogram = false;
template <DType D>
constexpr bool kHasHistogram<Statistics<D, HostHistogram>> = true;

template <class M, int Bytes>
void run(const void* argument) {
    const auto& list = *static_cast<const List<M::kTensors, Bytes>*>(argument);
    for (U32 block = 0; block < list.head.blocks; ++block) {
        const U32 index = entry_of(list, block);
        const auto share = share_of(list, index, block);
        auto total = M::Total::none();
        for (U32 thread = 0; thread < kThreads; ++thread) {
            M measure;
            if constexpr (kHasHistogram<M>) measure.histogram.bins = list.head.bins + U64{index} * 256;
            total.merge(measure.take(share, thread));
        }
        total.store(list.head.partials + U64{block} * M::Total::kWords);
        if (++list.head.tickets[index] != share.blocks) continue;
        list.head.tickets[index] = 0;
        auto all = M::Total::none();
        for (U32 b = 0; b < share.blocks; ++b)
            all.merge(M::Total::read(list.head.partials + U64{block - share.block + b} * M::Total::kWords));
        const U32 result = list.entries()[index].result;
        M::finish(all, share, static_cast<typename M::Result*>(list.head.results)[result]);
        if constexpr (kHasHistogram<M>) {
            U64* const bins = list.head.bins + U64{index} * 256;
            bins[0] -= M::zeros_in_bin_0(all);
            std::memcpy(list.head.histograms + U64{result} * 256, bins, 256 * sizeof(U64));
            std::memset(bins, 0, 256 * sizeof(U64));
        }
    }
}

template <class Step, int Bytes>
void run_step(const void* argument) {
    const auto& list = *static_cast<const OptimizerList<Step, Bytes>*>(argument);
    if (list.head.found_inf && *list.head.found_inf != 0) return;
    for (U32 block = 0; block < list.head.blocks; ++block) {
        U32 own = 0, blocks = 0;
        const U32 index = entry_at(list, block, own, blocks);
        for (U32 i = 0; i < kThreads; ++i) {
            OptimizerThread<Step> thread{list.head, list.entries[index],
                                         list.head.loss_scale ? *list.head.loss_scale : 1.0f};
            thread.run(own, blocks, i);
            list.head.counts->meant_to_move += thread.counts.meant_to_move;
            list.head.counts->stagnated += thread.counts.stagnated;
        }
    }
}

struct Function {
    std::string name;
    void (*run)(const void*);
};

template <class M>
void enter(std::vector<Function>& all, const std::string& name) {
    all.push_back({name + "_small", run<M, kSmallList>});
    all.push_back({name + "_large", run<M, kLargeList>});
}

template <DType D>
void enter_format(std::vector<Function>& all) {
    const std::string format(name_of(D));
    enter<Statistics<D, NoHistogram>>(all, "statistics_" + format);
    enter<Statistics<D, HostHistogram>>(all, "histogram_" + format);
    enter<Diverged<D>>(all, "divergence_" + format);
    enter<Offenders<D>>(all, "nonfinite_" + format);
}

std::vector<Function>& functions() {
    static std::vector<Function> all = [] {
        std::vector<Function> list;
        enter_format<DType::fp64>(list);
        enter_format<DType::fp32>(list);
        enter_format<DType::fp16>(list);
        enter_format<DType::bf16>(list);
        enter_format<DType::e4m3>(list);
        enter_format<DType::e5m2>(list);
        enter<Stagnated>(list, "standstill");
        list.push_back({"adamw_small", run_step<optim::AdamW, kSmallList>});
        list.push_back({"adamw_large", run_step<optim::AdamW, kLargeList>});
        list.push_back({"sgd_small", run_step<optim::Sgd, kSmallList>});
        list.push_back({"sgd_large", run_step<optim::Sgd, kLargeList>});
        return list;
    }();
    return all;
}

constexpr int kNotFound = 500, kLaunchFailed = 719;

int find_function(CUfunc_st** into, CUmod_st*, const char* name) {
    for (Function& f : functions())
        if (f.name == name) {
            *into = reinterpret_cast<CUfunc_st*>(&f);
            return 0;
        }
    return kNotFound;
}

int launch(CUfunc_st* function, unsigned blocks, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
           Stream, void** arguments, void**) {
    ++fake().launches;
    fake().blocks = blocks;
    if (fake().launch_fails) return kLaunchFailed;
    reinterpret_cast<Function*>(function)->run(arguments[0]);
    return 0;
}

Driver host_driver() {
    Driver d;
    d.init = [](unsigned) { return 0; };
    d.version = [](int* v) { return *v = fake().version, 0; };
    d.device = [](int* device) { return *device = 0, fake().no_context ? 201 : 0; };
    d.attribute = [](int* v, int, int) { return *v = fake().processors, 0; };
    d.load = [](CUmod_st** m, const void*) { return *m = reinterpret_cast<CUmod_st*>(&fake()), 0; };
    d.unload = [](CUmod_st*) { return 0; };
    d.function = find_function;
    d.blocks_per_processor = [](int* n, CUfunc_st*, int, std::size_t) { return *n = 2, 0; };
    d.allocate = [](DeviceAddress* at, std::size_t bytes) {
        if (fake().memory_refused) return 2;
        *at = reinterpret_cast<DeviceAddress>(std::malloc(bytes));
        return 0;
    };
    d.free = [](DeviceAddress at) { return std::free(reinterpret_cast<void*>(at)), 0; };
    d.clear = [](DeviceAddress at, unsigned char value, std::size_t bytes, Stream) {
        return std::memset(reinterpret_cast<void*>(at), value, bytes), 0;
    };
    d.pin = [](void** at, std::size_t bytes, unsigned) { return *at = std::malloc(bytes), 0; };
    d.read = [](void* to, DeviceAddress from, std::size_t bytes, Stream) {
        return std::memcpy(to, reinterpret_cast<void*>(from), bytes), 0;
    };
    d.capturing = [](Stream, int* status) { return *status = fake().capturing ? 1 : 0, 0; };
    d.launch = launch;
    return d;
}

}  // namespace

const Driver& driver() noexcept {
    static const Driver functions_of_host = host_driver();
    return functions_of_host;
}

bool has_image() noexcept { return true; }
const void* image() noexcept { return &fake(); }

}  // namespace mp::cuda
