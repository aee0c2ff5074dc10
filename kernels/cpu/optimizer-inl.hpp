// The steps of kernels/numerics/optimizer_step.hpp in vectors, everything of an element in registers. Included once per
// instruction set.
#if defined(MP_CPU_OPTIMIZER_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MP_CPU_OPTIMIZER_INL
#undef MP_CPU_OPTIMIZER_INL
#else
#define MP_CPU_OPTIMIZER_INL
#endif

#include "kernels/cpu/formats-inl.hpp"
#include "kernels/cpu/optimizer_table.hpp"
#include "kernels/cpu/short_sums-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace mp::cpu::HWY_NAMESPACE {

// Without conversions from and to fp16 in hardware, every element is computed by the scalar definition.
#if HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SCALAR
inline constexpr bool kVectors = false;
#else
inline constexpr bool kVectors = true;
#endif

using VU = hn::Vec<DU>;

// All bits or none. A mask type would go through 16 bits wherever two branches join.
HWY_INLINE VU not_zero(VF v) { return hn::BitCast(DU(), hn::VecFromMask(DF(), hn::Ne(v, hn::Zero(DF())))); }
HWY_INLINE VU all_bits_if(bool condition) { return hn::Set(DU(), condition ? ~0u : 0u); }

// ---- Steps. --------------------------------------------------------------------------------------

struct AdamWStep {
    using Settings = optim::AdamW;
    Settings s;
    float* means;
    float* squares;
    AdamWStep(const Settings& settings, const OptimizerRange& r)
        : s(settings), means(r.state), squares(r.squares) {}

    HWY_INLINE VF vector(std::size_t i, VF w, VF g, VU& moved) const {
        const DF d;
        if (s.maximize) g = hn::Neg(g);
        if (s.penalty != 0) g = fused(w, hn::Set(d, s.penalty), g);
        VF mean = hn::LoadU(d, means + i), square = hn::LoadU(d, squares + i);
        mean = fused(hn::Set(d, s.share), hn::Sub(g, mean), s.from_gradient ? g : mean);
        square = fused(hn::Mul(hn::Set(d, s.square_share), g), g, hn::Mul(square, hn::Set(d, s.beta2)));
        hn::StoreU(mean, d, means + i);
        hn::StoreU(square, d, squares + i);
        const VF below = hn::Add(hn::Div(hn::Sqrt(square), hn::Set(d, s.root)), hn::Set(d, s.eps));
        const VF change = hn::Div(hn::Mul(hn::Set(d, s.step_size), mean), below);
        moved = hn::Or(not_zero(change), hn::And(not_zero(w), all_bits_if(s.decay != 1)));
        return hn::Sub(hn::Mul(w, hn::Set(d, s.decay)), change);
    }
    HWY_INLINE float one(std::size_t i, float w, float g, bool& moved) const {
        return optim::step(s, w, g, means[i], squares[i], moved);
    }
};

struct SgdStep {
    using Settings = optim::Sgd;
    Settings s;
    float* buffers;
    SgdStep(const Settings& settings, const OptimizerRange& r) : s(settings), buffers(r.state) {}

    HWY_INLINE VF vector(std::size_t i, VF w, VF g, VU& moved) const {
        const DF d;
        if (s.maximize) g = hn::Neg(g);
        if (s.penalty != 0) g = fused(w, hn::Set(d, s.penalty), g);
        if (s.momentum != 0) {
            const VF momentum = hn::Set(d, s.momentum), share = hn::Set(d, s.share);
            const VF buffer = s.first ? g : fused(g, share, hn::Mul(hn::LoadU(d, buffers + i), momentum));
            hn::StoreU(buffer, d, buffers + i);
            g = s.nesterov ? fused(buffer, momentum, g) : buffer;
        }
        const VF size = hn::Set(d, -s.step_size);
        moved = hn::And(not_zero(g), not_zero(size));
        return fused(size, g, w);
    }
    HWY_INLINE float one(std::size_t i, float w, float g, bool& moved) const {
        float none = 0;
        return optim::step(s, w, g, buffers ? buffers[i] : none, moved);
    }
};

// ---- Rounding to 16 bits; the results are in the lower halves of the lanes. ----------------------

template <DType D>
HWY_INLINE VU nearest(VF v) {
    const DU d;
    if constexpr (D == DType::bf16) {
        const VU bits = hn::BitCast(d, v), upper = hn::ShiftRight<16>(bits);
        const VU odd = hn::And(upper, hn::Set(d, 1));
        const VU rounded = hn::ShiftRight<16>(hn::Add(hn::Add(bits, hn::Set(d, 0x7FFF)), odd));
        return hn::IfThenElse(hn::RebindMask(d, hn::Ne(v, v)), hn::Or(upper, hn::Set(d, 0x40)), rounded);
    } else {
        const hn::Rebind<hwy::float16_t, DF> d16;
        return hn::PromoteTo(d, hn::BitCast(hn::RebindToUnsigned<decltype(d16)>(), hn::DemoteTo(d16, v)));
    }
}

