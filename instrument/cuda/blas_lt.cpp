// cuBLASLt. The descriptors of a matmul are read with the library's own getters, which ask no device.

#include "instrument/cuda/dtypes.hpp"
#include "instrument/cuda/hooks.hpp"

namespace mp::raw {
namespace {

constexpr const char* kLibrary = "libcublasLt.so";

using Getter = int (*)(const void* descriptor, int attribute, void* buffer, std::size_t size,
                       std::size_t* written);

// An attribute of a descriptor. `otherwise` where the library does not know it.
template <class Value>
Value attribute(Real<Getter>& getter, const void* descriptor, int which, Value otherwise) {
    Value value = otherwise;
    std::size_t written = 0;
    const Getter get = getter.get(nullptr);
    const bool known = get && descriptor && get(descriptor, which, &value, sizeof value, &written) == 0;
    return known && written == sizeof value ? value : otherwise;
}

Real<Getter> g_matmul{"cublasLtMatmulDescGetAttribute", kLibrary};
Real<Getter> g_layout{"cublasLtMatrixLayoutGetAttribute", kLibrary};
Real<Getter> g_algorithm{"cublasLtMatmulAlgoConfigGetAttribute", kLibrary};

struct Matmul {
    const void* descriptor;
    const void* alpha;
    const void *a, *layout_a, *b, *layout_b;
    const void* beta;
    const void *c, *layout_c;
    void* d;
    const void* layout_d;
    const void* algorithm;
    abi::Stream stream;
};

// Orders other than these two are tiled; such a matrix is not measured.
Matrix matrix_of(const void* data, const void* layout) {
    Matrix m;
    m.dtype = dtype_of_cuda(attribute(g_layout, layout, abi::kLtLayoutType, std::uint32_t{~0u}));
    const int order = attribute(g_layout, layout, abi::kLtLayoutOrder, std::int32_t{abi::kLtOrderColumn});
    m.data = order == abi::kLtOrderColumn || order == abi::kLtOrderRow ? data : nullptr;
    m.row_major = order == abi::kLtOrderRow;
    m.rows = static_cast<std::int64_t>(attribute(g_layout, layout, abi::kLtLayoutRows, std::uint64_t{0}));
    m.columns =
        static_cast<std::int64_t>(attribute(g_layout, layout, abi::kLtLayoutColumns, std::uint64_t{0}));
    m.leading = attribute(g_layout, layout, abi::kLtLayoutLeading, std::int64_t{0});
    m.batches = attribute(g_layout, layout, abi::kLtLayoutBatch, std::int32_t{1});
    m.stride = attribute(g_layout, layout, abi::kLtLayoutStride, std::int64_t{0});
    return m;
}

Matrix bias_of(const Matmul& call, const Matrix& result) {
    Matrix m;
    m.data = attribute<const void*>(g_matmul, call.descriptor, abi::kLtBiasPointer, nullptr);
    const int type = attribute(g_matmul, call.descriptor, abi::kLtBiasType, std::int32_t{-1});
    m.dtype = type < 0 ? result.dtype : dtype_of_cuda(type);
    m.rows = m.leading = result.rows;
    m.columns = 1;
    return m;
}

// How a split K is added. Without an algorithm the library chooses, and does not tell.
void read_split(const void* algorithm, Product& product) {
    if (!algorithm) return;
    product.parts = attribute(g_algorithm, algorithm, abi::kLtSplitK, std::int32_t{1});
    product.scheme = attribute(g_algorithm, algorithm, abi::kLtReductionScheme, std::uint32_t{0});
}

// Factors in device memory of A, B, C or D, as FP8 has them.
bool has_scales(const void* descriptor) {
    for (int which = abi::kLtScaleOfA; which <= abi::kLtScaleOfD; ++which)
        if (attribute<const void*>(g_matmul, descriptor, which, nullptr)) return true;
    return false;
}

bool describe(const Matmul& call, Product& product) {
    const int compute = attribute(g_matmul, call.descriptor, abi::kLtComputeType, std::int32_t{-1});
    if (compute < 0) return false;
    const auto get = [&call](int which, auto otherwise) {
        return attribute(g_matmul, call.descriptor, which, otherwise);
    };
    product.op = "cublasLt::matmul";
    product.stream = call.stream;
    product.result = matrix_of(call.d, call.layout_d);
    if (product.result.rows <= 0 || product.result.columns <= 0) return false;
    const Matrix a = matrix_of(call.a, call.layout_a);
    product.read(a);
    product.read(matrix_of(call.b, call.layout_b));
    product.transposed_a = get(abi::kLtTransA, std::int32_t{abi::kTransposeNone}) != abi::kTransposeNone;
    product.transposed_b = get(abi::kLtTransB, std::int32_t{abi::kTransposeNone}) != abi::kTransposeNone;
    product.depth = static_cast<std::uint64_t>(product.transposed_a ? a.rows : a.columns);
    const bool on_host = get(abi::kLtPointerMode, std::int32_t{0}) == abi::kPointerModeHost;
    const bool known = product.set_factors(on_host ? factor_of(call.alpha, compute) : std::nullopt,
                                           on_host ? factor_of(call.beta, compute) : std::nullopt);
    if (product.beta != 0) product.c = product.read(matrix_of(call.c, call.layout_c));
    const auto epilogue = product.epilogue = get(abi::kLtEpilogue, abi::kLtEpilogueNone);
    if (epilogue & abi::kLtEpilogueBias) {
        const Matrix bias = bias_of(call, product.result);
        if (bias.data) product.bias = product.read(bias);
    }
    const bool biased = epilogue == abi::kLtEpilogueBias && product.bias >= 0 && product.result.batches == 1;
    product.has_scales = has_scales(call.descriptor);
    product.is_plain = known && (epilogue == abi::kLtEpilogueNone || biased) && !product.has_scales;
    product.compute = compute;
    product.half_sums = is_half_compute(compute);
    product.tf32 = a.dtype == DType::fp32 && rounds_inputs(compute);
    const bool narrow = is_low_precision(product.result.dtype);
    read_split(call.algorithm, product);
    product.split_sums = narrow && product.splits_in_result();
    product.loose_sums = narrow && !call.algorithm && !product.half_sums;
    return true;
}

}  // namespace
}  // namespace mp::raw

MP_HOOK int cublasLtMatmul(void* handle, void* descriptor, const void* alpha, const void* a, void* layout_a,
                           const void* b, void* layout_b, const void* beta, const void* c, void* layout_c,
                           void* d, void* layout_d, const void* algorithm, void* workspace, std::size_t bytes,
                           mp::raw::abi::Stream stream) {
    using namespace mp::raw;
    static Real<decltype(&cublasLtMatmul)> real{"cublasLtMatmul", kLibrary};
    const auto next = real.get(__builtin_return_address(0));
    if (!next) return abi::kNotInitialized;
    const Matmul call{descriptor, alpha,    a, layout_a, b,         layout_b, beta,
                      c,          layout_c, d, layout_d, algorithm, stream};
    return observe<Product>(
        Source::cublas,
        [&] {
            return next(handle, descriptor, alpha, a, layout_a, b, layout_b, beta, c, layout_c, d, layout_d,
                        algorithm, workspace, bytes, stream);
        },
        [&call](Product& product) { return describe(call, product); },
        [](Run& run, const Product& product) { return run.before(ranges().place, product); });
}
