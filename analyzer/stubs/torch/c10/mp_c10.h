// The small types under ATen: dtypes, devices, scalars, lists, half arithmetic with PyTorch's promotion.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <cmath>
#include <complex>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <ostream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#if defined(__CUDA__)
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#endif

#define C10_API
#define TORCH_API
#define TORCH_CUDA_CU_API
#if defined(__CUDA__)
#define C10_HOST_DEVICE __host__ __device__
#define C10_DEVICE __device__
#define C10_HOST __host__
#define C10_LAUNCH_BOUNDS_0
#define C10_LAUNCH_BOUNDS_1(n) __launch_bounds__(n)
#define C10_LAUNCH_BOUNDS_2(n, m) __launch_bounds__(n, m)
#else
#define C10_HOST_DEVICE
#define C10_DEVICE
#define C10_HOST
#endif
#define C10_WARP_SIZE 32
#define C10_ALWAYS_INLINE inline
#define C10_RESTRICT __restrict
#define C10_UNUSED __attribute__((unused))
#define C10_LIKELY(e) (e)
#define C10_UNLIKELY(e) (e)
#define TORCH_VERSION_MAJOR 2
#define TORCH_VERSION_MINOR 5
#define TORCH_VERSION_PATCH 0
#define TORCH_VERSION "2.5.0"