HWY_INLINE VU mixed(VU x) {
    const DU d;
    x = hn::Mul(hn::Xor(x, hn::ShiftRight<16>(x)), hn::Set(d, 0x7FEB352Du));
    x = hn::Mul(hn::Xor(x, hn::ShiftRight<15>(x)), hn::Set(d, 0x846CA68Bu));
    return hn::Xor(x, hn::ShiftRight<16>(x));
}

// optim::noise_at of `index` and the following indices, of which none carries into the upper 32 bits.
HWY_INLINE VU noise_from(std::uint64_t seed, std::uint64_t index) {
    const DU d;
    const auto low = static_cast<std::uint32_t>(index) + static_cast<std::uint32_t>(seed);
    return mixed(hn::Xor(mixed(hn::Iota(d, low)), hn::Set(d, optim::key_of(seed, index))));
}

template <DType D>
HWY_INLINE VU stochastic(VF v, VU noise) {
    constexpr int kDropped = optim::kDropped<D>;
    const DU d;
    const VU bits = hn::BitCast(d, v), magnitude = hn::And(bits, hn::Set(d, 0x7FFFFFFFu));
    VU moved = magnitude;
    if constexpr (D == DType::fp16) {
        const auto tiny = hn::Lt(magnitude, hn::Set(d, 0x38800000u));
        const VF steps =
            hn::Mul(hn::BitCast(DF(), hn::IfThenElseZero(tiny, magnitude)), hn::Set(DF(), 0x1p37f));
        const VU whole = hn::BitCast(d, hn::ConvertTo(hn::RebindToSigned<DU>(), steps));
        moved = hn::IfThenElse(tiny, whole, hn::Sub(magnitude, hn::Set(d, 0x38000000u)));
    }
    const VU rounded = hn::ShiftRight<kDropped>(hn::Add(moved, hn::ShiftRight<32 - kDropped>(noise)));
    const VU sign = hn::ShiftLeft<15>(hn::ShiftRight<31>(bits));
    const auto beyond = hn::Gt(magnitude, hn::Set(d, optim::kLargestMagnitude<D>));
    return hn::IfThenElse(beyond, nearest<D>(v), hn::Or(rounded, sign));
}

using D16 = hn::Repartition<std::uint16_t, DF>;

// The lower halves of the lanes of two vectors, as one vector.
HWY_INLINE hn::Vec<D16> lower_halves(VU first, VU second) {
    const hn::Rebind<std::uint16_t, DU> d16;
    const hn::RebindToSigned<DU> d32;
    return hn::Combine(D16(), hn::DemoteTo(d16, hn::BitCast(d32, second)),
                       hn::DemoteTo(d16, hn::BitCast(d32, first)));
}

// ---- The pass. -----------------------------------------------------------------------------------

struct NoCopy {
    static constexpr DType kDType = DType::unknown;
    using Raw = std::uint16_t;
};

template <class Step, class Gradient, class Copy, bool kMaster, bool kStochastic>
struct Pass {
    static constexpr bool kCopy = !std::is_same_v<Copy, NoCopy>;
    // Elements that are counted in 32 bits before the counts are added to wider ones.
    static constexpr std::size_t kCounted = std::size_t{1} << 24;

    struct Counts {
        VU meant, stagnated;
    };

    OptimizerRange range;
    OptimizerPass pass;
    Step step;
    const typename Gradient::Raw* gradients;
    std::uint16_t* copies;
    std::uint64_t meant = 0, stagnated = 0;

    Pass(const typename Step::Settings& settings, const OptimizerRange& r, const OptimizerPass& p)
        : range(r),
          pass(p),
          step(settings, r),
          gradients(static_cast<const typename Gradient::Raw*>(r.gradient)),
          copies(static_cast<std::uint16_t*>(r.copy)) {}

    std::uint64_t number(std::size_t i) const { return static_cast<std::uint64_t>(range.first) + i; }

