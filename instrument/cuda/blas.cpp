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
    product.tf32 = product.inputs[0].dtype == DType::fp32 && product.count > 0 &&
                   rounds_inputs(g.compute, (math & abi::kMathMask) == abi::kMathTF32);
    return true;
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
