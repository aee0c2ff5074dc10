// Divergence of a block from its reference. Included once per instruction set.
#if defined(MP_CPU_DIVERGENCE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MP_CPU_DIVERGENCE_INL
#undef MP_CPU_DIVERGENCE_INL
#else
#define MP_CPU_DIVERGENCE_INL
#endif

#include "kernels/cpu/formats-inl.hpp"
#include "kernels/cpu/quick_divergence-inl.hpp"
#include "kernels/cpu/statistics-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace mp::cpu::HWY_NAMESPACE {

// F is the format of x, whose ulps are used; G is the format of y.
template <class F, class G>
struct Paired {
    static constexpr std::size_t kVectors = 8 / kLanes64;
    static constexpr bool kExact = F::kExactSquares && G::kExactSquares;
    using DX = hn::CappedTag<typename F::Raw, kGroup>;
    using DY = hn::CappedTag<typename G::Raw, kGroup>;

    struct State {
        V64 ee[kVectors], yy[kVectors], xx[kVectors], xy[kVectors];
        V64 e[kVectors], abs_e[kVectors], abs_y[kVectors];
        V64 max_abs, ulp_max;
        hn::Vec<DX> x_max;
        hn::Vec<DY> y_max;
        std::size_t differ, flushed, ulp_above_one;
        HWY_INLINE State()
            : x_max(hn::Zero(DX())), y_max(hn::Zero(DY())), differ(0), flushed(0), ulp_above_one(0) {
            const V64 zero = hn::Zero(D64());
            max_abs = ulp_max = zero;
            for (std::size_t i = 0; i < kVectors; ++i)
                ee[i] = yy[i] = xx[i] = xy[i] = e[i] = abs_e[i] = abs_y[i] = zero;
        }
    };

    template <bool Exact>
    static HWY_INLINE V64 add_product(V64 a, V64 b, V64 sum) {
        if constexpr (Exact) return hn::MulAdd(a, b, sum);
        return hn::Add(sum, hn::Mul(a, b));
    }

    // |e| in ulps of F at y. The inverse of an ulp is a power of two, made from y's exponent field.
    static HWY_INLINE V64 ulps(V64 abs_e, V64 y) {
        const hn::RebindToUnsigned<D64> d;
        constexpr std::uint64_t kLowest = static_cast<std::uint64_t>(min_exponent(F::kTable) + 1023) << 52;
        constexpr bool kSplit = F::kDType == DType::fp64;  // 2^1074 does not fit in a double: two factors
        constexpr int kMantissa = kSplit ? 1 : F::kTable.mantissa_bits;
        const V64 power = hn::And(y, hn::BitCast(D64(), hn::Set(d, std::uint64_t{0x7FF} << 52)));
        const V64 bounded = hn::Max(power, hn::BitCast(D64(), hn::Set(d, kLowest)));
        const auto top = hn::Set(d, static_cast<std::uint64_t>(2046 + kMantissa) << 52);
        const V64 scaled = hn::Mul(abs_e, hn::BitCast(D64(), hn::Sub(top, hn::BitCast(d, bounded))));
        if constexpr (kSplit) return hn::Mul(scaled, hn::Set(D64(), 0x1p51));
        return scaled;
    }