#ifndef MP_NO_BODY
// A body that says nothing: a template called with a lambda of internal linkage must be defined here.
#define MP_NO_BODY { __builtin_trap(); }
#endif
namespace c10 {

template <class T> using optional = std::optional<T>;
using std::make_optional;
using std::nullopt;
using std::nullopt_t;
using string_view = std::string_view;
template <class T> using SmallVectorOf = std::vector<T>;
template <class T, unsigned N> class SmallVector : public std::vector<T> {
public:
    using std::vector<T>::vector;
};

class Error : public std::exception {
public:
    explicit Error(std::string);
    const char* what() const noexcept override;
    const char* what_without_backtrace() const noexcept;
};
template <class... A> std::string str(const A&...);

// Halves. Same-type arithmetic stays half; with float it is float, with double double, with integers half.
#if defined(__CUDA__)
// Implicit for Half, explicit for BFloat16, as PyTorch has them.
#define MP_HALF_CUDA(T, C, how) \
    C10_HOST_DEVICE how T(const C&); \
    C10_HOST_DEVICE how operator C() const;
#else
#define MP_HALF_CUDA(T, C, how)
#endif
#define MP_HALF_CLASS(T, C, how) \
    struct alignas(2) T { \
        unsigned short x; \
        struct from_bits_t {}; \
        C10_HOST_DEVICE static constexpr from_bits_t from_bits() { return {}; } \
        T() = default; \
        C10_HOST_DEVICE constexpr T(unsigned short bits, from_bits_t) : x(bits) {} \
        C10_HOST_DEVICE T(float); \
        C10_HOST_DEVICE operator float() const; \
        MP_HALF_CUDA(T, C, how) \
    };
#define MP_HALF_BINARY(T, op) \
    C10_HOST_DEVICE T operator op(const T&, const T&); \
    C10_HOST_DEVICE float operator op(T, float); \
    C10_HOST_DEVICE float operator op(float, T); \
    C10_HOST_DEVICE double operator op(T, double); \
    C10_HOST_DEVICE double operator op(double, T); \
    C10_HOST_DEVICE T operator op(T, int); \
    C10_HOST_DEVICE T operator op(int, T); \
    C10_HOST_DEVICE T operator op(T, int64_t); \
    C10_HOST_DEVICE T operator op(int64_t, T);
#define MP_HALF_ASSIGN(T, op) \
    C10_HOST_DEVICE T& operator op(T&, const T&); \
    C10_HOST_DEVICE float& operator op(float&, T);
// Between two of one type only: an exact match, where the conversions to float and to the CUDA class
// would make it ambiguous.
#define MP_HALF_COMPARE(T, op) \
    template <class A, class B, \
              std::enable_if_t<std::is_same<A, T>::value && std::is_same<B, T>::value, int> = 0> \
    C10_HOST_DEVICE bool operator op(const A&, const B&);
#define MP_HALF(T, C, how) \
    MP_HALF_CLASS(T, C, how) \
    MP_HALF_BINARY(T, +) MP_HALF_BINARY(T, -) MP_HALF_BINARY(T, *) MP_HALF_BINARY(T, /) \
    MP_HALF_ASSIGN(T, +=) MP_HALF_ASSIGN(T, -=) MP_HALF_ASSIGN(T, *=) MP_HALF_ASSIGN(T, /=) \
    MP_HALF_COMPARE(T, <) MP_HALF_COMPARE(T, <=) MP_HALF_COMPARE(T, >) MP_HALF_COMPARE(T, >=) \
    MP_HALF_COMPARE(T, ==) MP_HALF_COMPARE(T, !=) \
    C10_HOST_DEVICE T operator-(const T&); \
    std::ostream& operator<<(std::ostream&, const T&);
MP_HALF(Half, __half, )
MP_HALF(BFloat16, __nv_bfloat16, explicit)
#if defined(__CUDA__)
__device__ Half __ldg(const Half*);
__device__ BFloat16 __ldg(const BFloat16*);
#endif
#define MP_FLOAT8(T) \
    struct alignas(1) T { \
        uint8_t x; \
        T() = default; \
        C10_HOST_DEVICE T(float); \
        C10_HOST_DEVICE operator float() const; \
    };
MP_FLOAT8(Float8_e4m3fn)
MP_FLOAT8(Float8_e5m2)
MP_FLOAT8(Float8_e4m3fnuz)
MP_FLOAT8(Float8_e5m2fnuz)
#undef MP_FLOAT8
#undef MP_HALF
#undef MP_HALF_ASSIGN
#undef MP_HALF_BINARY
#undef MP_HALF_CLASS
#undef MP_HALF_COMPARE
#undef MP_HALF_CUDA

template <class T> struct complex {
    T real_, imag_;
    C10_HOST_DEVICE constexpr complex() : real_(), imag_() {}
    C10_HOST_DEVICE constexpr complex(T r, T i = T()) : real_(r), imag_(i) {}
    C10_HOST_DEVICE constexpr T real() const { return real_; }
    C10_HOST_DEVICE constexpr T imag() const { return imag_; }
    C10_HOST_DEVICE complex& operator+=(const complex&);
    C10_HOST_DEVICE complex& operator*=(const complex&);
};

// Dtypes: C++ type, enumerator.
#define AT_FORALL_SCALAR_TYPES_WITH_COMPLEX_AND_QINTS(_) \
    _(uint8_t, Byte) _(int8_t, Char) _(int16_t, Short) _(int, Int) _(int64_t, Long) _(c10::Half, Half) \
    _(float, Float) _(double, Double) _(c10::complex<c10::Half>, ComplexHalf) \
    _(c10::complex<float>, ComplexFloat) _(c10::complex<double>, ComplexDouble) _(bool, Bool) \
    _(c10::BFloat16, BFloat16) _(c10::Float8_e5m2, Float8_e5m2) _(c10::Float8_e4m3fn, Float8_e4m3fn)
#define AT_FORALL_SCALAR_TYPES(_) \
    _(uint8_t, Byte) _(int8_t, Char) _(int16_t, Short) _(int, Int) _(int64_t, Long) _(float, Float) _(double, Double)
enum class ScalarType : int8_t {
#define MP_ENUM(T, name) name,
    AT_FORALL_SCALAR_TYPES_WITH_COMPLEX_AND_QINTS(MP_ENUM)
#undef MP_ENUM
    QInt8, QUInt8, QInt32, QUInt4x2, QUInt2x4, Bits8, UInt16, UInt32, UInt64,
    Undefined, NumOptions
};
#define MP_CONSTANT(T, name) constexpr ScalarType k##name = ScalarType::name;
AT_FORALL_SCALAR_TYPES_WITH_COMPLEX_AND_QINTS(MP_CONSTANT)
#undef MP_CONSTANT
const char* toString(ScalarType);
size_t elementSize(ScalarType);
bool isFloatingType(ScalarType);
bool isReducedFloatingType(ScalarType);
bool isIntegralType(ScalarType, bool = false);
bool isComplexType(ScalarType);
ScalarType promoteTypes(ScalarType, ScalarType);
ScalarType toOpMathType(ScalarType);
std::ostream& operator<<(std::ostream&, ScalarType);
template <class T> struct CppTypeToScalarType;
#define MP_TRAIT(T, name) \
    template <> struct CppTypeToScalarType<T> : std::integral_constant<ScalarType, ScalarType::name> {};
AT_FORALL_SCALAR_TYPES_WITH_COMPLEX_AND_QINTS(MP_TRAIT)
#undef MP_TRAIT
namespace impl {
template <ScalarType S> struct ScalarTypeToCPPType;
#define MP_TRAIT(T, name) \
    template <> struct ScalarTypeToCPPType<ScalarType::name> { using type = T; };
AT_FORALL_SCALAR_TYPES_WITH_COMPLEX_AND_QINTS(MP_TRAIT)
#undef MP_TRAIT
template <ScalarType S> using ScalarTypeToCPPTypeT = typename ScalarTypeToCPPType<S>::type;
}  // namespace impl

enum class DeviceType : int8_t {
    CPU, CUDA, MKLDNN, OPENGL, OPENCL, IDEEP, HIP, FPGA, MAIA, XLA, Vulkan, Metal, XPU, MPS, Meta, HPU, VE, Lazy,
    IPU, MTIA, PrivateUse1, COMPILE_TIME_MAX_DEVICE_TYPES
};
constexpr DeviceType kCPU = DeviceType::CPU;
constexpr DeviceType kCUDA = DeviceType::CUDA;
constexpr DeviceType kHIP = DeviceType::HIP;
constexpr DeviceType kXLA = DeviceType::XLA;
constexpr DeviceType kXPU = DeviceType::XPU;
constexpr DeviceType kMPS = DeviceType::MPS;
constexpr DeviceType kHPU = DeviceType::HPU;
constexpr DeviceType kMeta = DeviceType::Meta;
constexpr DeviceType kPrivateUse1 = DeviceType::PrivateUse1;
using DeviceIndex = int8_t;
struct Device {
    Device(DeviceType, DeviceIndex = -1);
    Device(const std::string&);
    Device(const char*);
    DeviceType type() const;
    DeviceIndex index() const;
    bool is_cuda() const;
    bool is_cpu() const;
    bool has_index() const;
    void set_index(DeviceIndex);
    std::string str() const;
    bool operator==(const Device&) const;
    bool operator!=(const Device&) const;
};
std::ostream& operator<<(std::ostream&, const Device&);
enum class Layout : int8_t { Strided, Sparse, SparseCsr, Mkldnn };
constexpr Layout kStrided = Layout::Strided;
constexpr Layout kSparse = Layout::Sparse;
enum class MemoryFormat : int8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };
enum class DispatchKey : uint16_t {
    Undefined, CPU, CUDA, CatchAll, Autograd, AutogradCPU, AutogradCUDA, AutogradOther, Meta, BackendSelect,
        Python,
    CompositeImplicitAutograd, CompositeExplicitAutograd, Autocast, AutocastCPU, AutocastCUDA, AutocastXPU,
    AutocastHPU, AutocastMPS, AutocastPrivateUse1, ADInplaceOrView, HPU, XPU, XLA, PrivateUse1, QuantizedCPU
};
struct DispatchKeySet {
    DispatchKeySet();
    explicit DispatchKeySet(DispatchKey);
    DispatchKeySet(std::initializer_list<DispatchKey>);
    bool has(DispatchKey) const;
    DispatchKeySet operator|(DispatchKeySet) const;
};
constexpr DispatchKey kMpAutocast = DispatchKey::Autocast;
extern const DispatchKeySet autocast_dispatch_keyset;
namespace impl {
struct ExcludeDispatchKeyGuard {
    ExcludeDispatchKeyGuard(DispatchKey);
    ExcludeDispatchKeyGuard(DispatchKeySet);
    ~ExcludeDispatchKeyGuard();
};
struct IncludeDispatchKeyGuard {
    IncludeDispatchKeyGuard(DispatchKey);
    IncludeDispatchKeyGuard(DispatchKeySet);
    ~IncludeDispatchKeyGuard();
};
bool tls_is_dispatch_key_excluded(DispatchKey);
}  // namespace impl
struct InferenceMode {
    explicit InferenceMode(bool = true);
    ~InferenceMode();
    static bool is_enabled();
};

