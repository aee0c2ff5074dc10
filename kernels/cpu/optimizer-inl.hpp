// The steps of kernels/numerics/optimizer_step.hpp in vectors. Included once per instruction set.
#if defined(MP_CPU_OPTIMIZER_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MP_CPU_OPTIMIZER_INL
#undef MP_CPU_OPTIMIZER_INL
#else
#define MP_CPU_OPTIMIZER_INL
#endif

#include "kernels/cpu/formats-inl.hpp"
#include "kernels/cpu/short_sums-inl.hpp"
#include "kernels/numerics/optimizer_step.hpp"

HWY_BEFORE_NAMESPACE();
namespace mp::cpu::HWY_NAMESPACE {

// Loads of formats with a smaller range than fp32 make numbers of NaN and infinity on some instruction sets.
template <class F>
void widen_floats(const void* data, std::size_t n, float* out) {
    const auto* p = static_cast<const typename F::Raw*>(data);
    std::size_t i = 0;
    for (; i + kLanes32 <= n; i += kLanes32) hn::StoreU(F::load32(DF(), p + i), DF(), out + i);
    for (; i < n; ++i) out[i] = decode_float<F::kDType>(p[i]);
    if constexpr (F::kTable.exponent_bits < 8)
        for (i = 0; i < n; ++i)
            if ((p[i] & F::kMagnitude) >= F::kBeyondFinite) out[i] = decode_float<F::kDType>(p[i]);
}

// ---- Steps. --------------------------------------------------------------------------------------

HWY_INLINE hn::Mask<DF> not_zero(VF v) { return hn::Ne(v, hn::Zero(DF())); }

struct AdamWStep {
    using Settings = optim::AdamW;
    const Settings& s;
    float* means;
    float* squares;
    AdamWStep(const Settings& settings, const OptimizerBlock& block)
        : s(settings), means(block.state), squares(block.squares) {}

    HWY_INLINE VF vector(std::size_t i, VF w, VF g, hn::Mask<DF>& moved) const {
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
        moved = not_zero(change);
        if (s.decay == 1) return hn::Sub(w, change);
        moved = hn::Or(moved, not_zero(w));
        return hn::Sub(hn::Mul(w, hn::Set(d, s.decay)), change);
    }
    HWY_INLINE float one(std::size_t i, float w, float g, bool& moved) const {
        return optim::step(s, w, g, means[i], squares[i], moved);
    }
};

struct SgdStep {
    using Settings = optim::Sgd;
    const Settings& s;
    float* buffers;
    SgdStep(const Settings& settings, const OptimizerBlock& block) : s(settings), buffers(block.state) {}

