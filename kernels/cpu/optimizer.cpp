// Compiled once per instruction set: foreach_target.h includes this file again for each. An object of its own, so that
// adapters, which only measure, do not link it.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/optimizer.cpp"
#include <hwy/foreach_target.h>  // first, before highway.h

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <type_traits>

#include "kernels/cpu/optimizer-inl.hpp"
#include "kernels/cpu/optimizer_table.hpp"

HWY_BEFORE_NAMESPACE();
namespace mp::cpu::HWY_NAMESPACE {

constinit const OptimizerKernels kOptimizers = {&HWY_STR(HWY_NAMESPACE)[2], make_table<AdamWStep>(),
                                                make_table<SgdStep>()};
const OptimizerKernels& optimizers() { return kOptimizers; }

}  // namespace mp::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <cstring>

#include "kernels/cpu/blocks.hpp"
#include "kernels/cpu/float_environment.hpp"

namespace mp::cpu {
namespace {

// The kernels of the instruction set that is in use.
const OptimizerKernels& optimizers_in_use() {
#if HWY_ARCH_X86
#if HWY_TARGETS & HWY_AVX3
    if (std::strcmp(kernels().name, N_AVX3::optimizers().name) == 0) return N_AVX3::optimizers();
#endif
#if HWY_TARGETS & HWY_AVX2
    if (std::strcmp(kernels().name, N_AVX2::optimizers().name) == 0) return N_AVX2::optimizers();
#endif
#endif
    return HWY_STATIC_DISPATCH(optimizers)();
}

bool in_16_bits(DType dtype) { return dtype == DType::fp16 || dtype == DType::bf16; }

bool has_weight_and_gradient(const OptimizerRange& r) {
    const bool gradient = r.gradient && (r.gradient_dtype == DType::fp32 || in_16_bits(r.gradient_dtype));
    return gradient && (r.copy ? in_16_bits(r.copy_dtype) : r.master != nullptr);
}

// Index in the tables; 0 where the values are fp32, or not there.
int index_among_16_bits(DType dtype) { return dtype == DType::fp16 ? 1 : dtype == DType::bf16 ? 2 : 0; }

template <class Settings>
bool run(const OptimizerTable<Settings>& table, const Settings& settings, const OptimizerRange& range,
         const OptimizerPass& pass, optim::StepCounts& into) {
    if (!serves(settings, range)) return false;
    const int copy = range.copy ? index_among_16_bits(range.copy_dtype) : 0;
    const int stochastic = range.copy && pass.stochastic ? 1 : 0;
    const auto& row = table.rows[index_among_16_bits(range.gradient_dtype)];
    const FloatEnvironment environment;
    row.of[copy][(range.master ? 0 : 2) + stochastic](settings, range, pass, into);
    return true;
}

}  // namespace

bool serves(const optim::AdamW&, const OptimizerRange& r) noexcept {
    return has_weight_and_gradient(r) && r.state && r.squares;
}
bool serves(const optim::Sgd& step, const OptimizerRange& r) noexcept {
    return has_weight_and_gradient(r) && (r.state || step.momentum == 0);
}

bool optimize(const optim::AdamW& step, const OptimizerRange& range, const OptimizerPass& pass,
              optim::StepCounts& into) noexcept {
    return run(optimizers_in_use().adamw, step, range, pass, into);
}

bool optimize(const optim::Sgd& step, const OptimizerRange& range, const OptimizerPass& pass,
              optim::StepCounts& into) noexcept {
    return run(optimizers_in_use().sgd, step, range, pass, into);
}

}  // namespace mp::cpu

#endif  // HWY_ONCE