class SymInt {
public:
    SymInt(int64_t);
    operator int64_t() const;
};

class Scalar {
public:
    Scalar();
    Scalar(bool);
    Scalar(uint8_t);
    Scalar(int8_t);
    Scalar(int16_t);
    Scalar(int);
    Scalar(int64_t);
    Scalar(long long);
    Scalar(unsigned int);
    Scalar(unsigned long);
    Scalar(float);
    Scalar(double);
    Scalar(Half);
    Scalar(BFloat16);
    Scalar(complex<float>);
    Scalar(complex<double>);
    template <class T> T to() const;
    float toFloat() const;
    double toDouble() const;
    int toInt() const;
    int64_t toLong() const;
    bool toBool() const;
    Half toHalf() const;
    BFloat16 toBFloat16() const;
    bool isFloatingPoint() const;
    bool isIntegral(bool) const;
    ScalarType type() const;
    Scalar operator-() const;
};

template <class T> class ArrayRef {
public:
    using value_type = T;
    using iterator = const T*;
    constexpr ArrayRef() {}
    ArrayRef(const T&);
    constexpr ArrayRef(const T* p, size_t n) : data_(p), size_(n) {}
    ArrayRef(const T*, const T*);
    template <class A> ArrayRef(const std::vector<T, A>&);
    template <unsigned N> ArrayRef(const SmallVector<T, N>&);
    template <size_t N> ArrayRef(const std::array<T, N>&);
    template <size_t N> ArrayRef(const T (&)[N]);
    ArrayRef(const std::initializer_list<T>&);
    const T* begin() const;
    const T* end() const;
    const T* data() const;
    size_t size() const;
    bool empty() const;
    const T& operator[](size_t) const;
    const T& at(size_t) const;
    const T& front() const;
    const T& back() const;
    ArrayRef slice(size_t, size_t) const;
    ArrayRef slice(size_t) const;
    std::vector<T> vec() const;
    bool equals(ArrayRef) const;

private:
    const T* data_ = nullptr;
    size_t size_ = 0;
};
template <class T> bool operator==(ArrayRef<T>, ArrayRef<T>);
template <class T> bool operator!=(ArrayRef<T>, ArrayRef<T>);
template <class T> bool operator==(const std::vector<T>&, ArrayRef<T>);
template <class T> std::ostream& operator<<(std::ostream&, ArrayRef<T>);
using IntArrayRef = ArrayRef<int64_t>;
using IntList = ArrayRef<int64_t>;
using SymIntArrayRef = ArrayRef<SymInt>;
template <class T> class OptionalArrayRef {
public:
    OptionalArrayRef() {}
    OptionalArrayRef(std::nullopt_t) {}
    OptionalArrayRef(const std::initializer_list<T>&);
    template <class A> OptionalArrayRef(const std::vector<T, A>&);
    OptionalArrayRef(ArrayRef<T>);
    OptionalArrayRef(const T&);
};
using OptionalIntArrayRef = OptionalArrayRef<int64_t>;