    static HWY_INLINE void values(const typename F::Raw* px, const typename G::Raw* py, State& s) {
        const D64 d;
        for (std::size_t i = 0; i < kGroup / kLanes64; ++i) {
            const std::size_t lane = i % kVectors;
            const V64 x = F::load(px + i * kLanes64), y = G::load(py + i * kLanes64);
            const V64 e = hn::Sub(x, y), abs_e = hn::Abs(e);
            s.ee[lane] = add_product<false>(e, e, s.ee[lane]);
            s.yy[lane] = add_product<kExact>(y, y, s.yy[lane]);
            s.xx[lane] = add_product<kExact>(x, x, s.xx[lane]);
            s.xy[lane] = add_product<kExact>(x, y, s.xy[lane]);
            s.e[lane] = hn::Add(s.e[lane], e);
            s.abs_e[lane] = hn::Add(s.abs_e[lane], abs_e);
            s.abs_y[lane] = hn::Add(s.abs_y[lane], hn::Abs(y));
            s.max_abs = hn::Max(s.max_abs, abs_e);
            const V64 u = ulps(abs_e, y);
            s.ulp_max = hn::Max(s.ulp_max, u);
            s.ulp_above_one += hn::CountTrue(d, hn::Gt(u, hn::Set(d, 1.0)));
            const auto differ = hn::Ne(x, y);
            s.differ += hn::CountTrue(d, differ);
            s.flushed += hn::CountTrue(d, hn::And(differ, hn::Eq(x, hn::Zero(d))));
        }
    }

    template <class P, class D, class V>
    static HWY_INLINE V largest(D d, const typename P::Raw* p, V max) {
        const auto mask = hn::Set(d, P::kMagnitude);
        for (std::size_t i = 0; i < kGroup; i += hn::MaxLanes(d))
            max = hn::Max(max, hn::And(hn::LoadU(d, p + i), mask));
        return max;
    }

    static HWY_INLINE void group(const typename F::Raw* px, const typename G::Raw* py, State& s) {
        s.x_max = largest<F>(DX(), px, s.x_max);
        s.y_max = largest<G>(DY(), py, s.y_max);
        values(px, py, s);
    }

    // Returns false and adds nothing when a value is not finite.
    static HWY_NOINLINE bool run(const typename F::Raw* px, const typename G::Raw* py, std::size_t n,
                                 Divergence& into) {
        State s;
        std::size_t i = 0;
        for (; i + kGroup <= n; i += kGroup) {
            ask_ahead(px + i, kGroup);
            ask_ahead(py + i, kGroup);
            group(px + i, py + i, s);
        }
        if (i < n) group(Tail<F>(px + i, n - i).values, Tail<G>(py + i, n - i).values, s);
        const auto y_max = lane_max(DY(), s.y_max);
        if (lane_max(DX(), s.x_max) >= F::kBeyondFinite || y_max >= G::kBeyondFinite) return false;
        into.count = into.compared = n;
        into.differ = s.differ;
        into.flushed = s.flushed;
        into.ulp_above_one = s.ulp_above_one;
        into.ulp_max = lane_max(D64(), s.ulp_max);
        into.max_abs = lane_max(D64(), s.max_abs);
        into.twin_amax = magnitude_value<G>(y_max);
        into.ee = sum_of(s.ee);
        into.yy = sum_of(s.yy);
        into.xx = sum_of(s.xx);
        into.xy = sum_of(s.xy);
        into.e = sum_of(s.e);
        into.abs_e = sum_of(s.abs_e);
        into.abs_y = sum_of(s.abs_y);
        return true;
    }
};

// Counts the pairs with x = 0 and y != 0, and sums their |y|.
template <class F, class G>
HWY_NOINLINE void find_flushed(const typename F::Raw* px, const typename G::Raw* py, std::size_t n,
                               Divergence& block) {
    const D64 d;
    LongSum sum;
    std::size_t count = 0;
    const auto add = [&](const typename F::Raw* x, const typename G::Raw* y) HWY_ATTR {
        for (std::size_t i = 0; i < kGroup / kLanes64; ++i) {
            const V64 lost = hn::IfThenElseZero(hn::Eq(F::load(x + i * kLanes64), hn::Zero(d)),
                                                hn::Abs(G::load(y + i * kLanes64)));
            count += hn::CountTrue(d, hn::Ne(lost, hn::Zero(d)));
            sum.lanes[i % kWideParts] = hn::Add(sum.lanes[i % kWideParts], lost);
        }
    };
    std::size_t i = 0;
    for (; i + kGroup <= n; i += kGroup) add(px + i, py + i);
    if (i < n) add(Tail<F>(px + i, n - i).values, Tail<G>(py + i, n - i).values);
    block.flushed = count;
    block.flushed_abs = sum.total();
}

