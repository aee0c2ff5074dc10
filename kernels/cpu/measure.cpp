#include "kernels/cpu/measure.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/numerics/convert.hpp"

namespace mp::cpu {
namespace {

std::size_t width_of(DType dtype) {
    switch (dtype) {
        case DType::fp64: return 8;
        case DType::fp32: return 4;
        case DType::fp16:
        case DType::bf16: return 2;
        case DType::e4m3:
        case DType::e5m2: return 1;
        default: return 0;
    }
}

bool usable(const TensorView& view) {
    if (width_of(view.dtype) == 0 || view.dims < 0 || view.dims > kMaxDims) return false;
    bool empty = false;
    for (int i = 0; i < view.dims; ++i) {
        if (view.sizes[i] < 0) return false;
        empty = empty || view.sizes[i] == 0;
    }
    return empty || view.data != nullptr;
}

bool wide(const TensorView& view) { return view.dtype == DType::fp32 || view.dtype == DType::fp64; }

bool same_sizes(const TensorView& a, const TensorView& b) {
    if (a.dims != b.dims) return false;
    for (int i = 0; i < a.dims; ++i)
        if (a.sizes[i] != b.sizes[i]) return false;
    return true;
}

std::int64_t elements_of(const TensorView& view) {
    std::int64_t n = 1;
    for (int i = 0; i < view.dims; ++i) n *= view.sizes[i];
    return n;
}

double element(const TensorView& view, std::int64_t offset) {
    const auto width = static_cast<std::int64_t>(width_of(view.dtype));
    std::uint64_t pattern = 0;
    std::memcpy(&pattern, static_cast<const char*>(view.data) + offset * width, static_cast<std::size_t>(width));
    return __builtin_bit_cast(double, detail::decode_bits(*format_of(view.dtype), pattern));
}

// Element number i in row-major order.
double value_at(const TensorView& view, std::int64_t i) {
    std::int64_t offset = 0;
    for (int d = view.dims - 1; d >= 0; --d) {
        offset += (i % view.sizes[d]) * view.strides[d];
        i /= view.sizes[d];
    }
    return element(view, offset);
}

int exponent_of(double x) { return std::ilogb(x); }

double ulp(const FloatFormat& f, double y) {
    const int lowest = min_exponent(f);
    const int exponent = y == 0 ? lowest : std::max(exponent_of(y), lowest);
    return std::ldexp(1.0, exponent - f.mantissa_bits);
}

void add(const FloatFormat& f, double x, TensorStats& s, ExponentHistogram* histogram) {
    TensorStats one;
    one.count = 1;
    one.nan = std::isnan(x);
    one.pos_inf = std::isinf(x) && x > 0;
    one.neg_inf = std::isinf(x) && x < 0;
    if (std::isfinite(x)) {
        const double a = std::fabs(x);
        one.zero = a == 0;
        one.subnormal = a > 0 && a < min_normal(f);
        one.saturated = a == max_finite(f);
        one.amax = one.amin = a;
        one.sum = one.mean = x;
        one.sum_squares = x * x;
        if (histogram && a > 0) {
            const int bin = std::min(std::max(exponent_of(x) + 127, 0), 254);
            histogram->bins[static_cast<std::size_t>(bin)] += 1;
        }
    }
    s.merge(one);
}

void add(const FloatFormat& f, double x, double y, Divergence& d) {
    ++d.count;
    const bool fx = std::isfinite(x), fy = std::isfinite(y);
    d.differ += !(x == y || (std::isnan(x) && std::isnan(y)));
    if (fy) d.twin_amax = std::max(d.twin_amax, std::fabs(y));
    d.nonfinite_both += !fx && !fy;
    d.nonfinite_real += !fx && fy;
    d.nonfinite_twin += fx && !fy;
    if (!fx || !fy) return;
    const double e = x - y;
    const double ulps = std::fabs(e) / ulp(f, y);
    ++d.compared;
    d.ulp_above_one += ulps > 1;
    d.ulp_max = std::max(d.ulp_max, ulps);
    d.max_abs = std::max(d.max_abs, std::fabs(e));
    d.ee += e * e;
    d.yy += y * y;
    d.xx += x * x;
    d.xy += x * y;
    d.e += e;
    d.abs_e += std::fabs(e);
    d.abs_y += std::fabs(y);
    if (x == 0 && y != 0) {
        ++d.flushed;
        d.flushed_abs += std::fabs(y);
    }
}

}  // namespace

TensorView contiguous(const void* data, DType dtype, std::int64_t elements) noexcept {
    TensorView view{data, dtype, 1, {}, {}};
    view.sizes[0] = elements;
    view.strides[0] = 1;
    return view;
}

bool statistics(const TensorView& view, TensorStats& into, ExponentHistogram* histogram) noexcept {
    if (!usable(view)) return false;
    const std::int64_t n = elements_of(view);
    for (std::int64_t i = 0; i < n; ++i) add(*format_of(view.dtype), value_at(view, i), into, histogram);
    return true;
}

bool divergence(const TensorView& real, const TensorView& twin, Divergence& into) noexcept {
    if (!usable(real) || !usable(twin) || !wide(twin) || !same_sizes(real, twin)) return false;
    const std::int64_t n = elements_of(real);
    for (std::int64_t i = 0; i < n; ++i) add(*format_of(real.dtype), value_at(real, i), value_at(twin, i), into);
    return true;
}

bool statistics_and_divergence(const TensorView& real, const TensorView& twin, TensorStats& stats,
                               Divergence& diverged) noexcept {
    return divergence(real, twin, diverged) && statistics(real, stats);
}

bool standstill(const TensorView& before, const TensorView& after, const TensorView& moved_before,
                const TensorView& moved_after, Standstill& into) noexcept {
    const bool told = moved_before.data != nullptr;
    if (!usable(before) || !usable(after) || after.dtype != before.dtype || !same_sizes(before, after)) return false;
    if (told && (!usable(moved_before) || !usable(moved_after) || !wide(moved_before) || !wide(moved_after) ||
                 !same_sizes(before, moved_before) || !same_sizes(before, moved_after)))
        return false;
    const std::int64_t n = elements_of(before);
    for (std::int64_t i = 0; i < n; ++i) {
        const double a = value_at(before, i), b = value_at(after, i);
        const double wanted = told ? value_at(moved_after, i) - value_at(moved_before, i) : 0;
        ++into.count;
        if (!std::isfinite(a) || !std::isfinite(b) || !std::isfinite(wanted)) continue;
        const bool meant = !told || wanted != 0;
        into.meant_to_move += meant;
        into.unmoved += meant && a == b;
        into.below_half_ulp += told && meant && a == b && std::fabs(wanted) < ulp(*format_of(before.dtype), a) / 2;
        into.wanted_squares += wanted * wanted;
        into.moved_dot += (b - a) * wanted;
    }
    return true;
}

const char* instruction_set() noexcept { return "scalar"; }

}  // namespace mp::cpu
