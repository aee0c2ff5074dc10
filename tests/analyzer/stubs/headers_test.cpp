// The stub headers for CUDA and PyTorch: they parse, alone and together and in both passes, and overload
// resolution has the same results as with the vendors' headers. A probe asserts in C++, so a wrong header
// is a parse error here.

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <gmock/gmock.h>

#include "analyzer/clang/extract.hpp"
#include "tests/analyzer/clang/scratch.hpp"
#include "tests/fakes/source_dir.hpp"

namespace mp::lint {
namespace {

using testing::IsEmpty;

const std::string kStubs = std::string(mp_source_dir()) + "/analyzer/stubs/";

class Stubs : public testing::Test {
protected:
    // The messages of a unit read with our headers only, whatever is installed; none when it is clean. Both
    // passes are made: the probe tests __CUDA_ARCH__.
    std::vector<std::string> errors(const std::string& name, const std::string& text,
                                    const std::vector<std::string>& flags = {}) {
        dir.write(name, "#ifdef __CUDA_ARCH__\n#endif\n" + text);
        ExtractOptions options;
        options.cuda = CudaHeaders::stubs;
        options.torch = TorchHeaders::stubs;
        std::vector<std::string> words = {"clang++", "-std=c++20"};
        words.insert(words.end(), flags.begin(), flags.end());
        words.insert(words.end(), {"-c", name});
        const Unit unit = extract(
            make_invocation({.file = name, .directory = dir.path(), .arguments = words}, options), options);
        std::vector<std::string> messages;
        for (const auto message : unit.coverage.messages) messages.emplace_back(message.str());
        for (const auto header : unit.coverage.missing_headers) {
            messages.push_back("missing " + std::string(header.str()));
        }
        if (unit.state != UnitState::ok && messages.empty()) messages.push_back("not parsed");
        for (const auto& file : unit.dependencies) {
            const std::string path(file.path.str());
            if (path.starts_with(kStubs) || path.find("/clang/") != std::string::npos) continue;
            for (const char* vendor : {"/cuda", "/ATen/", "/c10/", "/torch/"}) {
                if (path.find(vendor) != std::string::npos)
                    messages.push_back("not one of our headers: " + path);
            }
        }
        return messages;
    }

