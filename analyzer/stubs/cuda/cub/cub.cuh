// Block, warp and device algorithms. The value type is a template argument of the class or is deduced from
// the iterators, as in the library: that is where a half accumulator shows.
#pragma once

#include <iterator>
#include <type_traits>

#include "../cuda_bf16.h"

#define CUB_VERSION 200700
#define CUB_MAJOR_VERSION 2
#define CUB_MINOR_VERSION 7
#define CCCL_VERSION 2007000
#define CCCL_MAJOR_VERSION 2
#define CCCL_MINOR_VERSION 7

// A program may want its own copy of the library in a namespace of its own.
#ifdef CUB_NS_PREFIX
CUB_NS_PREFIX
#endif
namespace cub {

struct NullType {};
template <class K, class V> struct KeyValuePair { typedef K Key; typedef V Value; K key; V value;
    MP_HD KeyValuePair() {}
    MP_HD KeyValuePair(const K& k, const V& v) : key(k), value(v) {} };
template <class A, class B> using mp_common = typename std::decay<typename std::conditional<
    std::is_same<typename std::decay<A>::type, typename std::decay<B>::type>::value, A,
    typename std::common_type<A, B>::type>::type>::type;
struct Sum { template <class A, class B> MP_HD auto operator()(A&& a, B&& b) const -> decltype(a + b); };
struct Difference { template <class A, class B> MP_HD auto operator()(A&& a, B&& b) const -> decltype(a - b); };
struct Max { template <class A, class B> MP_HD mp_common<A, B> operator()(A&&, B&&) const; };
struct Min { template <class A, class B> MP_HD mp_common<A, B> operator()(A&&, B&&) const; };
struct Equality { template <class A, class B> MP_HD bool operator()(A&&, B&&) const; };
struct ArgMax { template <class K, class V> MP_HD KeyValuePair<K, V> operator()(const KeyValuePair<K, V>&,
    const KeyValuePair<K, V>&) const; };
struct ArgMin { template <class K, class V> MP_HD KeyValuePair<K, V> operator()(const KeyValuePair<K, V>&,
    const KeyValuePair<K, V>&) const; };

enum BlockReduceAlgorithm { BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY, BLOCK_REDUCE_RAKING,
    BLOCK_REDUCE_WARP_REDUCTIONS };
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };
enum BlockLoadAlgorithm { BLOCK_LOAD_DIRECT, BLOCK_LOAD_STRIPED, BLOCK_LOAD_VECTORIZE, BLOCK_LOAD_TRANSPOSE,
    BLOCK_LOAD_WARP_TRANSPOSE };
enum BlockStoreAlgorithm { BLOCK_STORE_DIRECT, BLOCK_STORE_STRIPED, BLOCK_STORE_VECTORIZE,
    BLOCK_STORE_TRANSPOSE, BLOCK_STORE_WARP_TRANSPOSE };
enum CacheLoadModifier { LOAD_DEFAULT, LOAD_CA, LOAD_CG, LOAD_CS, LOAD_CV, LOAD_LDG, LOAD_VOLATILE };
template <class T> struct mp_storage_of { typedef struct { T value; } type; };

template <class T, int X, BlockReduceAlgorithm A = BLOCK_REDUCE_WARP_REDUCTIONS, int Y = 1, int Z = 1,
    int Arch = 0>
