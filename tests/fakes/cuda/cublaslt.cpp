// A fake libcublasLt.so.13: descriptors as the real one has them, and matrix products on the host that round where the
// real ones round: the accumulator of COMPUTE_16F, parts of split-K, inputs of TF32.
#include <cublasLt.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <vector>

#include "tests/fakes/cuda/calls.hpp"
#include "tests/fakes/cuda/device.hpp"
#include "tests/fakes/cuda/faults.hpp"
#include "tests/fakes/cuda/number.hpp"

using namespace mp::fake;

namespace {

// A descriptor: attributes as bytes.
struct Attributes {
    std::map<int, std::vector<char>> all;

    template <class V>
    void set(int which, V value) {
        const char* const bytes = reinterpret_cast<const char*>(&value);
        all[which].assign(bytes, bytes + sizeof value);
    }
    template <class V>
    V get(int which) const {
        V value{};
        const auto found = all.find(which);
        if (found != all.end())
            std::memcpy(&value, found->second.data(), std::min(sizeof value, found->second.size()));
        return value;
    }
    cublasStatus_t write(int which, const void* from, std::size_t bytes) {
        if (!from || bytes == 0) return CUBLAS_STATUS_INVALID_VALUE;
        const char* const start = static_cast<const char*>(from);
        all[which].assign(start, start + bytes);
        return CUBLAS_STATUS_SUCCESS;
    }
    cublasStatus_t read(int which, void* to, std::size_t bytes, std::size_t* written) const {
        const auto found = all.find(which);
        const std::size_t size = found != all.end() ? found->second.size() : bytes;
        if (written) *written = size;
        if (!to) return written ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
        if (bytes != size) return CUBLAS_STATUS_INVALID_VALUE;  // as the real one
        std::memset(to, 0, size);
        if (found != all.end()) std::memcpy(to, found->second.data(), size);
        return CUBLAS_STATUS_SUCCESS;
    }
};

Attributes& of(const void* descriptor) { return *static_cast<Attributes*>(const_cast<void*>(descriptor)); }

std::uint32_t& config(cublasLtMatmulAlgo_t& algo, int which) {
    return reinterpret_cast<std::uint32_t*>(algo.data)[which];
}

struct Matrix {
    cudaDataType_t type;
    std::uint64_t rows, columns;
    std::int64_t pitch, offset;
    int batch, order;

