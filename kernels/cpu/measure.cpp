#include "kernels/cpu/measure.hpp"

#include "kernels/cpu/blocks.hpp"
#include "kernels/cpu/float_environment.hpp"
#include "kernels/cpu/walk.hpp"
#include "kernels/numerics/float_format.hpp"

namespace mp::cpu {
namespace {

bool wide(const TensorView& view) { return view.dtype == DType::fp32 || view.dtype == DType::fp64; }

bool comparable(const TensorView& real, const TensorView& twin) {
    return usable(real) && usable(twin) && wide(twin) && same_sizes(real, twin);
}

bool finite(double x) { return x - x == 0; }
double magnitude(double x) { return x < 0 ? -x : x; }

// Half of the distance to the next value of the format at x: a smaller addend is rounded away.
double half_ulp(const FloatFormat& format, double x) {
    const int field = static_cast<int>(__builtin_bit_cast(std::uint64_t, x) >> 52 & 0x7FF) - 1023;
    const int lowest = min_exponent(format);
    const int exponent = (field > lowest ? field : lowest) - format.mantissa_bits - 1;
    return exponent < -1074 ? 0 : __builtin_ldexp(1.0, exponent);
}

struct Moves {
    const double* before = nullptr;
    const double* after = nullptr;
    const double* moved_before = nullptr;  // null: every element was meant to move
    const double* moved_after = nullptr;
};

void count_moves(const FloatFormat& format, const Moves& m, std::size_t n, Stagnation& into) {
    into.count += n;
    for (std::size_t i = 0; i < n; ++i) {
        const double moved = m.after[i] - m.before[i];
        const double wanted = m.moved_before ? m.moved_after[i] - m.moved_before[i] : 0;
        if (!finite(moved) || !finite(wanted) || (m.moved_before && wanted == 0)) continue;
        ++into.meant_to_move;
        into.wanted_squares += wanted * wanted;
        into.moved_dot += moved * wanted;
        if (moved != 0) continue;
        ++into.unmoved;
        into.below_half_ulp += m.moved_before && magnitude(wanted) < half_ulp(format, m.before[i]);
    }
}

}  // namespace

bool statistics(const TensorView& view, TensorStats& into, ExponentHistogram* histogram) noexcept {
    if (!usable(view)) return false;
    const FloatEnvironment environment;
    const auto measure = kernels().statistics[index_of(view.dtype)];
    BlockHistogram blocks{histogram ? histogram->bins.data() : nullptr};
    BlockHistogram* const counted = histogram ? &blocks : nullptr;
    const TensorView* tensors[] = {&view};
    Walk(tensors, 1).each([&](const void* const* data, std::size_t n) {
        measure(data[0], n, into, counted);
    });
    return true;
}

bool any_nonfinite(const TensorView& view) noexcept {
    if (!usable(view)) return false;
    const auto found = kernels().nonfinite[index_of(view.dtype)];
    const TensorView* tensors[] = {&view};
    return Walk(tensors, 1).any([&](const void* const* data, std::size_t n) { return found(data[0], n); });
}

bool divergence(const TensorView& real, const TensorView& twin, Divergence& into) noexcept {
    if (!comparable(real, twin)) return false;
    const FloatEnvironment environment;
    const auto measure = kernels().divergence[index_of(real.dtype)][index_of(twin.dtype)];
    const TensorView* tensors[] = {&real, &twin};
    Walk(tensors, 2).each([&](const void* const* data, std::size_t n) {
        measure(data[0], data[1], n, into);
    });
    return true;
}

bool statistics_and_divergence(const TensorView& real, const TensorView& twin, TensorStats& stats,
                               Divergence& diverged, ExponentHistogram* histogram) noexcept {
    if (!comparable(real, twin)) return false;
    const FloatEnvironment environment;
    const auto one_sided = kernels().statistics[index_of(real.dtype)];
    const auto paired = kernels().divergence[index_of(real.dtype)][index_of(twin.dtype)];
    BlockHistogram blocks{histogram ? histogram->bins.data() : nullptr};
    BlockHistogram* const counted = histogram ? &blocks : nullptr;
    const TensorView* tensors[] = {&real, &twin};
    Walk(tensors, 2).each([&](const void* const* data, std::size_t n) {
        one_sided(data[0], n, stats, counted);
        paired(data[0], data[1], n, diverged);
    });
    return true;
}

bool stagnation(const TensorView& before, const TensorView& after, const TensorView& moved_before,
                const TensorView& moved_after, Stagnation& into) noexcept {
    const bool told = moved_before.data != nullptr;
    if (!usable(before) || !usable(after) || after.dtype != before.dtype || !same_sizes(before, after))
        return false;
    if (told && (!comparable(before, moved_before) || !comparable(before, moved_after))) return false;
    const FloatEnvironment environment;
    const FloatFormat& format = *format_of(before.dtype);
    const TensorView* tensors[] = {&before, &after, &moved_before, &moved_after};
    const int count = told ? 4 : 2;
    Walk(tensors, count).each([&](const void* const* data, std::size_t n) {
        constexpr std::size_t kStep = 512;
        double values[kMaxTensors][kStep];
        for (std::size_t i = 0; i < n; i += kStep) {
            const std::size_t m = n - i < kStep ? n - i : kStep;
            for (int t = 0; t < count; ++t) {
                const DType dtype = tensors[t]->dtype;
                const auto* from = static_cast<const char*>(data[t]) + i * width_of(dtype);
                kernels().widen[index_of(dtype)](from, m, values[t]);
            }
            const Moves moves{values[0], values[1], told ? values[2] : nullptr, values[3]};
            count_moves(format, moves, m, into);
        }
    });
    return true;
}

const char* instruction_set() noexcept { return kernels().name; }

}  // namespace mp::cpu
