// CuTe atoms: an atom's name says the types of D, A, B and the accumulator.
#pragma once

#include "../cutlass/mp_cutlass.h"

#define CUTE_HOST_DEVICE __forceinline__ __host__ __device__
#define CUTE_DEVICE __forceinline__ __device__
#define CUTE_UNROLL _Pragma("unroll")

namespace cute {
using cutlass::bfloat16_t;
using cutlass::half_t;
using cutlass::tfloat32_t;
template <int N> struct Int { static constexpr int value = N; CUTE_HOST_DEVICE constexpr operator int() const { return N; } };
template <int N> using C = Int<N>;
struct Underscore {};
static constexpr Underscore _ = {};
template <class... T> struct Shape {};
template <class... T> struct Stride {};
template <class S, class D = void> struct Layout {};
template <class... T> CUTE_HOST_DEVICE Shape<T...> make_shape(const T&...);
template <class... T> CUTE_HOST_DEVICE Stride<T...> make_stride(const T&...);
template <class... T> CUTE_HOST_DEVICE Layout<Shape<T...>> make_layout(const T&...);

#define MP_ATOM(name) struct name { using DRegisters = unsigned[2]; };
MP_ATOM(SM70_8x8x4_F16F16F16F16_TN) MP_ATOM(SM70_8x8x4_F32F16F16F32_TN)
MP_ATOM(SM75_16x8x8_F32F16F16F32_TN)
MP_ATOM(SM80_16x8x8_F16F16F16F16_TN) MP_ATOM(SM80_16x8x16_F16F16F16F16_TN)
MP_ATOM(SM80_16x8x8_F32F16F16F32_TN) MP_ATOM(SM80_16x8x16_F32F16F16F32_TN)
MP_ATOM(SM80_16x8x8_F32BF16BF16F32_TN) MP_ATOM(SM80_16x8x16_F32BF16BF16F32_TN)
MP_ATOM(SM80_16x8x4_F32TF32TF32F32_TN) MP_ATOM(SM80_16x8x8_F32TF32TF32F32_TN)
MP_ATOM(SM80_8x8x4_F64F64F64F64_TN)
#undef MP_ATOM
template <class Op> struct MMA_Traits;
template <class Op> struct MMA_Atom {};
template <class Atom, class Threads = void, class Tile = void> struct TiledMMA {};
template <class Op, class... A> CUTE_HOST_DEVICE TiledMMA<MMA_Atom<Op>> make_tiled_mma(const Op&, const A&...);
template <class M, class A, class B, class D> MP_DEV void gemm(const M&, const A&, const B&, D&);
}  // namespace cute