    Scratch dir;
};

// Every header a program may include, as include directives.
std::string every_header() {
    std::set<std::string> names;
    for (const char* part : {"cuda", "other", "torch"}) {
        for (const auto& entry : std::filesystem::recursive_directory_iterator(kStubs + part)) {
            const auto name = std::filesystem::relative(entry.path(), kStubs + part).string();
            const auto file = entry.path().filename().string();
            if (entry.is_regular_file() && entry.path().extension() != ".inc" && !file.starts_with("mp_")) {
                names.insert(name);
            }
        }
    }
    std::string text;
    for (const auto& name : names) text += "#include <" + name + ">\n";
    return text;
}

// The ops a policy file names that are plain identifiers of at::.
std::set<std::string> ops_of(const std::string& policy) {
    std::ifstream in(std::string(mp_source_dir()) + "/kernels/numerics/policies/" + policy);
    std::set<std::string> ops;
    std::string line;
    while (std::getline(in, line)) {
        line = line.substr(0, line.find('#'));
        if (line.find('[') != std::string::npos || line.find('=') != std::string::npos) continue;
        std::istringstream words(line);
        for (std::string word; words >> word;) {
            word = word.substr(0, word.find('.'));
            const bool plain = !word.empty() && std::islower(static_cast<unsigned char>(word[0])) &&
                               std::all_of(word.begin(), word.end(), [](unsigned char c) {
                                   return std::islower(c) || std::isdigit(c) || c == '_';
                               });
            if (plain) ops.insert(word);
        }
    }
    return ops;
}

TEST_F(Stubs, EveryHeaderParsesBesideAllOthersInCuda) {
    EXPECT_THAT(errors("all.cu", every_header()), IsEmpty());
}

TEST_F(Stubs, EveryHeaderParsesBesideAllOthersInCpp) {
    EXPECT_THAT(errors("all.cpp", every_header()), IsEmpty());
}

constexpr const char* kHalfProbe = R"(
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <type_traits>
template <class A, class B> concept Adds = requires(A a, B b) { a + b; };
template <class T> void of_a_half_class() {
    static_assert(std::is_same_v<decltype(T() + T()), T>);
    static_assert(!Adds<T, float> && !Adds<float, T> && !Adds<T, int> && !Adds<T, double>);
    static_assert(std::is_convertible_v<float, T> && std::is_convertible_v<double, T>);
    static_assert(std::is_convertible_v<int, T> && std::is_convertible_v<T, float>);
    static_assert(std::is_same_v<decltype(T() < T()), bool>);
    static_assert(sizeof(T) == 2);
}
template void of_a_half_class<__half>();
template void of_a_half_class<__nv_bfloat16>();
static_assert(!Adds<__half, __nv_bfloat16>);
static_assert(!std::is_convertible_v<__half2, __half> && sizeof(__half2) == 4);
static_assert(!std::is_convertible_v<float, __nv_fp8_e4m3> && std::is_constructible_v<__nv_fp8_e4m3, float>);
static_assert(std::is_same_v<decltype(__hadd2(__half2(), __half2())), __half2>);
static_assert(std::is_same_v<decltype(__float22half2_rn(float2())), __half2>);
static_assert(std::is_same_v<decltype(__bfloat1622float2(__nv_bfloat162())), float2>);
__global__ void reduce(__half* h, __half2* p, __nv_bfloat16* b, float* f) {
    __half v = __shfl_xor_sync(0xffffffffu, h[threadIdx.x], 1);
    static_assert(std::is_same_v<decltype(__shfl_down_sync(0u, p[0], 1)), __half2>);
    static_assert(std::is_same_v<decltype(__ldg(b)), __nv_bfloat16>);
    static_assert(std::is_same_v<decltype(atomicAdd(p, p[0])), __half2>);
    static_assert(std::is_same_v<decltype(atomicAdd(f, 1.0f)), float>);
    v = 1e-8f;
    h[0] = hexp(v) * v;
    __stcs(f, __ldcs(f) + rsqrtf(__half2float(v)));
    __syncthreads();
}
void launch(__half* h, __half2* p, __nv_bfloat16* b, float* f, cudaStream_t s) {
    reduce<<<dim3(1), 32, 0, s>>>(h, p, b, f);
    cudaMalloc(&f, size_t(min(3, 4)));
}
)";

TEST_F(Stubs, HalfClassesConvertAndCollideLikeTheVendors) {
    EXPECT_THAT(errors("half.cu", kHalfProbe), IsEmpty());
}

TEST_F(Stubs, HalfConversionsCanBeSwitchedOff) {
    constexpr const char* text = R"(
#include <cuda_fp16.h>
#include <type_traits>
static_assert(!std::is_convertible_v<float, __half> && !std::is_convertible_v<__half, float>);
template <class A> concept Adds = requires(A a) { a + a; };
static_assert(!Adds<__half> && Adds<__half2>);
)";
    EXPECT_THAT(errors("off.cu", text, {"-D__CUDA_NO_HALF_CONVERSIONS__", "-D__CUDA_NO_HALF_OPERATORS__"}),
                IsEmpty());
}

constexpr const char* kLibraries = R"(
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cub/cub.cuh>
#include <cublas_v2.h>
#include <cutlass/gemm/device/gemm.h>
#include <mma.h>
#include <nccl.h>
#include <thrust/reduce.h>
#include <thrust/device_ptr.h>
#include <type_traits>
namespace cg = cooperative_groups;
using namespace nvcuda;
__global__ void collectives(__half* h, float* f) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    static_assert(std::is_same_v<decltype(cg::reduce(warp, h[0], cg::plus<__half>())), __half>);
    static_assert(std::is_same_v<decltype(cg::reduce(warp, f[0], cg::greater<float>())), float>);
    __shared__ typename cub::BlockReduce<__half, 128>::TempStorage space;
    static_assert(std::is_same_v<decltype(cub::BlockReduce<__half, 128>(space).Sum(h[0])), __half>);
    wmma::fragment<wmma::accumulator, 16, 16, 16, __half> c;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> b;
    wmma::fill_fragment(c, __half(0.0f));
    wmma::load_matrix_sync(a, h, 16);
    wmma::mma_sync(c, a, b, c);
    wmma::store_matrix_sync(h, c, 16, wmma::mem_row_major);
    static_assert(std::is_same_v<decltype(c)::element_type, __half>);
}
using Gemm = cutlass::gemm::device::Gemm<cutlass::half_t, cutlass::layout::RowMajor, cutlass::half_t,
    cutlass::layout::ColumnMajor, cutlass::half_t, cutlass::layout::RowMajor, float>;