    explicit Matrix(cublasLtMatrixLayout_t layout) {
        const Attributes& a = of(layout);
        type = a.get<cudaDataType_t>(CUBLASLT_MATRIX_LAYOUT_TYPE);
        rows = a.get<std::uint64_t>(CUBLASLT_MATRIX_LAYOUT_ROWS);
        columns = a.get<std::uint64_t>(CUBLASLT_MATRIX_LAYOUT_COLS);
        pitch = a.get<std::int64_t>(CUBLASLT_MATRIX_LAYOUT_LD);
        offset = a.get<std::int64_t>(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
        batch = a.get<int>(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
        order = a.get<int>(CUBLASLT_MATRIX_LAYOUT_ORDER);
    }
    std::size_t at(int b, std::size_t row, std::size_t column) const {
        return static_cast<std::size_t>(b * offset + static_cast<std::int64_t>(column) * pitch) + row;
    }
};

float tf32(float x) {
    std::uint32_t bits;
    std::memcpy(&bits, &x, 4);
    if (std::isfinite(x)) bits = (bits + 0x0FFF + ((bits >> 13) & 1)) & ~0x1FFFu;
    std::memcpy(&x, &bits, 4);
    return x;
}

// A part of a result that is lost.
struct Tile {
    int call = 0, row = 0, rows = 0, column = 0, columns = 0;
};

// What a call does, copied when it is made.
struct Product {
    cublasComputeType_t compute;
    cudaDataType_t scale_type;
    bool ta, tb, scalars_on_device;
    std::uint32_t epilogue;
    const void* bias;
    cudaDataType_t bias_type;
    void* aux;
    std::int64_t aux_pitch;
    std::uint32_t parts, scheme;
    float alpha = 0, beta = 0;
    const void *alpha_at, *beta_at, *a, *b, *c;
    void* d;
    Matrix la, lb, lc, ld;

    bool known() const {
        for (const Matrix* m : {&la, &lb, &lc, &ld})
            if (m->order != CUBLASLT_ORDER_COL || width(m->type) == 0 || m->type == CUDA_R_64F) return false;
        const std::uint32_t handled = CUBLASLT_EPILOGUE_DEFAULT | CUBLASLT_EPILOGUE_RELU |
                                      CUBLASLT_EPILOGUE_BIAS | CUBLASLT_EPILOGUE_GELU | 128 /* AUX */;
        return (epilogue & ~handled) == 0;
    }
    bool fits() const {
        return (ta ? la.columns : la.rows) == ld.rows && (tb ? lb.rows : lb.columns) == ld.columns &&
               (ta ? la.rows : la.columns) == (tb ? lb.columns : lb.rows);
    }
    float input(float x) const {
        if (compute == CUBLAS_COMPUTE_32F_FAST_TF32) return tf32(x);
        if (compute == CUBLAS_COMPUTE_32F_FAST_16BF) return rounded(x, CUDA_R_16BF);
        if (compute == CUBLAS_COMPUTE_32F_FAST_16F) return rounded(x, CUDA_R_16F);
        return x;
    }

    // column += a[:, from..to) * b[from..to), with the accumulator of `compute`.
    void accumulate(float* column, const std::vector<float>& wide, const float* right, std::size_t m,
                    std::size_t from, std::size_t to) const {
        const bool half = compute == CUBLAS_COMPUTE_16F;
        std::vector<float> sums(half ? m : 0);
        for (std::size_t k = from; k < to; ++k) {
            float* const into = half ? sums.data() : column;
            const float factor = right[k];
            for (std::size_t i = 0; i < m; ++i) into[i] += wide[k * m + i] * factor;
            // Tensor cores round the accumulator after some products.
            if (half && ((k - from) % 8 == 7 || k + 1 == to))
                for (std::size_t i = 0; i < m; ++i) {
                    column[i] = rounded(column[i] + sums[i], CUDA_R_16F);
                    sums[i] = 0;
                }
        }
    }

    void finish(const float* column, std::size_t j, int batch, std::size_t m) const {
        for (std::size_t i = 0; i < m; ++i) {
            float y = alpha * column[i];
            if (scale_type == CUDA_R_16F) y = rounded(y, CUDA_R_16F);
            if (beta != 0) y += beta * load(c, lc.at(batch, i, j), lc.type);
            if (epilogue & CUBLASLT_EPILOGUE_BIAS) y += load(bias, i, bias_type);
            if (epilogue & 128) store(aux, static_cast<std::size_t>(aux_pitch) * j + i, y, ld.type);
            if (epilogue & CUBLASLT_EPILOGUE_RELU) y = y > 0 ? y : 0;
            if (epilogue & CUBLASLT_EPILOGUE_GELU)
                y = 0.5f * y * (1.0f + std::tanh(0.79788456f * (y + 0.044715f * y * y * y)));
            store(d, ld.at(batch, i, j), y, ld.type);
        }
    }

    void lose(const Tile& tile) const {
        for (int i = tile.row; i < tile.row + tile.rows; ++i)
            for (int j = tile.column; j < tile.column + tile.columns; ++j)
                store(d, ld.at(0, static_cast<std::size_t>(i), static_cast<std::size_t>(j)), 0, ld.type);
    }

    void run() {
        if (scalars_on_device) read_scalars();
        const std::size_t m = ld.rows, n = ld.columns, k = ta ? la.rows : la.columns;
        std::vector<float> left(m * k), right(k), column(m), part(m);
        for (int batch = 0; batch < std::max(1, ld.batch); ++batch) {
            for (std::size_t l = 0; l < k; ++l)
                for (std::size_t i = 0; i < m; ++i)
                    left[l * m + i] = input(load(a, ta ? la.at(batch, l, i) : la.at(batch, i, l), la.type));
            for (std::size_t j = 0; j < n; ++j) {
                for (std::size_t l = 0; l < k; ++l)
                    right[l] = input(load(b, tb ? lb.at(batch, j, l) : lb.at(batch, l, j), lb.type));
                std::fill(column.begin(), column.end(), 0.0f);
                const std::size_t length = (k + parts - 1) / parts;
                for (std::size_t from = 0; from < k; from += length) {
                    std::fill(part.begin(), part.end(), 0.0f);
                    accumulate(part.data(), left, right.data(), m, from, std::min(k, from + length));
                    const bool narrow = parts > 1 && scheme == CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
                    for (std::size_t i = 0; i < m; ++i)
                        column[i] = narrow ? rounded(column[i] + rounded(part[i], ld.type), ld.type)
                                           : column[i] + part[i];
                }
                finish(column.data(), j, batch, m);
            }
        }
    }

    void read_scalars() {
        alpha = load(alpha_at, 0, scale_type);
        beta = beta_at ? load(beta_at, 0, scale_type) : 0;
    }
};

// A library that loses a tile of its n-th product, from 1: MP_FAKE_CUBLAS_LOSE=n:row:rows:column:columns.
Tile tile_to_lose() {
    static const char* const text = std::getenv("MP_FAKE_CUBLAS_LOSE");
    static std::atomic<int> calls{0};
    Tile tile;
    if (!text || std::sscanf(text, "%d:%d:%d:%d:%d", &tile.call, &tile.row, &tile.rows, &tile.column,
                             &tile.columns) != 5)
        return {};
    return ++calls == tile.call ? tile : Tile();
}

// A library that splits sums of its own accord and tells nobody: MP_FAKE_CUBLAS_SPLIT=parts.
void choose_split(Product& product) {
    static const char* const parts = std::getenv("MP_FAKE_CUBLAS_SPLIT");
    if (!parts || product.parts > 1) return;
    product.parts = static_cast<std::uint32_t>(std::atoi(parts));
    product.scheme = CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
}

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
    if (const int code = fault("cublasLtCreate")) return static_cast<cublasStatus_t>(code);
    *handle = reinterpret_cast<cublasLtHandle_t>(new int);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
    delete reinterpret_cast<int*>(handle);
    return CUBLAS_STATUS_SUCCESS;
}
std::size_t cublasLtGetVersion() { return CUBLAS_VERSION; }
std::size_t cublasLtGetCudartVersion() { return CUDART_VERSION; }
const char* cublasLtGetStatusString(cublasStatus_t code) {
    return code == CUBLAS_STATUS_SUCCESS            ? "CUBLAS_STATUS_SUCCESS"
           : code == CUBLAS_STATUS_NOT_SUPPORTED    ? "CUBLAS_STATUS_NOT_SUPPORTED"
           : code == CUBLAS_STATUS_INVALID_VALUE    ? "CUBLAS_STATUS_INVALID_VALUE"
           : code == CUBLAS_STATUS_EXECUTION_FAILED ? "CUBLAS_STATUS_EXECUTION_FAILED"
                                                    : "an error of the fake cuBLASLt";
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* into, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
    auto* const made = new Attributes;
    made->set(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, compute);
    made->set(CUBLASLT_MATMUL_DESC_SCALE_TYPE, scale);
    made->set(CUBLASLT_MATMUL_DESC_POINTER_MODE, CUBLASLT_POINTER_MODE_HOST);
    made->set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_N);
    made->set(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N);
    made->set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT);
    for (const auto pointer : {CUBLASLT_MATMUL_DESC_BIAS_POINTER, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER,
                               CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, CUBLASLT_MATMUL_DESC_C_SCALE_POINTER,
                               CUBLASLT_MATMUL_DESC_D_SCALE_POINTER})
        made->set<const void*>(pointer, nullptr);
    made->set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, std::int32_t{-1});  // that of D
    *into = reinterpret_cast<cublasLtMatmulDesc_t>(made);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d) {
    delete &of(d);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t which,
                                              const void* from, std::size_t bytes) {
    return of(d).write(which, from, bytes);
}
cublasStatus_t cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t which,
                                              void* to, std::size_t bytes, std::size_t* written) {
    if (const int code = fault("cublasLtMatmulDescGetAttribute")) return static_cast<cublasStatus_t>(code);
    return of(d).read(which, to, bytes, written);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* into, cudaDataType type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t pitch) {
    auto* const made = new Attributes;
    made->set(CUBLASLT_MATRIX_LAYOUT_TYPE, type);
    made->set(CUBLASLT_MATRIX_LAYOUT_ORDER, CUBLASLT_ORDER_COL);
    made->set(CUBLASLT_MATRIX_LAYOUT_ROWS, rows);
    made->set(CUBLASLT_MATRIX_LAYOUT_COLS, columns);
    made->set(CUBLASLT_MATRIX_LAYOUT_LD, pitch);
    made->set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 1);
    made->set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, std::int64_t{0});
    *into = reinterpret_cast<cublasLtMatrixLayout_t>(made);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l) {
    delete &of(l);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t l,
                                                cublasLtMatrixLayoutAttribute_t which, const void* from,
                                                std::size_t bytes) {
    return of(l).write(which, from, bytes);
}
cublasStatus_t cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t l,
                                                cublasLtMatrixLayoutAttribute_t which, void* to,
                                                std::size_t bytes, std::size_t* written) {
    if (const int code = fault("cublasLtMatrixLayoutGetAttribute")) return static_cast<cublasStatus_t>(code);
    return of(l).read(which, to, bytes, written);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* into) {
    *into = reinterpret_cast<cublasLtMatmulPreference_t>(new Attributes);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p) {
    delete &of(p);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p,
                                                    cublasLtMatmulPreferenceAttributes_t which,
                                                    const void* from, std::size_t bytes) {
    return of(p).write(which, from, bytes);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[], int* found) {
    if (const int code = fault("cublasLtMatmulAlgoGetHeuristic")) return static_cast<cublasStatus_t>(code);
    *found = wanted > 0 ? 1 : 0;
    if (wanted > 0) {
        results[0] = {};
        config(results[0].algo, CUBLASLT_ALGO_CONFIG_ID) = 66;
        config(results[0].algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM) = 1;
        results[0].state = CUBLAS_STATUS_SUCCESS;
    }
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                       const cublasLtMatmulAlgo_t* algo,
                                       cublasLtMatmulHeuristicResult_t* result) {
    *result = {};
    result->algo = *algo;
    result->state = CUBLAS_STATUS_SUCCESS;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t* algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t which,
                                                    const void* from, std::size_t bytes) {
    if (which > CUBLASLT_ALGO_CONFIG_STAGES_ID || bytes != 4) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&config(*algo, which), from, 4);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t which, void* to,
                                                    std::size_t bytes, std::size_t* written) {
    if (const int code = fault("cublasLtMatmulAlgoConfigGetAttribute"))
        return static_cast<cublasStatus_t>(code);
    if (which > CUBLASLT_ALGO_CONFIG_STAGES_ID || bytes < 4) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(to, &config(const_cast<cublasLtMatmulAlgo_t&>(*algo), which), 4);
    if (written) *written = 4;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t call, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t la, const void* b,
                              cublasLtMatrixLayout_t lb, const void* beta, const void* c,
                              cublasLtMatrixLayout_t lc, void* d, cublasLtMatrixLayout_t ld,
                              const cublasLtMatmulAlgo_t* algo, void* workspace, std::size_t bytes,
                              cudaStream_t stream) {
    MP_REMEMBER(cublasStatus_t, "cublasLtMatmul", handle, call, alpha, a, la, b, lb, beta, c, lc, d, ld, algo,
                workspace, bytes, stream);
    if (const int code = fault("cublasLtMatmul")) return static_cast<cublasStatus_t>(code);
    if (!call || !la || !lb || !ld || !a || !b || !d) return CUBLAS_STATUS_INVALID_VALUE;
    const Attributes& k = of(call);
    cublasLtMatmulAlgo_t chosen = algo ? *algo : cublasLtMatmulAlgo_t{};
    auto product = std::make_shared<Product>(
        Product{k.get<cublasComputeType_t>(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE),
                k.get<cudaDataType_t>(CUBLASLT_MATMUL_DESC_SCALE_TYPE),
                k.get<cublasOperation_t>(CUBLASLT_MATMUL_DESC_TRANSA) != CUBLAS_OP_N,
                k.get<cublasOperation_t>(CUBLASLT_MATMUL_DESC_TRANSB) != CUBLAS_OP_N,
                k.get<int>(CUBLASLT_MATMUL_DESC_POINTER_MODE) == CUBLASLT_POINTER_MODE_DEVICE,
                k.get<std::uint32_t>(CUBLASLT_MATMUL_DESC_EPILOGUE),
                k.get<const void*>(CUBLASLT_MATMUL_DESC_BIAS_POINTER),
                CUDA_R_32F,
                k.get<void*>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER),
                k.get<std::int64_t>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD),
                std::max(1u, config(chosen, CUBLASLT_ALGO_CONFIG_SPLITK_NUM)),
                config(chosen, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME),
                0,
                0,
                alpha,
                beta,
                a,
                b,
                c,
                d,
                Matrix(la),
                Matrix(lb),
                Matrix(lc ? lc : ld),
                Matrix(ld)});
    product->bias_type = product->ld.type;
    choose_split(*product);
    if (!product->fits()) return CUBLAS_STATUS_INVALID_VALUE;
    if (!product->known()) return CUBLAS_STATUS_NOT_SUPPORTED;
    if (!product->scalars_on_device) product->read_scalars();
    const Inside calls_of_ours;
    const auto run = [product, tile = tile_to_lose()] {
        product->run();
        product->lose(tile);
    };
    return enqueue(reinterpret_cast<CUstream>(stream), run) == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS
                                                                            : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // extern "C"
