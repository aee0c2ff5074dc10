// Counters of exponents, by carry-save adders. Included once per instruction set.
#if defined(MP_CPU_EXPONENT_COUNTERS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MP_CPU_EXPONENT_COUNTERS_INL
#undef MP_CPU_EXPONENT_COUNTERS_INL
#else
#define MP_CPU_EXPONENT_COUNTERS_INL
#endif

#include "kernels/cpu/formats-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace mp::cpu::HWY_NAMESPACE {

using D16 = hn::ScalableTag<std::uint16_t>;
using D8 = hn::Repartition<std::uint8_t, D16>;
using V16 = hn::Vec<D16>;
inline constexpr std::size_t kLanes16 = hn::MaxLanes(D16());
inline constexpr unsigned kWindow = 16;  // number of bins counted at once: one bit of a lane each

// Counts the values of 16 neighbouring bins. Each lane holds 16 counters of 8 bits: bit b of plane k is bit
// k of the counter of bin top - b. A value sets the bit of its bin, and carry-save adders add that bit to
// the counter.
struct Counters {
    static constexpr int kPlanes = 8;
    static constexpr int kDepth = 4;  // 2^kDepth vectors are added at once
    static constexpr std::size_t kVectors = std::size_t{1} << kDepth;
    static constexpr std::size_t kCapacity = 256 - kVectors;  // vectors until a counter may be full

    V16 planes[kPlanes];

    HWY_INLINE Counters() {
        for (V16& plane : planes) plane = hn::Zero(D16());
    }

    // 1 << (top - bin); 0 outside of the window. `highest` is the highest value of bin `top`.
    static HWY_INLINE V16 bit_of(V16 highest, const std::uint16_t* p) {
        const D16 d;
        const V16 magnitude = hn::And(hn::LoadU(d, p), hn::Set(d, 0x7FFF));
        const V16 below = hn::ShiftRight<7>(hn::Sub(highest, magnitude));
#if HWY_TARGET <= HWY_AVX3
        return hn::Shl(hn::Set(d, 1), below);  // a shift by 16 or more gives 0
#else
        // A table of the bits of a byte. Saturated addition leaves 0 to 7 in the lower four bits of the one
        // byte that contains the bit. All other bytes get 8 to 15 or the sign bit, for which the table
        // lookup gives 0.
        alignas(16) static constexpr std::uint8_t kBits[16] = {1, 2, 4, 8, 16, 32, 64, 128};
        const D8 d8;
        const V16 byte = hn::Min(below, hn::Set(d, 0xFF));
        const auto twice = hn::BitCast(d8, hn::Or(byte, hn::ShiftLeft<8>(byte)));
        const auto index = hn::SaturatedAdd(twice, hn::BitCast(d8, hn::Set(d, 0x6870)));
        return hn::BitCast(
            d, hn::TableLookupBytesOr0(hn::LoadDup128(d8, kBits), hn::And(index, hn::Set(d8, 0x8F))));
#endif
    }

    // Adds a and b to a plane; returns the carry.
    static HWY_INLINE V16 add(V16& plane, V16 a, V16 b) {
#if HWY_TARGET <= HWY_AVX3
        constexpr int kMajority = 0xE8, kParity = 0x96;
        const V16 most{_mm512_ternarylogic_epi64(a.raw, b.raw, plane.raw, kMajority)};
        plane = V16{_mm512_ternarylogic_epi64(a.raw, b.raw, plane.raw, kParity)};
        return most;
#else
        const V16 either = hn::Xor(a, b);
        const V16 carry = hn::Or(hn::And(a, b), hn::And(either, plane));
        plane = hn::Xor(plane, either);
        return carry;
#endif
    }

    // Adds 2^Depth vectors of bits, starting with `bits(i)`, to the first planes; returns the carry for
    // plane `Depth`.
    template <int Depth, class Bits>
    HWY_INLINE V16 add_vectors(const Bits& bits, std::size_t i) {
        if constexpr (Depth == 0) {
            return bits(i);
        } else {
            const V16 a = add_vectors<Depth - 1>(bits, i);
            const V16 b = add_vectors<Depth - 1>(bits, i + (std::size_t{1} << (Depth - 1)));
            return add(planes[Depth - 1], a, b);
        }
    }

    template <int First>
    HWY_INLINE void ripple(V16 carry) {
        for (int k = First; k < kPlanes; ++k) {
            const V16 next = hn::And(planes[k], carry);
            planes[k] = hn::Xor(planes[k], carry);
            carry = next;
        }
    }

