// CUTLASS 2.x device templates: which types a GEMM multiplies, accumulates and stores.
#pragma once

#include <cstdint>
#include <type_traits>

#include <cuda_bf16.h>

#define CUTLASS_HOST_DEVICE __forceinline__ __host__ __device__
#define CUTLASS_DEVICE __forceinline__ __device__
#define CUTLASS_PRAGMA_UNROLL _Pragma("unroll")
#define CUTLASS_PRAGMA_NO_UNROLL _Pragma("unroll 1")
#define CUTLASS_GLOBAL __global__ static

namespace cutlass {

enum class Status {
    kSuccess, kErrorMisalignedOperand, kErrorInvalidDataType, kErrorInvalidLayout, kErrorInvalidProblem,
    kErrorNotSupported, kErrorWorkspaceNull, kErrorInternal, kErrorArchMismatch, kErrorInsufficientDriver,
    kErrorMemoryAllocation, kInvalid
};
const char* cutlassGetStatusString(Status);
enum class FloatRoundStyle { round_indeterminate, round_toward_zero, round_to_nearest,
    round_to_nearest_satfinite };
enum class ComplexTransform { kNone, kConjugate };

// Halves of the library's own: built from float and int explicitly, read as float implicitly.
#define MP_CUTLASS_FLOAT(T, EXTRA) \
    struct T { \
        uint16_t storage; \
        T() = default; \
        EXTRA \
        CUTLASS_HOST_DEVICE explicit T(float); \
        CUTLASS_HOST_DEVICE explicit T(double); \
        CUTLASS_HOST_DEVICE explicit T(int); \
        CUTLASS_HOST_DEVICE explicit T(unsigned); \
        CUTLASS_HOST_DEVICE static T bitcast(uint16_t); \
        CUTLASS_HOST_DEVICE static T convert(const float&); \
        CUTLASS_HOST_DEVICE operator float() const; \
        CUTLASS_HOST_DEVICE explicit operator double() const; \
        CUTLASS_HOST_DEVICE explicit operator int() const; \
        CUTLASS_HOST_DEVICE explicit operator bool() const; \
        CUTLASS_HOST_DEVICE uint16_t raw() const; \
    }; \
    CUTLASS_HOST_DEVICE bool operator==(const T&, const T&); \
    CUTLASS_HOST_DEVICE bool operator!=(const T&, const T&); \
    CUTLASS_HOST_DEVICE bool operator<(const T&, const T&); \
    CUTLASS_HOST_DEVICE bool operator<=(const T&, const T&); \
    CUTLASS_HOST_DEVICE bool operator>(const T&, const T&); \
    CUTLASS_HOST_DEVICE bool operator>=(const T&, const T&); \
    CUTLASS_HOST_DEVICE T operator+(const T&, const T&); \
    CUTLASS_HOST_DEVICE T operator-(const T&); \
    CUTLASS_HOST_DEVICE T operator-(const T&, const T&); \
    CUTLASS_HOST_DEVICE T operator*(const T&, const T&); \
    CUTLASS_HOST_DEVICE T operator/(const T&, const T&); \
    CUTLASS_HOST_DEVICE T& operator+=(T&, const T&); \
    CUTLASS_HOST_DEVICE T& operator-=(T&, const T&); \
    CUTLASS_HOST_DEVICE T& operator*=(T&, const T&); \
    CUTLASS_HOST_DEVICE T& operator/=(T&, const T&);
MP_CUTLASS_FLOAT(half_t, CUTLASS_HOST_DEVICE explicit half_t(const __half&); CUTLASS_HOST_DEVICE __half to_half() const;)
MP_CUTLASS_FLOAT(bfloat16_t,
    CUTLASS_HOST_DEVICE explicit bfloat16_t(const __nv_bfloat16&); CUTLASS_HOST_DEVICE __nv_bfloat16 to_nv_bfloat16() const;)
MP_CUTLASS_FLOAT(tfloat32_t, )
MP_CUTLASS_FLOAT(float_e4m3_t, )
MP_CUTLASS_FLOAT(float_e5m2_t, )
#undef MP_CUTLASS_FLOAT

template <class T> struct sizeof_bits { static constexpr int value = int(sizeof(T) * 8); };
template <class T, int N> struct Array {
    using value_type = T;
    using Element = T;
    static constexpr int kElements = N;
    T storage[N];
    CUTLASS_HOST_DEVICE T& operator[](int);
    CUTLASS_HOST_DEVICE const T& operator[](int) const;
    CUTLASS_HOST_DEVICE void clear();
    CUTLASS_HOST_DEVICE void fill(const T&);
    CUTLASS_HOST_DEVICE T* data();
    CUTLASS_HOST_DEVICE static constexpr int size() { return N; }
};
template <class T, int N> using AlignedArray = Array<T, N>;
template <class T, int N> CUTLASS_HOST_DEVICE Array<T, N> operator+(const Array<T, N>&, const Array<T, N>&);
template <class T, int N> CUTLASS_HOST_DEVICE Array<T, N> operator*(const Array<T, N>&, const Array<T, N>&);
#define MP_FUNCTOR(name) template <class T> struct name { CUTLASS_HOST_DEVICE T operator()(const T&, const T&) const; };
MP_FUNCTOR(plus) MP_FUNCTOR(minus) MP_FUNCTOR(multiplies) MP_FUNCTOR(divides) MP_FUNCTOR(maximum) MP_FUNCTOR(minimum)
#undef MP_FUNCTOR
template <class A, class B = A, class C = A> struct multiply_add { CUTLASS_HOST_DEVICE C operator()(const A&, const B&,
    const C&) const; };
template <class To, class From, FloatRoundStyle R = FloatRoundStyle::round_to_nearest> struct NumericConverter {
    using result_type = To;
    using source_type = From;
    CUTLASS_HOST_DEVICE static To convert(const From&);
    CUTLASS_HOST_DEVICE To operator()(const From&) const;
};
template <class To, class From, int N,
    FloatRoundStyle R = FloatRoundStyle::round_to_nearest> struct NumericArrayConverter {
    using result_type = Array<To, N>;
    using source_type = Array<From, N>;
    CUTLASS_HOST_DEVICE static result_type convert(const source_type&);
    CUTLASS_HOST_DEVICE result_type operator()(const source_type&) const;
};

namespace layout {
struct RowMajor { int stride; CUTLASS_HOST_DEVICE RowMajor(int = 0); CUTLASS_HOST_DEVICE static RowMajor packed(int, int); };
struct ColumnMajor { int stride; CUTLASS_HOST_DEVICE ColumnMajor(int = 0); CUTLASS_HOST_DEVICE static ColumnMajor packed(int, int); };
struct TensorNHWC {};
struct PitchLinear {};
}  // namespace layout
namespace arch {
struct OpClassSimt {};
struct OpClassTensorOp {};
struct OpClassWmmaTensorOp {};
struct OpMultiplyAdd {};
struct OpMultiplyAddFastF16 {};
struct Sm50 {};
struct Sm60 {};
struct Sm70 {};
struct Sm75 {};
struct Sm80 {};
struct Sm90 {};
}  // namespace arch
template <class T, class L> struct TensorRef {
    CUTLASS_HOST_DEVICE TensorRef();
    CUTLASS_HOST_DEVICE TensorRef(T*, L);
    CUTLASS_HOST_DEVICE TensorRef(T*, int);
    template <class U> CUTLASS_HOST_DEVICE TensorRef(const TensorRef<U, L>&);
    CUTLASS_HOST_DEVICE T* data() const;
};

namespace epilogue {
namespace thread {
template <class ElementOutput_, int Count, class ElementAccumulator_ = ElementOutput_,
    class ElementCompute_ = ElementOutput_>
class LinearCombination {
public:
    using ElementOutput = ElementOutput_;
    using ElementAccumulator = ElementAccumulator_;
    using ElementCompute = ElementCompute_;
    static constexpr int kCount = Count;
    struct Params {
        ElementCompute alpha;
        ElementCompute beta;
        CUTLASS_HOST_DEVICE Params();
        CUTLASS_HOST_DEVICE Params(ElementCompute, ElementCompute = ElementCompute(0));
    };
};
#define MP_EPILOGUE(name) \
    template <class O, int N, class A = O, class C = O> class name : public LinearCombination<O, N, A, C> {};
MP_EPILOGUE(LinearCombinationRelu) MP_EPILOGUE(LinearCombinationClamp) MP_EPILOGUE(LinearCombinationGELU)
MP_EPILOGUE(LinearCombinationSigmoid) MP_EPILOGUE(LinearCombinationSilu)
#undef MP_EPILOGUE
template <class A, int N> struct Convert {};
}  // namespace thread
}  // namespace epilogue

namespace gemm {
struct GemmCoord { int m_, n_, k_; CUTLASS_HOST_DEVICE GemmCoord(); CUTLASS_HOST_DEVICE GemmCoord(int, int,
    int); CUTLASS_HOST_DEVICE int m() const; CUTLASS_HOST_DEVICE int n() const; CUTLASS_HOST_DEVICE int k() const; };
template <int M, int N, int K> struct GemmShape {
    static constexpr int kM = M;
    static constexpr int kN = N;
    static constexpr int kK = K;
};
enum class GemmUniversalMode { kGemm, kGemmSplitKParallel, kBatched, kArray };
namespace threadblock {
template <int N = 1> struct GemmIdentityThreadblockSwizzle {};
struct GemmBatchedIdentityThreadblockSwizzle {};
struct GemmSplitKHorizontalThreadblockSwizzle {};
}  // namespace threadblock
namespace device {
template <class A, class LA, class B, class LB, class C, class LC, class Epilogue> struct mp_arguments {
    GemmCoord problem_size;
    TensorRef<const A, LA> ref_A;
    TensorRef<const B, LB> ref_B;
    TensorRef<const C, LC> ref_C;
    TensorRef<C, LC> ref_D;
    typename Epilogue::Params epilogue;
    int split_k_slices;
    CUTLASS_HOST_DEVICE mp_arguments();
    CUTLASS_HOST_DEVICE mp_arguments(GemmCoord, TensorRef<const A, LA>, TensorRef<const B, LB>, TensorRef<const C, LC>,
                       TensorRef<C, LC>, typename Epilogue::Params = typename Epilogue::Params(), int = 1);
};
#define MP_GEMM(name) \
    template <class ElementA_, class LayoutA_, class ElementB_, class LayoutB_, class ElementC_, class LayoutC_, \
              class ElementAccumulator_ = ElementC_, class OperatorClass = arch::OpClassSimt, \
              class ArchTag = arch::Sm70, class ThreadblockShape = GemmShape<128, 128, 8>, \
              class WarpShape = GemmShape<32, 64, 8>, class InstructionShape = GemmShape<1, 1, 1>, \
              class EpilogueOutputOp = epilogue::thread::LinearCombination<ElementC_, 1, ElementAccumulator_, ElementAccumulator_>, \
              class Swizzle = threadblock::GemmIdentityThreadblockSwizzle<>, auto Stages = 2, auto... Rest> \
    class name { \
    public: \
        using ElementA = ElementA_; \
        using ElementB = ElementB_; \
        using ElementC = ElementC_; \
        using ElementAccumulator = ElementAccumulator_; \
        using Arguments = mp_arguments<ElementA_, LayoutA_, ElementB_, LayoutB_, ElementC_, LayoutC_, EpilogueOutputOp>; \
        name(); \
        static Status can_implement(const Arguments&); \
        static size_t get_workspace_size(const Arguments&); \
        Status initialize(const Arguments&, void* = nullptr, cudaStream_t = nullptr); \
        Status run(cudaStream_t = nullptr); \
        Status operator()(cudaStream_t = nullptr); \
        Status operator()(const Arguments&, void* = nullptr, cudaStream_t = nullptr); \
    };
MP_GEMM(Gemm) MP_GEMM(GemmSplitKParallel) MP_GEMM(GemmBatched) MP_GEMM(GemmUniversal)
#undef MP_GEMM
}  // namespace device
}  // namespace gemm
}  // namespace cutlass
using cutlass::cutlassGetStatusString;
