// Compiled once per instruction set: foreach_target.h includes this file again for each. An object of its own, so that
// adapters, which only measure, do not link it.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/optimizer.cpp"
#include <hwy/foreach_target.h>  // first, before highway.h

#include <hwy/cache_control.h>
#include <hwy/highway.h>

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

// Of the instruction set that is in use.
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

// Index in the tables; -1 for another dtype. `none` has the index 0.
int index_among(DType dtype, DType none) {
    return dtype == none ? 0 : dtype == DType::fp16 ? 1 : dtype == DType::bf16 ? 2 : -1;
}

template <class Settings>
bool run(const OptimizerTable<Settings>& table, const Settings& settings, const OptimizerRange& range,
         const OptimizerPass& pass, optim::StepCounts& into) {
    const int gradient = index_among(range.gradient_dtype, DType::fp32);
    const int copy = range.copy ? index_among(range.copy_dtype, DType::unknown) : 0;
    if (range.gradient == nullptr || gradient < 0 || copy < 0) return false;
    const int stochastic = range.copy && pass.stochastic ? 1 : 0;
    const auto step = table.rows[gradient].of[copy][(range.master ? 0 : 2) + stochastic];
    if (step == nullptr) return false;
    const FloatEnvironment environment;
    step(settings, range, pass, into);
    return true;
}

}  // namespace

bool optimize(const optim::AdamW& step, const OptimizerRange& range, const OptimizerPass& pass,
              optim::StepCounts& into) noexcept {
    if (range.state == nullptr || range.squares == nullptr) return false;
    return run(optimizers_in_use().adamw, step, range, pass, into);
}

bool optimize(const optim::Sgd& step, const OptimizerRange& range, const OptimizerPass& pass,
              optim::StepCounts& into) noexcept {
    if (range.state == nullptr && step.momentum != 0) return false;
    return run(optimizers_in_use().sgd, step, range, pass, into);
}

}  // namespace mp::cpu

#endif  // HWY_ONCE