template <class T> class intrusive_ptr {
public:
    intrusive_ptr();
    T* operator->() const;
    T& operator*() const;
    T* get() const;
    explicit operator bool() const;
};
class Storage {
public:
    void* data() const;
    size_t nbytes() const;
};
struct TensorImpl;
struct Stream {
    int64_t id() const;
    Device device() const;
};
template <class T> class List : public std::vector<T> {};
template <class K, class V> class Dict : public std::map<K, V> {};
class IValue;
struct Warning {};

}  // namespace c10

namespace caffe2 {
class TypeMeta {
public:
    TypeMeta();
    static TypeMeta fromScalarType(c10::ScalarType);
    template <class T> static TypeMeta Make();
    c10::ScalarType toScalarType() const;
    bool isScalarType() const;
    size_t itemsize() const;
    std::string_view name() const;
    template <class T> bool Match() const;
    friend bool operator==(const TypeMeta&, const TypeMeta&);
    friend bool operator!=(const TypeMeta&, const TypeMeta&);
    friend bool operator==(const TypeMeta&, c10::ScalarType);
    friend bool operator==(c10::ScalarType, const TypeMeta&);
    friend bool operator!=(const TypeMeta&, c10::ScalarType);
    friend std::ostream& operator<<(std::ostream&, const TypeMeta&);
};
TypeMeta get_default_dtype();
}  // namespace caffe2

namespace c10 {
struct TensorOptions {
    TensorOptions();
    TensorOptions(Device);
    TensorOptions(DeviceType);
    TensorOptions(ScalarType);
    TensorOptions(caffe2::TypeMeta);
    TensorOptions(Layout);
    TensorOptions(MemoryFormat);
    TensorOptions dtype(ScalarType) const;
    TensorOptions dtype(caffe2::TypeMeta) const;
    TensorOptions dtype(std::optional<ScalarType>) const;
    template <class T> TensorOptions& dtype();
    TensorOptions device(Device) const;
    TensorOptions device(DeviceType, DeviceIndex = -1) const;
    TensorOptions device(std::optional<Device>) const;
    TensorOptions device_index(DeviceIndex) const;
    TensorOptions layout(Layout) const;
    TensorOptions requires_grad(bool = true) const;
    TensorOptions pinned_memory(bool) const;
    TensorOptions memory_format(MemoryFormat) const;
    caffe2::TypeMeta dtype() const;
    Device device() const;
    Layout layout() const;
    bool requires_grad() const;
    bool has_dtype() const;
    bool has_device() const;
    bool is_sparse() const;
};
TensorOptions dtype(ScalarType);
TensorOptions dtype(caffe2::TypeMeta);
template <class T> TensorOptions dtype();
TensorOptions device(Device);
TensorOptions device_index(DeviceIndex);
TensorOptions layout(Layout);
TensorOptions requires_grad(bool = true);
ScalarType typeMetaToScalarType(caffe2::TypeMeta);
caffe2::TypeMeta scalarTypeToTypeMeta(ScalarType);
void set_default_dtype(caffe2::TypeMeta);
}  // namespace c10

