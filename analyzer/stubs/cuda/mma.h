// Warp-level matrix fragments: the accumulator's element type is a template argument.
#pragma once

#include "cuda_bf16.h"

namespace nvcuda {
namespace wmma {

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32;
struct u4;
struct s4;
struct b1;
}  // namespace precision

template <class T> struct mp_storage { typedef T type; };
template <> struct mp_storage<precision::tf32> { typedef float type; };

template <class Use, int M, int N, int K, class T, class Layout = void>
class fragment {
public:
    typedef T element_type;
    typedef typename mp_storage<T>::type storage_element_type;
    enum { num_elements = 16, num_storage_elements = 16 };
    storage_element_type x[16];
};

template <class U, int M, int N, int K, class T, class L, class V>
MP_DEV void fill_fragment(fragment<U, M, N, K, T, L>&, const V&);
template <class U, int M, int N, int K, class T, class L, class S>
MP_DEV void load_matrix_sync(fragment<U, M, N, K, T, L>&, const S*, unsigned);
template <int M, int N, int K, class T, class S>
MP_DEV void load_matrix_sync(fragment<accumulator, M, N, K, T>&, const S*, unsigned, layout_t);
template <int M, int N, int K, class T, class S>
MP_DEV void store_matrix_sync(S*, const fragment<accumulator, M, N, K, T>&, unsigned, layout_t);
template <int M, int N, int K, class A, class B, class LA, class LB, class D, class C>
MP_DEV void mma_sync(fragment<accumulator, M, N, K, D>&, const fragment<matrix_a, M, N, K, A, LA>&,
                     const fragment<matrix_b, M, N, K, B, LB>&, const fragment<accumulator, M, N, K, C>&,
                     bool = false);
MP_DEV float __float_to_tf32(float);

}  // namespace wmma
}  // namespace nvcuda
