// cuBLAS. The wrappers have the signatures of cublas_api.h, with its handles as pointers and its enumerations as int.
// Calls that come here from inside cuBLAS or cuBLASLt are parts of the outer call.

#include "instrument/cuda/dtypes.hpp"
#include "instrument/cuda/hooks.hpp"

namespace mp::raw {
namespace {

constexpr const char* kLibrary = "libcublas.so";

struct Operand {
    const void* data;
    int type;
    std::int64_t leading;
    long long stride = 0;
};

struct Gemm {
    void* handle;
    int transpose_a, transpose_b;
    std::int64_t m, n, k;
    const void *alpha, *beta;
    Operand a, b, c;
    std::int64_t batches = 1;
    int compute = abi::kCompute32F;
    bool arrays = false;  // the operands are arrays of pointers in device memory
};

int query(Real<int (*)(void*, int*)>& function, void* handle, int otherwise) {
    int value = otherwise;
    const auto get = function.get(handle);
    return get && get(handle, &value) == 0 ? value : otherwise;
}

int pointer_mode(void* handle) {
    static Real<int (*)(void*, int*)> get{"cublasGetPointerMode_v2", kLibrary};
    return query(get, handle, -1);
}

int math_mode(void* handle) {
    static Real<int (*)(void*, int*)> get{"cublasGetMathMode", kLibrary};
    return query(get, handle, 0);
}

bool stream_of(void* handle, abi::Stream& stream) {
    static Real<int (*)(void*, abi::Stream*)> real{"cublasGetStream_v2", kLibrary};
    const auto get = real.get(handle);
    return get && get(handle, &stream) == 0;
}

// Rows and columns are those in memory, before the transposition.
Matrix matrix_of(const Gemm& g, const Operand& o, std::int64_t rows, std::int64_t columns) {
    Matrix m;
    m.data = g.arrays ? nullptr : o.data;
    m.dtype = dtype_of_cuda(o.type);
    m.rows = rows;
    m.columns = columns;
    m.leading = o.leading;
    m.batches = g.batches;
    m.stride = o.stride;
    return m;
}

bool describe(const Gemm& g, Product& product) {
    if (g.m <= 0 || g.n <= 0 || g.batches <= 0 || !stream_of(g.handle, product.stream)) return false;
    product.op = "cublas::matmul";
    product.depth = static_cast<std::uint64_t>(g.k);
    product.result = matrix_of(g, g.c, g.m, g.n);
    const bool ta = g.transpose_a != abi::kTransposeNone, tb = g.transpose_b != abi::kTransposeNone;
    product.transposed_a = ta;
    product.transposed_b = tb;
    if (g.k > 0) {
        product.read(matrix_of(g, g.a, ta ? g.k : g.m, ta ? g.m : g.k));
        product.read(matrix_of(g, g.b, tb ? g.n : g.k, tb ? g.k : g.n));
    }
    const bool on_host = pointer_mode(g.handle) == abi::kPointerModeHost;
    product.is_plain = g.k > 0 && product.set_factors(on_host ? factor_of(g.alpha, g.compute) : std::nullopt,
                                                      on_host ? factor_of(g.beta, g.compute) : std::nullopt);
    if (product.beta != 0) product.c = product.read(product.result);
    product.compute = g.compute;
    product.half_sums = is_half_compute(g.compute);
    const int math = math_mode(g.handle);
    product.loose_sums =
        is_low_precision(product.result.dtype) && !product.half_sums && (math & abi::kMathReducesWide) == 0;
    product.tf32 =
        product.inputs[0].dtype == DType::fp32 && product.count > 0 && rounds_inputs(g.compute, math);
    return true;
}

// y = alpha op(A) x + beta y as one row: y^T = alpha x^T op(A)^T + beta y^T. A vector that lies backwards is not
// measured.
Gemm row_of(void* handle, int transpose, std::int64_t m, std::int64_t n, const void* alpha, const Operand& a,
            const Operand& x, const void* beta, const Operand& y, std::int64_t batches = 1,
            bool arrays = false) {
    const bool plain = transpose == abi::kTransposeNone;
    Gemm g{handle,
           abi::kTransposeNone,
           plain ? abi::kTransposeOther : abi::kTransposeNone,
           1,
           plain ? m : n,
           plain ? n : m,
           alpha,
           beta,
           x,
           a,
           y,
           batches};
    g.arrays = arrays || x.leading < 1 || y.leading < 1;
    return g;
}

// Groups of products that have their sizes in arrays of the host. The one with the longest sums is recorded.
template <class Int>
struct Groups {
    void* handle;
    const int *transpose_a, *transpose_b;
    const Int *m, *n, *k;
    const void* alpha;
    int at;
    const Int* lda;
    int bt;
    const Int* ldb;
    const void* beta;
    int ct;
    const Int* ldc;
    Int count;
    const Int* sizes;
    int compute = abi::kCompute32F;
};

template <class Int>
Gemm longest_of(const Groups<Int>& all) {
    Gemm g{};
    g.handle = all.handle;
    const std::int64_t width = is_half_compute(all.compute) ? 2 : is_double_compute(all.compute) ? 8 : 4;
    const auto factor = [width](const void* of, Int i) {
        return of ? static_cast<const char*>(of) + width * i : nullptr;
    };
    for (Int i = 0; i < all.count; ++i) {
        if (all.m[i] <= 0 || all.n[i] <= 0 || all.sizes[i] <= 0 || (g.m > 0 && all.k[i] <= g.k)) continue;
        g = {all.handle,
             all.transpose_a[i],
             all.transpose_b[i],
             all.m[i],
             all.n[i],
             all.k[i],
             factor(all.alpha, i),
             factor(all.beta, i),
             {nullptr, all.at, all.lda[i]},
             {nullptr, all.bt, all.ldb[i]},
             {nullptr, all.ct, all.ldc[i]},
             all.sizes[i],
             all.compute,
             true};
    }
    return g;
}

template <class Call>
int gemm(const Gemm& g, const Call& call) noexcept {
    return observe<Product>(
        Source::cublas, call, [&g](Product& product) { return describe(g, product); },
        [](Run& run, const Product& product) { return run.before(ranges().place, product); });
}

}  // namespace
}  // namespace mp::raw

