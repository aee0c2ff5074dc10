// Thread groups and their collectives.
#pragma once

#include "cuda_bf16.h"

namespace cooperative_groups {

class thread_group {
public:
    MP_DEV unsigned long long size() const;
    MP_DEV unsigned long long num_threads() const;
    MP_DEV unsigned long long thread_rank() const;
    MP_DEV void sync() const;
    MP_DEV bool is_valid() const;
};
class thread_block : public thread_group {
public:
    MP_DEV static dim3 group_index();
    MP_DEV static dim3 thread_index();
    MP_DEV static dim3 dim_threads();
    MP_DEV static dim3 group_dim();
    MP_DEV static unsigned int thread_rank();
    MP_DEV static unsigned int size();
    MP_DEV static unsigned int num_threads();
    MP_DEV static void sync();
};
class grid_group : public thread_group {
public:
    MP_DEV static dim3 group_dim();
    MP_DEV static dim3 dim_blocks();
    MP_DEV static unsigned long long block_rank();
    MP_DEV static unsigned long long num_blocks();
};
class cluster_group : public thread_group {
public:
    MP_DEV static dim3 block_index();
    MP_DEV static unsigned int block_rank();
    MP_DEV static unsigned int num_blocks();
    template <class T> MP_DEV static T* map_shared_rank(T*, int);
};
class coalesced_group : public thread_group {
public:
    template <class T> MP_DEV T shfl(T, int) const;
    template <class T> MP_DEV T shfl_up(T, unsigned int) const;
    template <class T> MP_DEV T shfl_down(T, unsigned int) const;
    MP_DEV unsigned int ballot(int) const;
    MP_DEV int any(int) const;
    MP_DEV int all(int) const;
};
template <unsigned int Size, class Parent = void> class thread_block_tile;
template <unsigned int Size>
class thread_block_tile<Size, void> : public thread_group {
public:
    MP_DEV static constexpr unsigned int size() { return Size; }
    MP_DEV static constexpr unsigned int num_threads() { return Size; }
    MP_DEV unsigned int thread_rank() const;
    MP_DEV unsigned int meta_group_rank() const;
    MP_DEV unsigned int meta_group_size() const;
    template <class T> MP_DEV T shfl(T, int) const;
    template <class T> MP_DEV T shfl_up(T, unsigned int) const;
    template <class T> MP_DEV T shfl_down(T, unsigned int) const;
    template <class T> MP_DEV T shfl_xor(T, unsigned int) const;
    MP_DEV unsigned int ballot(int) const;
    MP_DEV int any(int) const;
    MP_DEV int all(int) const;
};

template <unsigned int Size, class Parent>
class thread_block_tile : public thread_block_tile<Size, void> {};

MP_DEV thread_block this_thread_block();
MP_DEV grid_group this_grid();
MP_DEV cluster_group this_cluster();
MP_DEV coalesced_group coalesced_threads();
template <unsigned int Size, class Parent>
MP_DEV thread_block_tile<Size, Parent> tiled_partition(const Parent&);
MP_DEV thread_group tiled_partition(const thread_group&, unsigned int);
MP_DEV coalesced_group binary_partition(const coalesced_group&, bool);
template <class G> MP_DEV void sync(const G&);

template <class T = void> struct plus { template <class A, class B> MP_HD T operator()(A&&, B&&) const; };
template <class T = void> struct less { template <class A, class B> MP_HD T operator()(A&&, B&&) const; };
template <class T = void> struct greater { template <class A, class B> MP_HD T operator()(A&&, B&&) const; };
template <class T = void> struct bit_and { template <class A, class B> MP_HD T operator()(A&&, B&&) const; };
template <class T = void> struct bit_or { template <class A, class B> MP_HD T operator()(A&&, B&&) const; };
template <class T = void> struct bit_xor { template <class A, class B> MP_HD T operator()(A&&, B&&) const; };

template <class T> struct mp_value { typedef T type; };
template <class T> struct mp_value<T&> : mp_value<T> {};
template <class T> struct mp_value<const T> : mp_value<T> {};
template <class G, class T, class F> MP_DEV typename mp_value<T>::type reduce(const G&, T&&, F&&) MP_NO_BODY
template <class G, class T, class F> MP_DEV T inclusive_scan(const G&, T, F&&) MP_NO_BODY
template <class G, class T, class F> MP_DEV T exclusive_scan(const G&, T, F&&) MP_NO_BODY
template <class G, class T> MP_DEV T inclusive_scan(const G&, T);
template <class G, class T> MP_DEV T exclusive_scan(const G&, T);
template <class G, class T> MP_DEV void memcpy_async(const G&, T*, const T*, __SIZE_TYPE__);
template <class G> MP_DEV void wait(const G&);

}  // namespace cooperative_groups
