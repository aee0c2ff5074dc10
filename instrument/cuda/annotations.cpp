// The functions of mptrace.h for programs without torch. The preload, which comes first, forwards to these.

#include "instrument/cuda/activity.hpp"
#include "instrument/cuda/process.hpp"

namespace {

using mp::raw::guarded;
using mp::raw::Run;
using mp::raw::Source;

// The domain of these ranges, which no NVTX domain has.
constexpr std::uint32_t kAnnotations = ~std::uint32_t{0};

}  // namespace

extern "C" {

__attribute__((visibility("default"))) void mptrace_layer_push(const char* name) noexcept {
    Run* const r = mp::raw::run();
    if (!r || !name) return;
    guarded(Source::nvtx, [&] {
        mp::raw::ThreadRanges& ranges = mp::raw::ranges();
        const mp::raw::Place& inner = r->enter(ranges.place, name);
        ranges.push(inner.id, kAnnotations, false);
        mp::raw::activity::moved_to(ranges.place);
    });
}

__attribute__((visibility("default"))) void mptrace_layer_pop() noexcept {
    bool unbalanced = false;
    if (!mp::raw::run()) return;
    mp::raw::ranges().pop(kAnnotations, unbalanced);
    mp::raw::activity::moved_to(mp::raw::ranges().place);
}

__attribute__((visibility("default"))) void mptrace_step(int skipped, double loss_scale) noexcept {
    Run* const r = mp::raw::run();
    if (r) guarded(Source::nvtx, [&] { r->step_done(skipped != 0, loss_scale); });
}

__attribute__((visibility("default"))) void mptrace_tensor(const void* data, int dtype,
                                                           const long long* sizes, int dims, int role,
                                                           const char* name) noexcept {
    Run* const r = mp::raw::run();
    if (!r || !data || !name || dims < 0 || (dims > 0 && !sizes)) return;
    guarded(Source::nvtx, [&] {
        long long elements = 1;
        for (int i = 0; i < dims; ++i) elements *= sizes[i];
        if (elements > 0) r->name_tensor({data, static_cast<mp::DType>(dtype), elements, role, name});
    });
}

}  // extern "C"