class BlockReduce {
public:
    struct TempStorage { char bytes[64]; };
    MP_DEV BlockReduce();
    MP_DEV explicit BlockReduce(TempStorage&);
    template <class Op> MP_DEV T Reduce(T, Op) MP_NO_BODY
    template <int N, class Op> MP_DEV T Reduce(T (&)[N], Op) MP_NO_BODY
    template <class Op> MP_DEV T Reduce(T, Op, int) MP_NO_BODY
    MP_DEV T Sum(T);
    template <int N> MP_DEV T Sum(T (&)[N]);
    MP_DEV T Sum(T, int);
};
template <class T, int LogicalWarp = 32, int Arch = 0>
class WarpReduce {
public:
    struct TempStorage { char bytes[64]; };
    MP_DEV explicit WarpReduce(TempStorage&);
    template <class Op> MP_DEV T Reduce(T, Op) MP_NO_BODY
    template <class Op> MP_DEV T Reduce(T, Op, int) MP_NO_BODY
    MP_DEV T Sum(T);
    MP_DEV T Sum(T, int);
};
template <class T, int X, BlockScanAlgorithm A = BLOCK_SCAN_RAKING, int Y = 1, int Z = 1, int Arch = 0>
class BlockScan {
public:
    struct TempStorage { char bytes[64]; };
    MP_DEV BlockScan();
    MP_DEV explicit BlockScan(TempStorage&);
    MP_DEV void InclusiveSum(T, T&);
    MP_DEV void InclusiveSum(T, T&, T&);
    MP_DEV void ExclusiveSum(T, T&);
    MP_DEV void ExclusiveSum(T, T&, T&);
    template <class Prefix> MP_DEV void InclusiveSum(T, T&, Prefix&) MP_NO_BODY
    template <class Prefix> MP_DEV void ExclusiveSum(T, T&, Prefix&) MP_NO_BODY
    template <int N> MP_DEV void InclusiveSum(T (&)[N], T (&)[N]);
    template <int N> MP_DEV void InclusiveSum(T (&)[N], T (&)[N], T&);
    template <int N> MP_DEV void ExclusiveSum(T (&)[N], T (&)[N]);
    template <int N> MP_DEV void ExclusiveSum(T (&)[N], T (&)[N], T&);
    template <class Op> MP_DEV void InclusiveScan(T, T&, Op) MP_NO_BODY
    template <int N, class Op> MP_DEV void InclusiveScan(T (&)[N], T (&)[N], Op) MP_NO_BODY
    template <int N, class Op, class Prefix> MP_DEV void InclusiveScan(T (&)[N], T (&)[N], Op, Prefix&) MP_NO_BODY
    template <class Op> MP_DEV void ExclusiveScan(T, T&, T, Op) MP_NO_BODY
};
template <class T, int LogicalWarp = 32, int Arch = 0>
class WarpScan {
public:
    struct TempStorage { char bytes[64]; };
    MP_DEV explicit WarpScan(TempStorage&);
    MP_DEV void InclusiveSum(T, T&);
    MP_DEV void InclusiveSum(T, T&, T&);
    MP_DEV void ExclusiveSum(T, T&);
    template <class Op> MP_DEV void InclusiveScan(T, T&, Op) MP_NO_BODY
};
template <class T, int X, int Items, BlockLoadAlgorithm A = BLOCK_LOAD_DIRECT, int Y = 1, int Z = 1, int Arch = 0>
class BlockLoad {
public:
    struct TempStorage { char bytes[64]; };
    MP_DEV BlockLoad();
    MP_DEV explicit BlockLoad(TempStorage&);
    template <class It> MP_DEV void Load(It, T (&)[Items]);
    template <class It> MP_DEV void Load(It, T (&)[Items], int);
    template <class It, class D> MP_DEV void Load(It, T (&)[Items], int, D);
};
template <class T, int X, int Items, BlockStoreAlgorithm A = BLOCK_STORE_DIRECT, int Y = 1, int Z = 1,
    int Arch = 0>
class BlockStore {
public:
    struct TempStorage { char bytes[64]; };
    MP_DEV BlockStore();
    MP_DEV explicit BlockStore(TempStorage&);
    template <class It> MP_DEV void Store(It, T (&)[Items]);
    template <class It> MP_DEV void Store(It, T (&)[Items], int);
};
template <class K, int X, int Items, class V = NullType, int Bits = 4, bool Memoize = true,
    BlockScanAlgorithm A = BLOCK_SCAN_WARP_SCANS>
class BlockRadixSort {
public:
    struct TempStorage { char bytes[64]; };
    MP_DEV BlockRadixSort();
    MP_DEV explicit BlockRadixSort(TempStorage&);
    MP_DEV void Sort(K (&)[Items], int = 0, int = sizeof(K) * 8);
    MP_DEV void Sort(K (&)[Items], V (&)[Items], int = 0, int = sizeof(K) * 8);
    MP_DEV void SortDescending(K (&)[Items], int = 0, int = sizeof(K) * 8);
    MP_DEV void SortDescending(K (&)[Items], V (&)[Items], int = 0, int = sizeof(K) * 8);
    MP_DEV void SortDescendingBlockedToStriped(K (&)[Items], V (&)[Items], int = 0, int = sizeof(K) * 8);
    MP_DEV void SortBlockedToStriped(K (&)[Items], V (&)[Items], int = 0, int = sizeof(K) * 8);
};
template <int X, class T, int N, class It> MP_DEV void LoadDirectStriped(int, It, T (&)[N]);
template <int X, class T, int N, class It> MP_DEV void LoadDirectStriped(int, It, T (&)[N], int);
template <int X, class T, int N, class It> MP_DEV void StoreDirectStriped(int, It, T (&)[N]);
template <int X, class T, int N, class It> MP_DEV void StoreDirectStriped(int, It, T (&)[N], int);