static_assert(std::is_same_v<Gemm::ElementAccumulator, float>);
static void host(cublasHandle_t blas, ncclComm_t comm, __half* h, cudaStream_t s) {
    float one = 1.0f;
    cublasGemmEx(blas, CUBLAS_OP_N, CUBLAS_OP_T, 1, 1, 1, &one, h, CUDA_R_16F, 1, h, CUDA_R_16F, 1, &one, h,
                 CUDA_R_16F, 1, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    cublasGemmEx(blas, CUBLAS_OP_N, CUBLAS_OP_T, 1, 1, 1, &one, h, CUDA_R_16F, 1, h, CUDA_R_16F, 1, &one, h,
                 CUDA_R_16F, 1, CUDA_R_16F, CUBLAS_GEMM_DEFAULT);
    ncclAllReduce(h, h, 8, ncclHalf, ncclSum, comm, s);
    thrust::device_ptr<__half> p(h);
    static_assert(std::is_same_v<decltype(thrust::reduce(p, p + 8, 0.0f, thrust::plus<float>())), float>);
    static_assert(std::is_same_v<decltype(thrust::reduce(p, p + 8)), __half>);
    thrust::for_each(p, p + 8, [] __device__(__half) {});
}
void use(cublasHandle_t blas, ncclComm_t comm, __half* h, cudaStream_t s) {
    host(blas, comm, h, s);
    collectives<<<1, 128>>>(h, nullptr);
}
)";

TEST_F(Stubs, LibrariesCarryTheirElementTypes) { EXPECT_THAT(errors("libraries.cu", kLibraries), IsEmpty()); }

TEST_F(Stubs, TorchHalvesPromoteLikePyTorch) {
    constexpr const char* text = R"(
#include <torch/torch.h>
template <class T> void of_a_half_type() {
    static_assert(std::is_same_v<decltype(T() + T()), T>);
    static_assert(std::is_same_v<decltype(T() + 1.0f), float> && std::is_same_v<decltype(2.0f * T()), float>);
    static_assert(std::is_same_v<decltype(T() / 2.0), double>);
    static_assert(std::is_same_v<decltype(T() - 1), T> && std::is_same_v<decltype(T() * int64_t(1)), T>);
    static_assert(std::is_same_v<decltype(T() < T()), bool> && std::is_same_v<decltype(T() >= 0), bool>);
}
template void of_a_half_type<c10::Half>();
template void of_a_half_type<c10::BFloat16>();
static_assert(std::is_same_v<at::Half, c10::Half>);
#include <ATen/AccumulateType.h>
#include <ATen/OpMathType.h>
static_assert(std::is_same_v<at::acc_type<c10::Half, true>, float> && std::is_same_v<at::acc_type<float, true>, float>);
static_assert(std::is_same_v<at::acc_type<float, false>, double>);
static_assert(std::is_same_v<at::opmath_type<c10::BFloat16>, float>);
)";
    EXPECT_THAT(errors("promotion.cpp", text), IsEmpty());
}

constexpr const char* kExtension = R"(
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/Dispatch_v2.h>
#include <ATen/cuda/Atomic.cuh>
template <typename T> __global__ void add(torch::PackedTensorAccessor32<T, 2, torch::RestrictPtrTraits> x, T* y) {
    if (x[0][threadIdx.x] < y[0]) y[0] = x[0][1] + y[0];
    gpuAtomicAdd(y, y[1]);
}
template <typename T> void run(at::Tensor x) {
    add<T><<<1, 32, 0, at::cuda::getCurrentCUDAStream()>>>(
        x.packed_accessor32<T, 2, torch::RestrictPtrTraits>(), x.data_ptr<T>());
}
static at::Tensor forward(at::Tensor x) {
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "add", [&] { run<scalar_t>(x); });
    AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.type(), "add", ([&] { run<scalar_t>(x); }));
    AT_DISPATCH_SWITCH(x.scalar_type(), "add", AT_DISPATCH_CASE(at::kHalf, [&] { run<scalar_t>(x); }));
    AT_DISPATCH_V2(x.scalar_type(), "add", AT_WRAP([&] { run<scalar_t>(x); }), AT_EXPAND(AT_FLOATING_TYPES), at::kHalf);
    TORCH_CHECK(x.is_cuda(), "on the device, not on ", x.device());
    return x.to(torch::kHalf).masked_fill(x > 0, -1e9).sum({0, 1}, true, at::kFloat);
}
TORCH_LIBRARY(ours, m) { m.def("forward(Tensor x) -> Tensor"); }
TORCH_LIBRARY_IMPL(ours, AutocastCUDA, m) {
    m.impl("forward", [](at::Tensor x) {
        c10::impl::ExcludeDispatchKeyGuard off(c10::DispatchKey::AutocastCUDA);
        return forward(at::autocast::cached_cast(at::kFloat, x));
    });
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &forward, "of the op", py::arg("x")); }
)";

