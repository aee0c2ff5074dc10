// Compiled once per instruction set: foreach_target.h includes this file again for each. CPUs without AVX2
// (before 2013) use the portable code.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/blocks.cpp"
#include <hwy/foreach_target.h>  // first, before highway.h

#include <hwy/highway.h>

#include "kernels/cpu/blocks.hpp"
#include "kernels/cpu/divergence-inl.hpp"
#include "kernels/cpu/exponent_counters-inl.hpp"
#include "kernels/cpu/formats-inl.hpp"
#include "kernels/cpu/histogram-inl.hpp"
#include "kernels/cpu/quick_divergence-inl.hpp"
#include "kernels/cpu/short_sums-inl.hpp"
#include "kernels/cpu/statistics-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace mp::cpu::HWY_NAMESPACE {

template <class F>
constexpr void enter(Kernels& table) {
    constexpr int at = index_of(F::kDType);
    table.statistics[at] = statistics_of_block<F>;
    table.divergence[at][0] = divergence_of_block<F, Fp64>;
    table.divergence[at][1] = divergence_of_block<F, Fp32>;
    table.nonfinite[at] = nonfinite_in_block<F>;
    table.widen[at] = widen_block<F>;
}

constexpr Kernels make_table() {
    Kernels t;
    t.name = &HWY_STR(HWY_NAMESPACE)[2];  // without the "N_"
    enter<Fp64>(t);
    enter<Fp32>(t);
    enter<Fp16>(t);
    enter<Bf16>(t);
    enter<E4m3>(t);
    enter<E5m2>(t);
    return t;
}

constinit const Kernels kTable = make_table();
const Kernels& table() { return kTable; }

}  // namespace mp::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace mp::cpu {
namespace {

// Uses the compiler's runtime, not libhwy: the archive is loaded into other programs, where each further
// library may conflict. The lists are the features for which Highway compiles its targets.
#if HWY_ARCH_X86
bool runs_avx2() {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("f16c") &&
           __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
}
bool runs_avx3() {
    return runs_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd");
}
#endif

const Kernels* in_use = nullptr;

}  // namespace

int available(const Kernels* (&sets)[kMaxInstructionSets]) noexcept {
    int count = 0;
#if HWY_ARCH_X86
    __builtin_cpu_init();
#if HWY_TARGETS & HWY_AVX3
    if (runs_avx3()) sets[count++] = &N_AVX3::table();
#endif
#if HWY_TARGETS & HWY_AVX2
    if (runs_avx2()) sets[count++] = &N_AVX2::table();
#endif
#endif
    sets[count++] = &HWY_STATIC_DISPATCH(table)();
    return count;
}

const Kernels& kernels() noexcept {
    const Kernels* chosen = __atomic_load_n(&in_use, __ATOMIC_ACQUIRE);
    if (chosen) return *chosen;
    const Kernels* sets[kMaxInstructionSets] = {};
    available(sets);
    use(*sets[0]);
    return *sets[0];
}

void use(const Kernels& set) noexcept { __atomic_store_n(&in_use, &set, __ATOMIC_RELEASE); }

}  // namespace mp::cpu

#endif  // HWY_ONCE
