#include "kernels/cpu/measure.hpp"

// What an adapter does with the archive; only linked, never run.
extern "C" double measured(const void* data, long elements) {
    mp::TensorStats stats;
    mp::Divergence diverged;
    const mp::cpu::TensorView view = mp::cpu::contiguous(data, mp::DType::fp32, elements);
    if (!mp::cpu::statistics_and_divergence(view, view, stats, diverged)) return 0;
    return stats.amax + mp::relative_l2(diverged);
}