using mp::raw::Gemm;
using mp::raw::Groups;
using mp::raw::Real;
namespace abi = mp::raw::abi;

// A wrapper: finds the real function, and fails as cuBLAS does without a handle where there is none.
#define MP_REAL(name)                                         \
    static Real<decltype(&name)> real{#name, "libcublas.so"}; \
    const auto next = real.get(__builtin_return_address(0));  \
    if (!next) return abi::kNotInitialized

#define MP_GEMM_EX(name, Int)                                                                              \
    MP_HOOK int name(void* handle, int ta, int tb, Int m, Int n, Int k, const void* alpha, const void* a,  \
                     int at, Int lda, const void* b, int bt, Int ldb, const void* beta, void* c, int ct,   \
                     Int ldc, int compute, int algorithm) {                                                \
        MP_REAL(name);                                                                                     \
        const Gemm g{handle,       ta,           tb,           m, n,      k, alpha, beta,                  \
                     {a, at, lda}, {b, bt, ldb}, {c, ct, ldc}, 1, compute};                                \
        return mp::raw::gemm(g, [&] {                                                                      \
            return next(handle, ta, tb, m, n, k, alpha, a, at, lda, b, bt, ldb, beta, c, ct, ldc, compute, \
                        algorithm);                                                                        \
        });                                                                                                \
    }

#define MP_GEMM_STRIDED_EX(name, Int)                                                                     \
    MP_HOOK int name(void* handle, int ta, int tb, Int m, Int n, Int k, const void* alpha, const void* a, \
                     int at, Int lda, long long sa, const void* b, int bt, Int ldb, long long sb,         \
                     const void* beta, void* c, int ct, Int ldc, long long sc, Int batches, int compute,  \
                     int algorithm) {                                                                     \
        MP_REAL(name);                                                                                    \
        const Gemm g{                                                                                     \
            handle,           ta,      tb,     m, n, k, alpha, beta, {a, at, lda, sa}, {b, bt, ldb, sb},  \
            {c, ct, ldc, sc}, batches, compute};                                                          \
        return mp::raw::gemm(g, [&] {                                                                     \
            return next(handle, ta, tb, m, n, k, alpha, a, at, lda, sa, b, bt, ldb, sb, beta, c, ct, ldc, \
                        sc, batches, compute, algorithm);                                                 \
        });                                                                                               \
    }

#define MP_GEMM_BATCHED_EX(name, Int)                                                                      \
    MP_HOOK int name(void* handle, int ta, int tb, Int m, Int n, Int k, const void* alpha,                 \
                     const void* const* a, int at, Int lda, const void* const* b, int bt, Int ldb,         \
                     const void* beta, void* const* c, int ct, Int ldc, Int batches, int compute,          \
                     int algorithm) {                                                                      \
        MP_REAL(name);                                                                                     \
        const Gemm g{handle,       ta,           tb,           m,       n,       k,   alpha, beta,         \
                     {a, at, lda}, {b, bt, ldb}, {c, ct, ldc}, batches, compute, true};                    \
        return mp::raw::gemm(g, [&] {                                                                      \
            return next(handle, ta, tb, m, n, k, alpha, a, at, lda, b, bt, ldb, beta, c, ct, ldc, batches, \
                        compute, algorithm);                                                               \
        });                                                                                                \
    }

#define MP_GEMM(name, Int, type, compute)                                                                 \
    MP_HOOK int name(void* handle, int ta, int tb, Int m, Int n, Int k, const void* alpha, const void* a, \
                     Int lda, const void* b, Int ldb, const void* beta, void* c, Int ldc) {               \
        MP_REAL(name);                                                                                    \
        const Gemm g{handle,         ta, tb,     m, n, k, alpha, beta, {a, type, lda}, {b, type, ldb},    \
                     {c, type, ldc}, 1,  compute};                                                        \
        return mp::raw::gemm(                                                                             \
            g, [&] { return next(handle, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc); });       \
    }

#define MP_GEMM_STRIDED(name, Int, type, compute)                                                            \
    MP_HOOK int name(void* handle, int ta, int tb, Int m, Int n, Int k, const void* alpha, const void* a,    \
                     Int lda, long long sa, const void* b, Int ldb, long long sb, const void* beta, void* c, \
                     Int ldc, long long sc, Int batches) {                                                   \
        MP_REAL(name);                                                                                       \
        const Gemm g{handle,                                                                                 \
                     ta,                                                                                     \
                     tb,                                                                                     \
                     m,                                                                                      \
                     n,                                                                                      \
                     k,                                                                                      \
                     alpha,                                                                                  \
                     beta,                                                                                   \
                     {a, type, lda, sa},                                                                     \
                     {b, type, ldb, sb},                                                                     \
                     {c, type, ldc, sc},                                                                     \
                     batches,                                                                                \
                     compute};                                                                               \
        return mp::raw::gemm(g, [&] {                                                                        \
            return next(handle, ta, tb, m, n, k, alpha, a, lda, sa, b, ldb, sb, beta, c, ldc, sc, batches);  \
        });                                                                                                  \
    }

#define MP_SGEMM_EX(name, Int)                                                                            \
    MP_HOOK int name(void* handle, int ta, int tb, Int m, Int n, Int k, const void* alpha, const void* a, \
                     int at, Int lda, const void* b, int bt, Int ldb, const void* beta, void* c, int ct,  \
                     Int ldc) {                                                                           \
        MP_REAL(name);                                                                                    \
        const Gemm g{handle, ta, tb, m, n, k, alpha, beta, {a, at, lda}, {b, bt, ldb}, {c, ct, ldc}};     \
        return mp::raw::gemm(g, [&] {                                                                     \
            return next(handle, ta, tb, m, n, k, alpha, a, at, lda, b, bt, ldb, beta, c, ct, ldc);        \
        });                                                                                               \
    }

#define MP_GEMM_BATCHED(name, Int, type, compute)                                                            \
    MP_HOOK int name(void* handle, int ta, int tb, Int m, Int n, Int k, const void* alpha,                   \
                     const void* const* a, Int lda, const void* const* b, Int ldb, const void* beta,         \
                     void* const* c, Int ldc, Int batches) {                                                 \
        MP_REAL(name);                                                                                       \
        const Gemm g{                                                                                        \
            handle,         ta,      tb,      m,   n, k, alpha, beta, {a, type, lda}, {b, type, ldb},        \
            {c, type, ldc}, batches, compute, true};                                                         \
        return mp::raw::gemm(                                                                                \
            g, [&] { return next(handle, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, batches); }); \
    }

#define MP_GEMM_GROUPED(name, Int)                                                                         \
    MP_HOOK int name(void* handle, const int* ta, const int* tb, const Int* m, const Int* n, const Int* k, \
                     const void* alpha, const void* const* a, const Int* lda, const void* const* b,        \
                     const Int* ldb, const void* beta, void* const* c, const Int* ldc, Int count,          \
                     const Int* sizes) {                                                                   \
        MP_REAL(name);                                                                                     \
        const Groups<Int> all{handle, ta,         tb,  m,    n,          k,   alpha, abi::kR32F,           \
                              lda,    abi::kR32F, ldb, beta, abi::kR32F, ldc, count, sizes};               \
        return mp::raw::gemm(mp::raw::longest_of(all), [&] {                                               \
            return next(handle, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, count, sizes);       \
        });                                                                                                \
    }

#define MP_GEMM_GROUPED_EX(name, Int)                                                                       \
    MP_HOOK int name(void* handle, const int* ta, const int* tb, const Int* m, const Int* n, const Int* k,  \
                     const void* alpha, const void* const* a, int at, const Int* lda, const void* const* b, \
                     int bt, const Int* ldb, const void* beta, void* const* c, int ct, const Int* ldc,      \
                     Int count, const Int* sizes, int compute) {                                            \
        MP_REAL(name);                                                                                      \
        const Groups<Int> all{handle, ta,  tb,   m,  n,   k,     alpha, at,     lda,                        \
                              bt,     ldb, beta, ct, ldc, count, sizes, compute};                           \
        return mp::raw::gemm(mp::raw::longest_of(all), [&] {                                                \
            return next(handle, ta, tb, m, n, k, alpha, a, at, lda, b, bt, ldb, beta, c, ct, ldc, count,    \
                        sizes, compute);                                                                    \
        });                                                                                                 \
    }

#define MP_GEMV(name, Int, type)                                                                             \
    MP_HOOK int name(void* handle, int t, Int m, Int n, const void* alpha, const void* a, Int lda,           \
                     const void* x, Int incx, const void* beta, void* y, Int incy) {                         \
        MP_REAL(name);                                                                                       \
        return mp::raw::gemm(                                                                                \
            mp::raw::row_of(handle, t, m, n, alpha, {a, type, lda}, {x, type, incx}, beta, {y, type, incy}), \
            [&] { return next(handle, t, m, n, alpha, a, lda, x, incx, beta, y, incy); });                   \
    }

#define MP_GEMV_BATCHED(name, Int, in, out)                                                               \
    MP_HOOK int name(void* handle, int t, Int m, Int n, const void* alpha, const void* const* a, Int lda, \
                     const void* const* x, Int incx, const void* beta, void* const* y, Int incy,          \
                     Int batches) {                                                                       \
        MP_REAL(name);                                                                                    \
        return mp::raw::gemm(                                                                             \
            mp::raw::row_of(handle, t, m, n, alpha, {a, in, lda}, {x, in, incx}, beta, {y, out, incy},    \
                            batches, true),                                                               \
            [&] { return next(handle, t, m, n, alpha, a, lda, x, incx, beta, y, incy, batches); });       \
    }

#define MP_GEMV_STRIDED(name, Int, in, out)                                                                  \
    MP_HOOK int name(void* handle, int t, Int m, Int n, const void* alpha, const void* a, Int lda,           \
                     long long sa, const void* x, Int incx, long long sx, const void* beta, void* y,         \
                     Int incy, long long sy, Int batches) {                                                  \
        MP_REAL(name);                                                                                       \
        return mp::raw::gemm(mp::raw::row_of(handle, t, m, n, alpha, {a, in, lda, sa}, {x, in, incx, sx},    \
                                             beta, {y, out, incy, sy}, batches),                             \
                             [&] {                                                                           \
                                 return next(handle, t, m, n, alpha, a, lda, sa, x, incx, sx, beta, y, incy, \
                                             sy, batches);                                                   \
                             });                                                                             \
    }

// clang-format off
MP_GEMM_EX(cublasGemmEx, int)
MP_GEMM_EX(cublasGemmEx_64, std::int64_t)
MP_GEMM_STRIDED_EX(cublasGemmStridedBatchedEx, int)
MP_GEMM_STRIDED_EX(cublasGemmStridedBatchedEx_64, std::int64_t)
MP_GEMM_BATCHED_EX(cublasGemmBatchedEx, int)
MP_GEMM_BATCHED_EX(cublasGemmBatchedEx_64, std::int64_t)
MP_SGEMM_EX(cublasSgemmEx, int)
MP_SGEMM_EX(cublasSgemmEx_64, std::int64_t)
MP_GEMM(cublasSgemm_v2, int, abi::kR32F, abi::kCompute32F)
MP_GEMM(cublasSgemm_v2_64, std::int64_t, abi::kR32F, abi::kCompute32F)
MP_GEMM(cublasHgemm, int, abi::kR16F, abi::kCompute16F)
MP_GEMM(cublasHgemm_64, std::int64_t, abi::kR16F, abi::kCompute16F)
MP_GEMM_STRIDED(cublasSgemmStridedBatched, int, abi::kR32F, abi::kCompute32F)
MP_GEMM_STRIDED(cublasSgemmStridedBatched_64, std::int64_t, abi::kR32F, abi::kCompute32F)
MP_GEMM_STRIDED(cublasHgemmStridedBatched, int, abi::kR16F, abi::kCompute16F)
MP_GEMM_STRIDED(cublasHgemmStridedBatched_64, std::int64_t, abi::kR16F, abi::kCompute16F)
MP_GEMM_BATCHED(cublasSgemmBatched, int, abi::kR32F, abi::kCompute32F)
MP_GEMM_BATCHED(cublasSgemmBatched_64, std::int64_t, abi::kR32F, abi::kCompute32F)
MP_GEMM_BATCHED(cublasHgemmBatched, int, abi::kR16F, abi::kCompute16F)
MP_GEMM_BATCHED(cublasHgemmBatched_64, std::int64_t, abi::kR16F, abi::kCompute16F)
MP_GEMM_GROUPED(cublasSgemmGroupedBatched, int)
MP_GEMM_GROUPED_EX(cublasGemmGroupedBatchedEx, int)
MP_GEMV(cublasSgemv_v2, int, abi::kR32F)
MP_GEMV_BATCHED(cublasSgemvBatched, int, abi::kR32F, abi::kR32F)
MP_GEMV_STRIDED(cublasSgemvStridedBatched, int, abi::kR32F, abi::kR32F)
MP_GEMV_BATCHED(cublasHSHgemvBatched, int, abi::kR16F, abi::kR16F)
MP_GEMV_STRIDED(cublasHSHgemvStridedBatched, int, abi::kR16F, abi::kR16F)
MP_GEMV_BATCHED(cublasHSSgemvBatched, int, abi::kR16F, abi::kR32F)
MP_GEMV_STRIDED(cublasHSSgemvStridedBatched, int, abi::kR16F, abi::kR32F)
MP_GEMV_BATCHED(cublasTSTgemvBatched, int, abi::kR16BF, abi::kR16BF)
MP_GEMV_STRIDED(cublasTSTgemvStridedBatched, int, abi::kR16BF, abi::kR16BF)
MP_GEMV_BATCHED(cublasTSSgemvBatched, int, abi::kR16BF, abi::kR32F)
MP_GEMV_STRIDED(cublasTSSgemvStridedBatched, int, abi::kR16BF, abi::kR32F)
MP_GEMM_GROUPED(cublasSgemmGroupedBatched_64, std::int64_t)
MP_GEMM_GROUPED_EX(cublasGemmGroupedBatchedEx_64, std::int64_t)
MP_GEMV(cublasSgemv_v2_64, std::int64_t, abi::kR32F)
MP_GEMV_BATCHED(cublasSgemvBatched_64, std::int64_t, abi::kR32F, abi::kR32F)
MP_GEMV_STRIDED(cublasSgemvStridedBatched_64, std::int64_t, abi::kR32F, abi::kR32F)
MP_GEMV_BATCHED(cublasHSHgemvBatched_64, std::int64_t, abi::kR16F, abi::kR16F)
MP_GEMV_STRIDED(cublasHSHgemvStridedBatched_64, std::int64_t, abi::kR16F, abi::kR16F)
MP_GEMV_BATCHED(cublasHSSgemvBatched_64, std::int64_t, abi::kR16F, abi::kR32F)
MP_GEMV_STRIDED(cublasHSSgemvStridedBatched_64, std::int64_t, abi::kR16F, abi::kR32F)
MP_GEMV_BATCHED(cublasTSTgemvBatched_64, std::int64_t, abi::kR16BF, abi::kR16BF)
MP_GEMV_STRIDED(cublasTSTgemvStridedBatched_64, std::int64_t, abi::kR16BF, abi::kR16BF)
MP_GEMV_BATCHED(cublasTSSgemvBatched_64, std::int64_t, abi::kR16BF, abi::kR32F)
MP_GEMV_STRIDED(cublasTSSgemvStridedBatched_64, std::int64_t, abi::kR16BF, abi::kR32F)