    HWY_INLINE VF vector(std::size_t i, VF w, VF g, hn::Mask<DF>& moved) const {
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

template <class Step>
void step_block(const typename Step::Settings& settings, const OptimizerBlock& block,
                optim::StepCounts& into) {
    const Step step(settings, block);
    const DF d;
    const DU bits;
    std::size_t i = 0, meant = 0, still = 0;
    for (; i + kLanes32 <= block.elements; i += kLanes32) {
        const VF before = hn::LoadU(d, block.weight + i);
        hn::Mask<DF> moved;
        const VF after = step.vector(i, before, hn::LoadU(d, block.gradient + i), moved);
        hn::StoreU(after, d, block.weight + i);
        const auto same = hn::RebindMask(d, hn::Eq(hn::BitCast(bits, before), hn::BitCast(bits, after)));
        meant += hn::CountTrue(d, moved);
        still += hn::CountTrue(d, hn::And(moved, same));
        if (block.moved) hn::StoreU(hn::IfThenElseZero(moved, hn::Set(d, 1.0f)), d, block.moved + i);
    }
    for (; i < block.elements; ++i) {
        const float before = block.weight[i];
        bool moved = false;
        const float after = block.weight[i] = step.one(i, before, block.gradient[i], moved);
        meant += moved;
        still +=
            moved && __builtin_bit_cast(std::uint32_t, before) == __builtin_bit_cast(std::uint32_t, after);
        if (block.moved) block.moved[i] = moved;
    }
    into.meant_to_move += meant;
    if (!block.moved) into.stagnated += still;
}

// ---- Rounding to 16 bits. ------------------------------------------------------------------------

HWY_INLINE void store_low_halves(hn::Vec<DU> v, std::uint16_t* to) {
    const hn::Rebind<std::uint16_t, DU> d16;
    hn::StoreU(hn::DemoteTo(d16, hn::BitCast(hn::RebindToSigned<DU>(), v)), d16, to);
}

// To nearest even.
template <DType D>
void narrow_block(const float* from, std::size_t n, std::uint16_t* to) {
    std::size_t i = 0;
    if constexpr (D == DType::bf16) {
        const DU d;
        for (; i + kLanes32 <= n; i += kLanes32) {
            const auto bits = hn::BitCast(d, hn::LoadU(DF(), from + i));
            const auto magnitude = hn::And(bits, hn::Set(d, 0x7FFFFFFFu));
            const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1));
            const auto rounded = hn::ShiftRight<16>(hn::Add(hn::Add(bits, hn::Set(d, 0x7FFF)), odd));
            const auto quiet = hn::Or(hn::ShiftRight<16>(bits), hn::Set(d, 0x40));
            const auto nan = hn::Gt(magnitude, hn::Set(d, 0x7F800000u));
            store_low_halves(hn::IfThenElse(nan, quiet, rounded), to + i);
        }
    }
#if HWY_TARGET != HWY_EMU128 && HWY_TARGET != HWY_SCALAR
    if constexpr (D == DType::fp16) {
        const hn::Rebind<hwy::float16_t, DF> d16;
        const hn::RebindToUnsigned<decltype(d16)> bits;
        for (; i + kLanes32 <= n; i += kLanes32)
            hn::StoreU(hn::BitCast(bits, hn::DemoteTo(d16, hn::LoadU(DF(), from + i))), bits, to + i);
    }
#endif
    for (; i < n; ++i) to[i] = encode<D>(from[i]);
}

HWY_INLINE hn::Vec<DU> mixed(hn::Vec<DU> x) {
    const DU d;
    x = hn::Mul(hn::Xor(x, hn::ShiftRight<16>(x)), hn::Set(d, 0x7FEB352Du));
    x = hn::Mul(hn::Xor(x, hn::ShiftRight<15>(x)), hn::Set(d, 0x846CA68Bu));
    return hn::Xor(x, hn::ShiftRight<16>(x));
}

// optim::round_stochastic; `first` is the number of from[0] in its tensor.
template <DType D>
void narrow_stochastic_block(const float* from, std::size_t n, std::uint16_t* to, std::uint64_t seed,
                             std::uint64_t first) {
    constexpr int kDropped = D == DType::bf16 ? 16 : 13;
    const DU d;
    const auto key = hn::Set(
        d, static_cast<std::uint32_t>(first >> 32) * 0x9E3779B9u ^ static_cast<std::uint32_t>(seed >> 32));
    const auto largest = hn::Set(d, optim::kLargestMagnitude<D>);
    const bool carries = first >> 32 != (first + n) >> 32;  // the key is that of the first element
    std::size_t i = 0;
    for (; !carries && i + kLanes32 <= n; i += kLanes32) {
        const auto bits = hn::BitCast(d, hn::LoadU(DF(), from + i));
        const auto magnitude = hn::And(bits, hn::Set(d, 0x7FFFFFFFu));
        const auto low =
            hn::Iota(d, static_cast<std::uint32_t>(first + i) + static_cast<std::uint32_t>(seed));
        const auto random = hn::ShiftRight<32 - kDropped>(mixed(hn::Xor(mixed(low), key)));
        auto moved = magnitude;
        if constexpr (D == DType::fp16) {
            const auto tiny = hn::Lt(magnitude, hn::Set(d, 0x38800000u));
            const auto bounded = hn::IfThenElseZero(tiny, magnitude);
            const auto steps = hn::Mul(hn::BitCast(DF(), bounded), hn::Set(DF(), 0x1p37f));
            const auto whole = hn::BitCast(d, hn::ConvertTo(hn::RebindToSigned<DU>(), steps));
            moved = hn::IfThenElse(tiny, whole, hn::Sub(magnitude, hn::Set(d, 0x38000000u)));
        }
        const auto rounded = hn::ShiftRight<kDropped>(hn::Add(moved, random));
        const auto sign = hn::ShiftLeft<15>(hn::ShiftRight<31>(bits));
        store_low_halves(hn::Or(rounded, sign), to + i);
        if (!hn::AllFalse(d, hn::Gt(magnitude, largest))) break;  // the rest one by one
    }
    for (; i < n; ++i) to[i] = optim::round_stochastic<D>(from[i], optim::noise_at(seed, first + i));
}

}  // namespace mp::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