    // Transposes bits: afterwards the bytes of planes[b] count bin top - b (even bytes) and top - b - 8
    // (odd bytes).
    template <int Distance>
    HWY_INLINE void exchange(std::uint16_t columns) {
        const V16 mask = hn::Set(D16(), columns);
        for (int k = 0; k < kPlanes; ++k) {
            if (k & Distance) continue;
            V16 &a = planes[k], &b = planes[k + Distance];
            const V16 differ = hn::And(hn::Xor(hn::ShiftRight<Distance>(a), b), mask);
            b = hn::Xor(b, differ);
            a = hn::Xor(a, hn::ShiftLeft<Distance>(differ));
        }
    }

    // Adds the counts of bin top - b to counts[b].
    HWY_INLINE void unload(std::uint64_t (&counts)[kWindow]) {
        exchange<4>(0x0F0F);
        exchange<2>(0x3333);
        exchange<1>(0x5555);
        add_rows(counts);
    }

#if HWY_TARGET <= HWY_AVX3
    // The even bytes of a pair of qwords go to the lower one, the odd bytes to the upper one; then their
    // sums, 16 bits for each of four planes; then the sums of all pairs.
    HWY_INLINE void add_rows(std::uint64_t (&counts)[kWindow]) const {
        alignas(16) static constexpr std::uint8_t kEvenThenOdd[16] = {0, 2, 4, 6, 8, 10, 12, 14,
                                                                      1, 3, 5, 7, 9, 11, 13, 15};
        const __m512i order =
            _mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i*>(kEvenThenOdd)));
        __m512i four[2] = {};
        for (int k = kPlanes - 1; k >= 0; --k) {
            const __m512i sums =
                _mm512_sad_epu8(_mm512_shuffle_epi8(planes[k].raw, order), _mm512_setzero_si512());
            four[k / 4] = k % 4 == 3 ? sums : _mm512_or_si512(_mm512_slli_epi64(four[k / 4], 16), sums);
        }
        const __m512i even = _mm512_unpacklo_epi64(four[0], four[1]),
                      odd = _mm512_unpackhi_epi64(four[0], four[1]);
        __m512i all =
            _mm512_add_epi64(_mm512_shuffle_i64x2(even, odd, 0x44), _mm512_shuffle_i64x2(even, odd, 0xEE));
        all = _mm512_add_epi64(all, _mm512_shuffle_i64x2(all, all, 0xB1));
        const __m256i row = _mm512_castsi512_si256(_mm512_shuffle_i64x2(all, all, 0x08));
        const __m512i low = _mm512_cvtepu16_epi64(_mm256_castsi256_si128(row));
        const __m512i high = _mm512_cvtepu16_epi64(_mm256_extracti128_si256(row, 1));
        _mm512_storeu_si512(counts, _mm512_add_epi64(_mm512_loadu_si512(counts), low));
        _mm512_storeu_si512(counts + 8, _mm512_add_epi64(_mm512_loadu_si512(counts + 8), high));
    }
#else
    HWY_INLINE void add_rows(std::uint64_t (&counts)[kWindow]) const {
        for (unsigned first = 0; first < kWindow; first += 4) {
            const std::uint64_t four = sums_of_four(planes + first % 8, first >= 8);
            for (unsigned k = 0; k < 4; ++k) counts[first + k] += four >> (16 * k) & 0xFFFF;
        }
    }

    // Sums of the even or odd bytes of four planes, 16 bits each.
    static HWY_INLINE std::uint64_t sums_of_four(const V16* of, bool odd) {
        const hn::Repartition<std::uint64_t, D16> d64;
        auto packed = hn::Zero(d64);
        for (int k = 3; k >= 0; --k) {
            const V16 bytes = odd ? hn::ShiftRight<8>(of[k]) : hn::And(of[k], hn::Set(D16(), 0xFF));
            packed = hn::Add(hn::ShiftLeft<16>(packed), hn::SumsOf8(hn::BitCast(D8(), bytes)));
        }
        alignas(64) std::uint64_t lanes[hn::MaxLanes(d64)];
        hn::Store(packed, d64, lanes);
        std::uint64_t sum = 0;
        for (const std::uint64_t lane : lanes) sum += lane;
        return sum;
    }
#endif
};

}  // namespace mp::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