namespace std {
#define MP_LIMITS(T) \
    template <> class numeric_limits<T> { \
    public: \
        static constexpr bool is_specialized = true; \
        static constexpr bool is_signed = true; \
        static constexpr bool is_integer = false; \
        static constexpr bool has_infinity = true; \
        C10_HOST_DEVICE static constexpr T min() { return T(0x0400, T::from_bits()); } \
        C10_HOST_DEVICE static constexpr T lowest() { return T(0xFBFF, T::from_bits()); } \
        C10_HOST_DEVICE static constexpr T max() { return T(0x7BFF, T::from_bits()); } \
        C10_HOST_DEVICE static constexpr T epsilon() { return T(0x1400, T::from_bits()); } \
        C10_HOST_DEVICE static constexpr T infinity() { return T(0x7C00, T::from_bits()); } \
        C10_HOST_DEVICE static constexpr T quiet_NaN() { return T(0x7E00, T::from_bits()); } \
        C10_HOST_DEVICE static constexpr T denorm_min() { return T(0x0001, T::from_bits()); } \
    };
MP_LIMITS(c10::Half)
MP_LIMITS(c10::BFloat16)
#undef MP_LIMITS
#define MP_MATH(T) \
    C10_HOST_DEVICE T sqrt(T); C10_HOST_DEVICE T exp(T); C10_HOST_DEVICE T log(T); C10_HOST_DEVICE T tanh(T); \
    C10_HOST_DEVICE T abs(T); C10_HOST_DEVICE T pow(T, T); C10_HOST_DEVICE T floor(T); C10_HOST_DEVICE bool isnan(T);
MP_MATH(c10::Half)
MP_MATH(c10::BFloat16)
#undef MP_MATH
template <> struct hash<c10::Device> { size_t operator()(c10::Device) const; };
}  // namespace std

// Checks. The condition is evaluated, the message is not analysed further.
#define TORCH_CHECK(cond, ...) \
    do { if (!(cond)) throw ::c10::Error(::c10::str("" __VA_OPT__(,) __VA_ARGS__)); } while (0)
#define TORCH_INTERNAL_ASSERT(cond, ...) TORCH_CHECK(cond __VA_OPT__(,) __VA_ARGS__)
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY(cond, ...) TORCH_CHECK(cond __VA_OPT__(,) __VA_ARGS__)
#define TORCH_CHECK_EQ(a, b) TORCH_CHECK((a) == (b))
#define TORCH_CHECK_NOT_IMPLEMENTED(cond, ...) TORCH_CHECK(cond __VA_OPT__(,) __VA_ARGS__)
#define TORCH_CHECK_VALUE(cond, ...) TORCH_CHECK(cond __VA_OPT__(,) __VA_ARGS__)
#define TORCH_CHECK_TYPE(cond, ...) TORCH_CHECK(cond __VA_OPT__(,) __VA_ARGS__)
#define AT_ASSERT(cond, ...) TORCH_CHECK(cond __VA_OPT__(,) __VA_ARGS__)
#define AT_ASSERTM(cond, ...) TORCH_CHECK(cond __VA_OPT__(,) __VA_ARGS__)
#define AT_CHECK(cond, ...) TORCH_CHECK(cond __VA_OPT__(,) __VA_ARGS__)
#define AT_ERROR(...) do { throw ::c10::Error(::c10::str(__VA_ARGS__)); } while (0)
#define TORCH_WARN(...) ((void)::c10::str(__VA_ARGS__))
#define TORCH_WARN_ONCE(...) ((void)::c10::str(__VA_ARGS__))
#define C10_THROW_ERROR(type, msg) throw ::c10::Error(msg)
#define CUDA_KERNEL_ASSERT(cond) ((void)(cond))
namespace c10 {
template <class T> std::vector<T> irange(T);
template <class A, class B> std::vector<B> irange(A, B);
}  // namespace c10
