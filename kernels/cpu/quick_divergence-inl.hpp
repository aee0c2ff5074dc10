// Divergence of a block from an fp32 reference in fp32 lanes. Included once per instruction set.
#if defined(MP_CPU_QUICK_DIVERGENCE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MP_CPU_QUICK_DIVERGENCE_INL
#undef MP_CPU_QUICK_DIVERGENCE_INL
#else
#define MP_CPU_QUICK_DIVERGENCE_INL
#endif

#include "kernels/cpu/formats-inl.hpp"
#include "kernels/cpu/short_sums-inl.hpp"
#include "kernels/cpu/statistics-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace mp::cpu::HWY_NAMESPACE {

// F is the format of x. e = x - y is rounded to fp32. If the rounding could change a count or an extreme,
// the block is measured in fp64 instead:
// - x within a factor of two of y makes e exact (Sterbenz 1974). That holds for |e| < |y|/2, which for a normal y
//   is 2^(mantissa bits - 1) ulps, and below the smallest normal value of F for |e| under half an ulp.
// - rounding is monotone, so |e| > 1 ulp can only be missed where e rounds to exactly 1 ulp, and only for a y below
//   the smallest normal value of F ("doubtful").
// - x = y if and only if e = 0, because subnormals are kept.
template <class F>
struct QuickPaired {
    using Raw = typename F::Raw;
    using DRaw = hn::CappedTag<Raw, kGroup>;
    using VU = hn::Vec<DU>;
#if HWY_TARGET <= HWY_AVX3
    using DCount = DF;  // a masked addition of 1.0; with integers the compiler emits two instructions
#else
    using DCount = DU;
#endif
    using VCount = hn::Vec<DCount>;
    static constexpr bool kLikeFp32 = F::kTable.exponent_bits == 8;  // no y is below F's subnormals
    static constexpr bool kNanIsNan = kLikeFp32;                     // after load32, on every instruction set
    static constexpr float kOneUlp =
        kLikeFp32 ? 1.0f / static_cast<float>(1 << F::kTable.mantissa_bits) : 1.0f;
    static constexpr float kExactUlps = kOneUlp * static_cast<float>(1 << (F::kTable.mantissa_bits - 1));
    static constexpr std::uint32_t kLowestField = static_cast<std::uint32_t>(min_exponent(F::kTable) + 127)
                                                  << 23;

    // Sums of a block, and the values that decide whether they are valid.
    std::uint32_t y_max = 0, e_max = 0;  // patterns
    Raw x_max = 0, x_min = 0;            // patterns; x_max only where load32 makes NaN a number
    float ulp_max = 0, low_ulp_max = 0;  // over all y; over the y below the smallest normal value of F
    std::size_t differ = 0, above = 0, doubtful = 0;
    double ee = 0, yy = 0, ey = 0, e = 0, abs_e = 0, abs_y = 0;

    struct State {
        hn::Vec<DRaw> x_max, x_min;
        VU y_max, e_max;
        VF ulp_max, low_ulp_max;
        VCount differ, above, doubtful;
        HWY_INLINE State() : x_max(hn::Zero(DRaw())), x_min(hn::Not(hn::Zero(DRaw()))) {
            y_max = e_max = hn::Zero(DU());
            ulp_max = low_ulp_max = hn::Zero(DF());
            differ = above = doubtful = hn::Zero(DCount());
        }
    };
    struct Short {
        ShortSum ee, yy, ey, e, abs_e, abs_y;
        HWY_INLINE Short() {}
    };
    struct Long {
        LongSum ee, yy, ey, e, abs_e, abs_y;
        HWY_INLINE Long() {}
    };

    template <class M>
    static HWY_INLINE VCount count_if(VCount counts, M mask) {
        const DCount d;
#if HWY_TARGET <= HWY_AVX3
        return hn::IfThenElse(mask, hn::Add(counts, hn::Set(d, 1)), counts);
#else
        return hn::Sub(counts, hn::VecFromMask(d, hn::RebindMask(d, mask)));
#endif
    }

    // |e| in units of 1/kOneUlp ulp of F at y. The factor is a power of two, made from y's exponent field.
    static HWY_INLINE VF scaled(VF abs_e, VU y) {
        const DU d;
        const VU field = hn::Max(hn::And(y, hn::Set(d, 0xFFu << 23)), hn::Set(d, kLowestField));
        constexpr std::uint32_t kTop = 254u + (kLikeFp32 ? 0 : F::kTable.mantissa_bits);
        return hn::Mul(abs_e, hn::BitCast(DF(), hn::Sub(hn::Set(d, kTop << 23), field)));
    }

    static HWY_INLINE void values(VF x, VF y, std::size_t part, State& s, Short& sums) {
        const DF d;
        const DU du;
        const VF e = hn::Sub(x, y), abs_e = hn::Abs(e), abs_y = hn::Abs(y);
        const VU y_bits = hn::BitCast(du, abs_y);
        s.y_max = hn::Max(s.y_max, y_bits);
        s.e_max = hn::Max(s.e_max, hn::BitCast(du, abs_e));
        sums.ee.add_product(part, e, e);
        sums.yy.add_product(part, y, y);
        sums.ey.add_product(part, e, y);
        sums.e.add(part, e);
        sums.abs_e.add(part, abs_e);
        sums.abs_y.add(part, abs_y);
        const VF ulps = scaled(abs_e, y_bits);
        s.ulp_max = hn::Max(s.ulp_max, ulps);
        s.above = count_if(s.above, hn::Gt(ulps, hn::Set(d, kOneUlp)));
        s.differ = count_if(s.differ, hn::Ne(e, hn::Zero(d)));
        if constexpr (!kLikeFp32) {
            const auto low = hn::Lt(abs_y, hn::BitCast(d, hn::Set(du, kLowestField)));
            const VF low_ulps = hn::IfThenElseZero(low, ulps);
            s.low_ulp_max = hn::Max(s.low_ulp_max, low_ulps);
            s.doubtful = count_if(s.doubtful, hn::Eq(low_ulps, hn::Set(d, kOneUlp)));
        }
    }

