#include "tests/analyzer/clang/facts_fixture.hpp"

#include <gtest/gtest.h>

#include "analyzer/clang/visitor.hpp"
#include "analyzer/facts/names.hpp"
#include "clang/AST/ASTConsumer.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Frontend/FrontendAction.h"
#include "clang/Frontend/TextDiagnosticPrinter.h"
#include "llvm/Support/VirtualFileSystem.h"

namespace mp::lint {
namespace {

constexpr const char* kCuda = R"(
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
struct dim3 { unsigned x, y, z; dim3(unsigned = 1, unsigned = 1, unsigned = 1); };
struct uint3 { unsigned x, y, z; };
struct float2 { float x, y; };
struct int4 { int x, y, z, w; };
typedef struct CUstream_st* cudaStream_t;
extern "C" int cudaConfigureCall(dim3, dim3, unsigned long = 0, cudaStream_t = 0);
extern "C" unsigned __cudaPushCallConfiguration(dim3, dim3, unsigned long = 0, cudaStream_t = 0);
extern const uint3 threadIdx;
extern const uint3 blockIdx;
#define HD __host__ __device__
struct __half_raw { unsigned short x; };
struct __half {
    unsigned short bits;
    __half() = default;
    HD __half(const __half_raw&);
    HD __half(float);
    HD __half(double);
    HD __half(int);
    HD __half(unsigned);
    HD operator float() const;
    HD operator __half_raw() const;
    HD __half& operator=(float);
    HD __half& operator=(double);
};
struct __half2 { __half x, y; __half2() = default; HD __half2(const __half&, const __half&); };
typedef __half half;
struct __nv_bfloat16 {
    unsigned short bits;
    __nv_bfloat16() = default;
    HD __nv_bfloat16(float);
    HD operator float() const;
    HD __nv_bfloat16& operator=(float);
};
struct __nv_fp8_e4m3 { unsigned char bits; HD explicit __nv_fp8_e4m3(float); HD explicit operator float() const; };
HD __half operator+(const __half&, const __half&);
HD __half& operator+=(__half&, const __half&);
HD __half __float2half(float);
HD float __half2float(__half);
HD __half __int2half_rn(int);
HD __half2 __floats2half2_rn(float, float);
HD float2 __half22float2(__half2);
HD __half __hadd(__half, __half);
HD __nv_bfloat16 __float2bfloat16(float);
HD float __bfloat162float(__nv_bfloat16);
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };
HD unsigned char __nv_cvt_float_to_fp8(float, __nv_saturation_t, __nv_fp8_interpretation_t);
__device__ float atomicAdd(float*, float);
__device__ __half atomicAdd(__half*, __half);
__device__ void __stcs(__half*, __half);
float sqrtf(float);
enum cudaDataType_t { CUDA_R_32F = 0, CUDA_R_16F = 2 };
int cublasScale(int n, const void* alpha, cudaDataType_t type);
namespace nvcuda { namespace wmma {
struct accumulator {};
template <class Use, int M, int N, int K, class T, class Layout = void> struct fragment { T x[8]; };
} }
namespace cutlass {
struct half_t { unsigned short bits; half_t() = default; explicit half_t(float); operator float() const; };
}
)";

constexpr const char* kTorch = R"(
namespace c10 {
enum class ScalarType : signed char { Byte, Char, Short, Int, Long, Half, Float, Double, BFloat16 = 15 };
constexpr ScalarType kHalf = ScalarType::Half;
constexpr ScalarType kFloat = ScalarType::Float;
constexpr ScalarType kBFloat16 = ScalarType::BFloat16;
struct Half { unsigned short x; Half() = default; Half(float); operator float() const; };
struct BFloat16 { unsigned short x; BFloat16() = default; BFloat16(float); operator float() const; };
struct Scalar { Scalar(double); Scalar(int); };
struct TensorOptions {
    TensorOptions();
    TensorOptions(ScalarType);
    TensorOptions dtype(ScalarType) const;
    TensorOptions requires_grad(bool) const;
};
struct IntArrayRef { IntArrayRef(int); };
}
namespace at {
using namespace c10;
struct Tensor {
    Tensor();
    Tensor(const Tensor&);
    Tensor(Tensor&&);
    ~Tensor();
    Tensor& operator=(const Tensor&);
    Tensor& operator+=(const Tensor&);
    Tensor to(ScalarType) const;
    Tensor to(TensorOptions) const;
    Tensor type_as(const Tensor&) const;
    Tensor exp() const;
    Tensor& exp_() const;
    Tensor clone() const;
    Tensor view(int) const;
    ScalarType scalar_type() const;
    TensorOptions options() const;
    long size(int) const;
    void backward() const;
};
Tensor operator+(const Tensor&, const Tensor&);
Tensor operator*(const Tensor&, const Scalar&);
Tensor zeros(IntArrayRef, TensorOptions = {});
Tensor softmax(const Tensor&, int, ScalarType);
Tensor matmul(const Tensor&, const Tensor&);
namespace autocast {
void set_enabled(bool); bool is_enabled(); void set_autocast_gpu_dtype(ScalarType); void clear_cache();
}
}
namespace torch {
template <class F, F* f> struct Carried {};
struct Library { template <class N, class F> Library& impl(N, F&&) { return *this; } };
using namespace at;
namespace nn { struct Module { void to(ScalarType); }; }
}
)";