TEST_F(Stubs, AnExtensionWithKernelsParses) {
    EXPECT_THAT(errors("extension.cu", kExtension), IsEmpty());
    EXPECT_THAT(errors("extension.cu", kExtension,
                       {"-D__CUDA_NO_HALF_OPERATORS__", "-D__CUDA_NO_HALF_CONVERSIONS__",
                        "-D__CUDA_NO_BFLOAT16_CONVERSIONS__", "-D__CUDA_NO_HALF2_OPERATORS__"}),
                IsEmpty());
}

constexpr const char* kTrainer = R"(
#include <torch/torch.h>
#include <ATen/autocast_mode.h>
struct NetImpl : torch::nn::Module {
    explicit NetImpl(int64_t d) {
        first = register_module("first", torch::nn::Linear(torch::nn::LinearOptions(d, d).bias(false)));
        norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({d}).eps(1e-5)));
        rest = register_module("rest", torch::nn::Sequential(torch::nn::ReLU(), torch::nn::Dropout(0.1)));
    }
    torch::Tensor forward(torch::Tensor x) { return rest->forward(norm(first->forward(x))); }
    torch::nn::Linear first{nullptr};
    torch::nn::LayerNorm norm{nullptr};
    torch::nn::Sequential rest{nullptr};
};
TORCH_MODULE(Net);
int main() {
    Net net(8);
    net->to(torch::kCUDA);
    net->to(torch::kHalf);
    torch::optim::AdamW step(net->parameters(), torch::optim::AdamWOptions(1e-3).betas({0.9, 0.95}).eps(1e-8));
    at::autocast::set_enabled(true);
    at::autocast::set_autocast_enabled(at::kCUDA, true);
    at::autocast::set_autocast_gpu_dtype(at::kBFloat16);
    auto out = net->forward(torch::rand({2, 8}, torch::dtype(torch::kFloat16).device(torch::kCUDA)));
    torch::nn::BCELoss criterion;
    auto loss = criterion(out.sigmoid(), torch::zeros_like(out)) + torch::mse_loss(out, out);
    at::autocast::clear_cache();
    at::autocast::set_enabled(false);
    loss.backward();
    torch::nn::utils::clip_grad_norm_(net->parameters(), 1.0);
    step.step();
    for (auto& group : step.param_groups()) static_cast<torch::optim::AdamWOptions&>(group.options()).lr(1e-4);
    torch::NoGradGuard guard;
    for (auto& p : net->parameters()) p.grad().mul_(0.5).div_(2).add_(p, 1e-8);
    namespace F = torch::nn::functional;
    out = F::softmax(out, F::SoftmaxFuncOptions(-1)) / (out.norm() + 1e-8);
    torch::save(net, "net.pt");
    return loss.item<float>() > 0;
}
)";

TEST_F(Stubs, AHostTrainerParses) { EXPECT_THAT(errors("trainer.cpp", kTrainer), IsEmpty()); }

TEST_F(Stubs, EveryListedOpOfAutocastIsDeclared) {
    // Fused cells and deprecated spellings that no C++ program calls by name.
    const std::set<std::string> internal = {"_thnn_fused_lstm_cell",
                                            "_thnn_fused_gru_cell",
                                            "mkldnn_rnn_layer",
                                            "_native_multi_head_attention",
                                            "_lu_with_info",
                                            "cudnn_convolution",
                                            "cudnn_convolution_transpose",
                                            "symeig",
                                            "_upsample_nearest_exact1d",
                                            "_upsample_nearest_exact2d",
                                            "_upsample_nearest_exact3d",
                                            "_upsample_bilinear2d_aa",
                                            "_upsample_bicubic2d_aa",
                                            "multilabel_margin_loss_forward",
                                            "grid_sampler_2d_cpu_fallback",
                                            "_grid_sampler_2d_cpu_fallback"};
    std::string text = "#include <ATen/ATen.h>\n";
    size_t listed = 0;
    for (const auto& op : ops_of("torch-cuda-2.12.txt")) {
        if (internal.contains(op)) continue;
        text += "namespace probe_" + std::to_string(listed++) + " { using at::" + op + "; }\n";
    }
    EXPECT_GT(listed, 80u);
    EXPECT_THAT(errors("names.cpp", text), IsEmpty());
}

}  // namespace
}  // namespace mp::lint