    static HWY_INLINE void patterns(const Raw* p, State& s) {
        const DRaw d;
        const auto mask = hn::Set(d, F::kMagnitude);
        for (std::size_t i = 0; i < kGroup; i += hn::MaxLanes(d)) {
            const auto magnitude = hn::And(hn::LoadU(d, p + i), mask);
            if constexpr (!kNanIsNan) s.x_max = hn::Max(s.x_max, magnitude);
            s.x_min = hn::Min(s.x_min, magnitude);
        }
    }

    static HWY_INLINE void group(const Raw* px, const std::uint32_t* py, State& s, Short& sums) {
        const DF d;
        patterns(px, s);
        for (std::size_t i = 0; i < kGroup; i += 2 * kLanes32) {
            VF x[2];
            F::load_two(px + i, x[0], x[1]);
            for (std::size_t k = 0; k < 2; ++k)
                values(x[k], Fp32::load32(d, py + i + k * kLanes32), (i / kLanes32 + k) % kParts, s, sums);
        }
    }

    static HWY_INLINE void take(Long& into, const Short& from) {
        into.ee.take(from.ee);
        into.yy.take(from.yy);
        into.ey.take(from.ey);
        into.e.take(from.e);
        into.abs_e.take(from.abs_e);
        into.abs_y.take(from.abs_y);
    }

    static std::size_t total(VCount counts) {
        alignas(64) hn::TFromD<DCount> lanes[kLanes32];
        hn::Store(counts, DCount(), lanes);
        hn::TFromD<DCount> sum = 0;
        for (const auto lane : lanes) sum += lane;
        return static_cast<std::size_t>(sum);
    }

    void run(const Raw* px, const std::uint32_t* py, std::size_t n) {
        constexpr std::size_t kTurn = kValuesPerLane * kSumLanes;  // elements between two folds
        State s;
        Long sums;
        std::size_t i = 0;
        while (i + kGroup <= n) {
            Short partial;
            const std::size_t end = n - i < kTurn ? n : i + kTurn;
            for (; i + kGroup <= end; i += kGroup) {
                ask_ahead(px + i, kGroup);
                ask_ahead(py + i, kGroup);
                group(px + i, py + i, s, partial);
            }
            take(sums, partial);
        }
        if (i < n) {
            Short partial;
            group(Tail<F>(px + i, n - i).values, Tail<Fp32>(py + i, n - i).values, s, partial);
            take(sums, partial);
        }
        finish(s, sums);
    }

    void finish(const State& s, const Long& sums) {
        y_max = lane_max(DU(), s.y_max);
        e_max = lane_max(DU(), s.e_max);
        x_max = lane_max(DRaw(), s.x_max);
        x_min = static_cast<Raw>(~lane_max(DRaw(), hn::Not(s.x_min)));
        ulp_max = lane_max(DF(), s.ulp_max);
        low_ulp_max = lane_max(DF(), s.low_ulp_max);
        differ = total(s.differ);
        above = total(s.above);
        doubtful = kLikeFp32 ? 0 : total(s.doubtful);
        ee = sums.ee.total();
        yy = sums.yy.total();
        ey = sums.ey.total();
        e = sums.e.total();
        abs_e = sums.abs_e.total();
        abs_y = sums.abs_y.total();
    }

    double xx() const { return yy + 2 * ey + ee; }
    // If x is much smaller than y, x's squares cannot be computed from those of y and e.
    bool holds() const {
        return x_max < F::kBeyondFinite && is_quick(y_max) && is_quick(e_max) && doubtful == 0 &&
               xx() >= yy / 4;
    }
    bool extremes_are_exact() const { return ulp_max < kExactUlps && low_ulp_max < kOneUlp / 2; }
    // Whether the exact extremes may be larger than those of `others`.
    bool may_exceed(const Divergence& others) const {
        return static_cast<float>(others.ulp_max * static_cast<double>(kOneUlp)) <= ulp_max ||
               static_cast<float>(others.max_abs) <= __builtin_bit_cast(float, e_max);
    }

    void store(std::size_t n, Divergence& into) const {
        into.count = into.compared = n;
        into.differ = differ;
        into.ulp_above_one = above;
        into.ulp_max = static_cast<double>(ulp_max) / static_cast<double>(kOneUlp);
        into.max_abs = static_cast<double>(__builtin_bit_cast(float, e_max));
        into.twin_amax = static_cast<double>(__builtin_bit_cast(float, y_max));
        into.ee = ee;
        into.yy = yy;
        into.xx = xx();
        into.xy = yy + ey;
        into.e = e;
        into.abs_e = abs_e;
        into.abs_y = abs_y;
    }
};

}  // namespace mp::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