    // Returns the copy; the caller stores it.
    HWY_INLINE VU vector(std::size_t i, Counts& counts) const {
        const DF d;
        const DU bits;
        VF g = Gradient::load32(d, gradients + i);
        if (pass.loss_scale != 1) g = hn::Div(g, hn::Set(d, pass.loss_scale));
        VF before;
        if constexpr (kMaster)
            before = hn::LoadU(d, range.master + i);
        else
            before = Copy::load32(d, copies + i);
        VU moved;
        const VF after = step.vector(i, before, g, moved);
        VU was = hn::BitCast(bits, before), is = hn::BitCast(bits, after);
        if constexpr (kMaster) hn::StoreU(after, d, range.master + i);
        VU rounded = is;
        if constexpr (kCopy) {
            if constexpr (kStochastic)
                rounded = stochastic<Copy::kDType>(after, noise_from(pass.seed, number(i)));
            else
                rounded = nearest<Copy::kDType>(after);
            if constexpr (!kMaster) {
                was = hn::PromoteTo(bits, hn::LoadU(hn::Rebind<std::uint16_t, DU>(), copies + i));
                is = rounded;
            }
        }
        counts.meant = hn::Sub(counts.meant, moved);  // -1 where it moved
        counts.stagnated = hn::Sub(counts.stagnated, hn::And(moved, hn::VecFromMask(bits, hn::Eq(was, is))));
        return rounded;
    }

    // A copy that is only written need not be read into the cache.
    HWY_INLINE void pairs(std::size_t& i, std::size_t elements) {
        const bool streams =
            kMaster && reinterpret_cast<std::uintptr_t>(copies) % (hn::MaxLanes(D16()) * 2) == 0;
        const Pass mine = *this;  // in registers, because no store can change it
        while (i + 2 * kLanes32 <= elements) {
            const std::size_t end = i + std::min(elements - i, kCounted);
            Counts counts{hn::Zero(DU()), hn::Zero(DU())};
            for (; i + 2 * kLanes32 <= end; i += 2 * kLanes32) {
                const VU first = mine.vector(i, counts), second = mine.vector(i + kLanes32, counts);
                if constexpr (kCopy) {
                    if (streams)
                        hn::Stream(lower_halves(first, second), D16(), copies + i);
                    else
                        hn::StoreU(lower_halves(first, second), D16(), copies + i);
                }
            }
            meant += hn::GetLane(hn::SumOfLanes(DU(), counts.meant));
            stagnated += hn::GetLane(hn::SumOfLanes(DU(), counts.stagnated));
        }
        if (streams) hwy::FlushStream();
    }

    void one(std::size_t i) {
        float g = decode_float<Gradient::kDType>(gradients[i]);
        if (pass.loss_scale != 1) g = g / pass.loss_scale;
        float before;
        if constexpr (kMaster)
            before = range.master[i];
        else
            before = decode_float<Copy::kDType>(copies[i]);
        bool moved = false;
        const float after = step.one(i, before, g, moved);
        std::uint32_t was = __builtin_bit_cast(std::uint32_t, before),
                      is = __builtin_bit_cast(std::uint32_t, after);
        if constexpr (kMaster) range.master[i] = after;
        if constexpr (kCopy) {
            std::uint16_t rounded;
            if constexpr (kStochastic)
                rounded = optim::round_stochastic<Copy::kDType>(after, optim::noise_at(pass.seed, number(i)));
            else
                rounded = encode<Copy::kDType>(after);
            if constexpr (!kMaster) was = copies[i], is = rounded;
            copies[i] = rounded;
        }
        meant += moved;
        stagnated += moved && was == is;
    }

    void run(optim::StepCounts& into) {
        const auto elements = static_cast<std::size_t>(range.elements);
        const bool carries = number(0) >> 32 != number(elements) >> 32;
        std::size_t i = 0;
        if (kVectors && !(kStochastic && carries)) pairs(i, elements);
        for (; i < elements; ++i) one(i);
        into.elements += elements;
        into.meant_to_move += meant;
        into.stagnated += stagnated;
    }
};

// ---- The table. ----------------------------------------------------------------------------------

template <class Step, class Gradient, class Copy, bool kMaster, bool kStochastic>
void run(const typename Step::Settings& settings, const OptimizerRange& range, const OptimizerPass& pass,
         optim::StepCounts& into) {
    Pass<Step, Gradient, Copy, kMaster, kStochastic>(settings, range, pass).run(into);
}

template <class Step, class Gradient>
constexpr typename OptimizerTable<typename Step::Settings>::Row row() {
    return {{{run<Step, Gradient, NoCopy, true, false>, nullptr, nullptr, nullptr},
             {run<Step, Gradient, Fp16, true, false>, run<Step, Gradient, Fp16, true, true>,
              run<Step, Gradient, Fp16, false, false>, run<Step, Gradient, Fp16, false, true>},
             {run<Step, Gradient, Bf16, true, false>, run<Step, Gradient, Bf16, true, true>,
              run<Step, Gradient, Bf16, false, false>, run<Step, Gradient, Bf16, false, true>}}};
}

template <class Step>
constexpr OptimizerTable<typename Step::Settings> make_table() {
    return {{row<Step, Fp32>(), row<Step, Fp16>(), row<Step, Bf16>()}};
}

}  // namespace mp::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