// Returns false and adds nothing when a value is not finite. `others` will be merged with this block.
template <class F, class G>
bool measure_paired(const typename F::Raw* px, const typename G::Raw* py, std::size_t n,
                    const Divergence& others, Divergence& block) {
    if constexpr (G::kDType == DType::fp32 && F::kDType != DType::fp64) {
        QuickPaired<F> quick;
        quick.run(px, py, n);
        if (quick.y_max >= G::kBeyondFinite) return false;
        if (quick.holds()) {
            quick.store(n, block);
            if (quick.x_min == 0) find_flushed<F, G>(px, py, n, block);
            if (quick.extremes_are_exact() || !quick.may_exceed(others)) return true;
            Divergence exact;
            Paired<F, G>::run(px, py, n, exact);
            block.max_abs = exact.max_abs;
            block.ulp_max = exact.ulp_max;
            return true;
        }
    }
    if (!Paired<F, G>::run(px, py, n, block)) return false;
    if (block.flushed != 0) find_flushed<F, G>(px, py, n, block);
    return true;
}

template <class F>
bool is_infinite(typename F::Raw magnitude) {
    return F::kTable.has_infinity() && magnitude == F::kBeyondFinite;
}

// Counts a pair of which at least one value is not finite.
template <class F, class G>
void count_nonfinite(typename F::Raw x, typename G::Raw y, Divergence& into) {
    const auto mx = static_cast<typename F::Raw>(x & F::kMagnitude);
    const auto my = static_cast<typename G::Raw>(y & G::kMagnitude);
    const bool finite_x = mx < F::kBeyondFinite, finite_y = my < G::kBeyondFinite;
    into.nonfinite_both += !finite_x && !finite_y;
    into.nonfinite_real += !finite_x && finite_y;
    into.nonfinite_twin += finite_x && !finite_y;
    const bool infinite_x = is_infinite<F>(mx), infinite_y = is_infinite<G>(my);
    const bool same_sign = (x == mx) == (y == my);
    const bool same = infinite_x == infinite_y && (!infinite_x || same_sign);
    into.differ += finite_x || finite_y || !same;
    const double magnitude = magnitude_value<G>(my);
    if (finite_y && magnitude > into.twin_amax) into.twin_amax = magnitude;
}

// Counts the pairs that are not finite and replaces them by (0, 0), which adds nothing to the sums.
template <class F, class G>
HWY_NOINLINE void divergence_with_nonfinite(const typename F::Raw* px, const typename G::Raw* py,
                                            std::size_t n, Divergence& into) {
    typename F::Raw x[kBlock];
    typename G::Raw y[kBlock];
    Divergence apart;
    for (std::size_t i = 0; i < n; ++i) {
        const bool finite =
            (px[i] & F::kMagnitude) < F::kBeyondFinite && (py[i] & G::kMagnitude) < G::kBeyondFinite;
        x[i] = finite ? px[i] : typename F::Raw{0};
        y[i] = finite ? py[i] : typename G::Raw{0};
        if (!finite) count_nonfinite<F, G>(px[i], py[i], apart);
    }
    Divergence block;
    measure_paired<F, G>(x, y, n, into, block);
    block.compared -= apart.nonfinite_both + apart.nonfinite_real + apart.nonfinite_twin;
    block.merge(apart);
    into.merge(block);
}

template <class F, class G>
void divergence_of_block(const void* real, const void* twin, std::size_t n, Divergence& into) {
    const auto* px = static_cast<const typename F::Raw*>(real);
    const auto* py = static_cast<const typename G::Raw*>(twin);
    Divergence block;
    if (!measure_paired<F, G>(px, py, n, into, block))
        return divergence_with_nonfinite<F, G>(px, py, n, into);
    into.merge(block);
}

}  // namespace mp::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