constexpr const char* kStandard = R"(
namespace std {
template <class T> struct remove_reference { typedef T type; };
template <class T> struct remove_reference<T&> { typedef T type; };
template <class T> typename remove_reference<T>::type&& move(T&&);
template <class T> struct unique_ptr { T* p; unique_ptr(T*); ~unique_ptr() { delete p; } T* operator->() const; };
template <class T, class... A> unique_ptr<T> make_unique(A&&...);
template <class I, class T> T accumulate(I, I, T init) { return init; }
struct thread { template <class F, class... A> explicit thread(F&&, A&&...) {} ~thread(); void join(); };
template <class I, class F> void for_each(I first, I, F f) { f(*first); }
}
)";

class Consumer : public clang::ASTConsumer {
public:
    explicit Consumer(Unit& out) : out_(out) {}
    void HandleTranslationUnit(clang::ASTContext& context) override { visit_unit(context, out_); }

private:
    Unit& out_;
};

class Action : public clang::ASTFrontendAction {
public:
    explicit Action(Unit& out) : out_(out) {}
    std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance&,
                                                          llvm::StringRef) override {
        return std::make_unique<Consumer>(out_);
    }

private:
    Unit& out_;
};

std::string shown(const Operand& o) {
    if (!o.constant.empty()) return std::string(o.constant.str());
    return std::string(o.name.empty() ? o.text.str() : o.name.str());
}

}  // namespace

Unit facts_of(const std::string& code, Snippet kind) {
    const bool cuda = kind == Snippet::cuda;
    const std::string name = cuda ? "snippet.cu" : "snippet.cpp";
    auto files = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
    const auto add = [&](const std::string& path, const std::string& text) {
        files->addFile(path, 0, llvm::MemoryBuffer::getMemBufferCopy(text));
    };
    add("/snippet/" + name, code);
    add("/system/half.h", kCuda);
    add("/system/torch.h", kTorch);
    add("/system/standard.h", kStandard);
    static_cast<void>(files->setCurrentWorkingDirectory("/snippet"));

    std::vector<const char*> arguments{"-triple",      "x86_64-unknown-linux-gnu",
                                       "-std=c++20",   "-fcxx-exceptions",
                                       "-fexceptions", "-internal-isystem",
                                       "/system",      "-include",
                                       "standard.h",   "-include",
                                       "torch.h"};
    if (cuda) arguments.insert(arguments.end(), {"-include", "half.h"});
    arguments.insert(arguments.end(), {"-x", cuda ? "cuda" : "c++"});
    arguments.push_back(name.c_str());
    std::string messages;
    llvm::raw_string_ostream stream(messages);
    clang::CompilerInstance compiler;
    auto options = llvm::makeIntrusiveRefCnt<clang::DiagnosticOptions>();
    compiler.createDiagnostics(new clang::TextDiagnosticPrinter(stream, options.get()));
    auto invocation = std::make_shared<clang::CompilerInvocation>();
    clang::CompilerInvocation::CreateFromArgs(*invocation, arguments, compiler.getDiagnostics());
    compiler.setInvocation(std::move(invocation));
    compiler.createFileManager(files);
    Unit unit;
    Action action(unit);
    EXPECT_TRUE(compiler.ExecuteAction(action)) << stream.str();
    EXPECT_FALSE(compiler.getDiagnostics().hasErrorOccurred()) << stream.str();
    return unit;
}

const Function& function_named(const Unit& unit, const std::string& display) {
    for (const Function& f : unit.functions)
        if (f.display.str() == display) return f;
    static const Function kNothing;
    ADD_FAILURE() << "no function " << display;
    for (const Function& f : unit.functions) ADD_FAILURE() << "  there is " << f.display.str();
    return kNothing;
}

std::vector<std::string> casts(const Function& f) {
    std::vector<std::string> out;
    for (const Cast& c : f.casts) {
        std::string line = std::string(name_of(c.from)) + "->" + std::string(name_of(c.to)) + " " +
                           std::string(word_for(c.form)) + " " + std::string(word_for(c.purpose)) + " " +
                           shown(c.source);
        if (!c.target.empty()) line += std::string(" -> ") + c.target;
        out.push_back(line);
    }
    return out;
}

std::vector<std::string> calls(const Function& f) {
    std::vector<std::string> out;
    for (const Call& c : f.calls) {
        std::string line = std::string(word_for(c.kind)) + " " + c.name + "(";
        for (std::size_t i = 0; i < c.args.size(); ++i) line += (i ? ", " : "") + shown(c.args[i]);
        out.push_back(line + ")");
    }
    return out;
}

}  // namespace mp::lint