struct DeviceReduce {
    template <class I, class O> static cudaError_t Sum(void*, size_t&, I, O, long long, cudaStream_t = 0);
    template <class I, class O> static cudaError_t Max(void*, size_t&, I, O, long long, cudaStream_t = 0);
    template <class I, class O> static cudaError_t Min(void*, size_t&, I, O, long long, cudaStream_t = 0);
    template <class I, class O> static cudaError_t ArgMax(void*, size_t&, I, O, long long, cudaStream_t = 0);
    template <class I, class O> static cudaError_t ArgMin(void*, size_t&, I, O, long long, cudaStream_t = 0);
    template <class I, class O, class Op, class T>
    static cudaError_t Reduce(void*, size_t&, I, O, long long, Op, T, cudaStream_t = 0);
    template <class I, class O, class Op, class F, class T>
    static cudaError_t TransformReduce(void*, size_t&, I, O, long long, Op, F, T, cudaStream_t = 0);
};
struct DeviceSegmentedReduce {
    template <class I, class O, class B, class E>
    static cudaError_t Sum(void*, size_t&, I, O, long long, B, E, cudaStream_t = 0);
    template <class I, class O, class B, class E>
    static cudaError_t Max(void*, size_t&, I, O, long long, B, E, cudaStream_t = 0);
    template <class I, class O, class B, class E, class Op, class T>
    static cudaError_t Reduce(void*, size_t&, I, O, long long, B, E, Op, T, cudaStream_t = 0);
};
struct DeviceScan {
    template <class I, class O> static cudaError_t InclusiveSum(void*, size_t&, I, O, long long, cudaStream_t = 0);
    template <class I, class O> static cudaError_t ExclusiveSum(void*, size_t&, I, O, long long, cudaStream_t = 0);
    template <class I, class O, class Op>
    static cudaError_t InclusiveScan(void*, size_t&, I, O, Op, long long, cudaStream_t = 0);
};
struct DeviceRadixSort {
    template <class K, class V> static cudaError_t SortPairs(void*, size_t&, const K*, K*, const V*, V*,
        long long, int = 0, int = sizeof(K) * 8, cudaStream_t = 0);
    template <class K, class V> static cudaError_t SortPairsDescending(void*, size_t&, const K*, K*,
        const V*, V*, long long, int = 0, int = sizeof(K) * 8, cudaStream_t = 0);
    template <class K> static cudaError_t SortKeys(void*, size_t&, const K*, K*, long long, int = 0,
        int = sizeof(K) * 8, cudaStream_t = 0);
};
struct DeviceSegmentedRadixSort {
    template <class K, class V, class B, class E> static cudaError_t SortPairs(void*, size_t&, const K*, K*,
        const V*, V*, long long, long long, B, E, int = 0, int = sizeof(K) * 8, cudaStream_t = 0);
    template <class K, class V, class B, class E> static cudaError_t SortPairsDescending(void*, size_t&,
        const K*, K*, const V*, V*, long long, long long, B, E, int = 0, int = sizeof(K) * 8,
        cudaStream_t = 0);
};
struct DeviceSegmentedSort {
    template <class K, class V, class B, class E> static cudaError_t SortPairs(void*, size_t&, const K*, K*,
        const V*, V*, long long, long long, B, E, cudaStream_t = 0);
    template <class K, class V, class B, class E> static cudaError_t SortPairsDescending(void*, size_t&,
        const K*, K*, const V*, V*, long long, long long, B, E, cudaStream_t = 0);
};
struct DeviceSelect {
    template <class I, class F, class O, class N> static cudaError_t Flagged(void*, size_t&, I, F, O, N,
        long long, cudaStream_t = 0) MP_NO_BODY
    template <class I, class O, class N, class P> static cudaError_t If(void*, size_t&, I, O, N, long long,
        P, cudaStream_t = 0) MP_NO_BODY
};
struct DevicePartition {
    template <class I, class F, class O, class N> static cudaError_t Flagged(void*, size_t&, I, F, O, N,
        long long, cudaStream_t = 0) MP_NO_BODY
};
struct DeviceHistogram {
    template <class I, class C, class L, class O>
    static cudaError_t HistogramEven(void*, size_t&, I, C*, int, L, L, O, cudaStream_t = 0);
};
struct CachingDeviceAllocator {
    explicit CachingDeviceAllocator(bool = false, bool = false);
    cudaError_t DeviceAllocate(void**, size_t, cudaStream_t = 0);
    cudaError_t DeviceFree(void*);
};
template <class T, class D = ptrdiff_t> struct CountingInputIterator {
    typedef T value_type; typedef T reference; typedef D difference_type; typedef T* pointer;
    typedef std::random_access_iterator_tag iterator_category;
    MP_HD CountingInputIterator(T);
    MP_HD T operator*() const;
    MP_HD T operator[](D) const;
    MP_HD CountingInputIterator operator+(D) const;
};
template <class V, class F, class I, class D = ptrdiff_t> struct TransformInputIterator {
    typedef V value_type; typedef V reference; typedef D difference_type; typedef V* pointer;
    typedef std::random_access_iterator_tag iterator_category;
    MP_HD TransformInputIterator(I, F);
    MP_HD V operator*() const;
    MP_HD V operator[](D) const;
    MP_HD TransformInputIterator operator+(D) const;
};
MP_DEV unsigned int LaneId();
MP_DEV unsigned int WarpId();

}  // namespace cub
#ifdef CUB_NS_POSTFIX
CUB_NS_POSTFIX
#endif
