// Scalar types of libtorch: c10::Half and friends with PyTorch's promotion rules, devices, options.
// Declarations for reading user code; nothing here is ever compiled into a program.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string_view>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#if defined(__CUDACC__) || defined(__CUDA__)
#define C10_HOST_DEVICE __host__ __device__
#define C10_DEVICE __device__
#define C10_HOST __host__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#define MP_TORCH_CUDA 1
#else
#define C10_HOST_DEVICE
#define C10_DEVICE
#define C10_HOST
#endif
#define C10_ALWAYS_INLINE inline
#define C10_UNUSED [[maybe_unused]]
#define C10_RESTRICT __restrict__
#define C10_LIKELY(x) (x)
#define C10_UNLIKELY(x) (x)
#define C10_API
#define C10_EXPORT
#define C10_CUDA_API
#define TORCH_API
#define TORCH_CUDA_CU_API
#define TORCH_CUDA_CPP_API
#define C10_LAUNCH_BOUNDS_0
#define C10_LAUNCH_BOUNDS_1(a) __launch_bounds__(a)
#define C10_LAUNCH_BOUNDS_2(a, b) __launch_bounds__(a, b)
#define C10_WARP_SIZE 32
#define TORCH_VERSION_MAJOR 2
#define TORCH_VERSION_MINOR 6
#define TORCH_VERSION_PATCH 0
#define TORCH_VERSION "2.6.0"

namespace c10 {

struct alignas(2) Half {
    unsigned short x;
    struct from_bits_t {};
    static constexpr C10_HOST_DEVICE from_bits_t from_bits() { return from_bits_t(); }
    Half() = default;
    constexpr C10_HOST_DEVICE Half(unsigned short bits, from_bits_t) : x(bits) {}
    C10_HOST_DEVICE Half(float value);
    C10_HOST_DEVICE operator float() const;
#ifdef MP_TORCH_CUDA
    C10_HOST_DEVICE Half(const __half& value);
    C10_HOST_DEVICE operator __half() const;
#endif
};

struct alignas(2) BFloat16 {
    unsigned short x;
    struct from_bits_t {};
    static constexpr C10_HOST_DEVICE from_bits_t from_bits() { return from_bits_t(); }
    BFloat16() = default;
    constexpr C10_HOST_DEVICE BFloat16(unsigned short bits, from_bits_t) : x(bits) {}
    C10_HOST_DEVICE BFloat16(float value);
    C10_HOST_DEVICE operator float() const;
#ifdef MP_TORCH_CUDA
    C10_HOST_DEVICE BFloat16(const __nv_bfloat16& value);
    explicit C10_HOST_DEVICE operator __nv_bfloat16() const;
#endif
};

// Half with Half stays Half, with float it is float, with double double, with an integer Half.
#define MP_REDUCED_ARITHMETIC(T)                                                                    \
    C10_HOST_DEVICE T operator+(const T& a, const T& b);                                            \
    C10_HOST_DEVICE T operator-(const T& a, const T& b);                                            \
    C10_HOST_DEVICE T operator*(const T& a, const T& b);                                            \
    C10_HOST_DEVICE T operator/(const T& a, const T& b);                                            \
    C10_HOST_DEVICE T operator-(const T& a);                                                        \
    C10_HOST_DEVICE T& operator+=(T& a, const T& b);                                                \
    C10_HOST_DEVICE T& operator-=(T& a, const T& b);                                                \
    C10_HOST_DEVICE T& operator*=(T& a, const T& b);                                                \
    C10_HOST_DEVICE T& operator/=(T& a, const T& b);                                                \
    MP_REDUCED_WITH_FLOAT(T, +) MP_REDUCED_WITH_FLOAT(T, -) MP_REDUCED_WITH_FLOAT(T, *)             \
    MP_REDUCED_WITH_FLOAT(T, /) MP_REDUCED_WITH(T, double, double, +)                               \
    MP_REDUCED_WITH(T, double, double, -) MP_REDUCED_WITH(T, double, double, *)                     \
    MP_REDUCED_WITH(T, double, double, /) MP_REDUCED_WITH(T, int, T, +) MP_REDUCED_WITH(T, int, T, -) \
    MP_REDUCED_WITH(T, int, T, *) MP_REDUCED_WITH(T, int, T, /) MP_REDUCED_WITH(T, int64_t, T, +)   \
    MP_REDUCED_WITH(T, int64_t, T, -) MP_REDUCED_WITH(T, int64_t, T, *) MP_REDUCED_WITH(T, int64_t, T, /)
#define MP_REDUCED_WITH(T, U, R, op)                \
    C10_HOST_DEVICE R operator op(const T& a, U b); \
    C10_HOST_DEVICE R operator op(U a, const T& b);
#define MP_REDUCED_WITH_FLOAT(T, op)         \
    MP_REDUCED_WITH(T, float, float, op)     \
    C10_HOST_DEVICE float& operator op##=(float& a, const T& b);

MP_REDUCED_ARITHMETIC(Half)
MP_REDUCED_ARITHMETIC(BFloat16)

#ifdef MP_TORCH_CUDA
C10_DEVICE Half __ldg(const Half*);
C10_DEVICE BFloat16 __ldg(const BFloat16*);
#endif

#define MP_FLOAT8(T)                             \
    struct alignas(1) T {                        \
        unsigned char x;                         \
        T() = default;                           \
        C10_HOST_DEVICE T(float value);          \
        C10_HOST_DEVICE operator float() const;  \
    };
MP_FLOAT8(Float8_e4m3fn)
MP_FLOAT8(Float8_e5m2)
MP_FLOAT8(Float8_e4m3fnuz)
MP_FLOAT8(Float8_e5m2fnuz)

template <typename T>
struct complex {
    T real_, imag_;
    constexpr C10_HOST_DEVICE complex(T re = T(), T im = T()) : real_(re), imag_(im) {}
    constexpr C10_HOST_DEVICE T real() const { return real_; }
    constexpr C10_HOST_DEVICE T imag() const { return imag_; }
};

enum class ScalarType : int8_t {
    Byte, Char, Short, Int, Long, Half, Float, Double, ComplexHalf, ComplexFloat, ComplexDouble, Bool,
    QInt8, QUInt8, QInt32, BFloat16, QUInt4x2, QUInt2x4, Bits1x8, Bits2x4, Bits4x2, Bits8, Bits16,
    Float8_e5m2, Float8_e4m3fn, Float8_e5m2fnuz, Float8_e4m3fnuz, UInt16, UInt32, UInt64, Undefined, NumOptions
};
inline constexpr ScalarType kByte = ScalarType::Byte, kChar = ScalarType::Char, kShort = ScalarType::Short,
                            kInt = ScalarType::Int, kLong = ScalarType::Long, kHalf = ScalarType::Half,
                            kFloat = ScalarType::Float, kDouble = ScalarType::Double,
                            kBool = ScalarType::Bool, kBFloat16 = ScalarType::BFloat16,
                            kComplexFloat = ScalarType::ComplexFloat,
                            kComplexDouble = ScalarType::ComplexDouble,
                            kFloat8_e4m3fn = ScalarType::Float8_e4m3fn, kFloat8_e5m2 = ScalarType::Float8_e5m2;

template <typename T>
struct CppTypeToScalarType;
#define MP_CPP_TYPE(T, S) \
    template <> struct CppTypeToScalarType<T> : std::integral_constant<ScalarType, ScalarType::S> {};
MP_CPP_TYPE(float, Float) MP_CPP_TYPE(double, Double) MP_CPP_TYPE(Half, Half) MP_CPP_TYPE(BFloat16, BFloat16)
MP_CPP_TYPE(int, Int) MP_CPP_TYPE(int64_t, Long) MP_CPP_TYPE(uint8_t, Byte) MP_CPP_TYPE(int8_t, Char)
MP_CPP_TYPE(int16_t, Short) MP_CPP_TYPE(bool, Bool) MP_CPP_TYPE(Float8_e4m3fn, Float8_e4m3fn)
MP_CPP_TYPE(Float8_e5m2, Float8_e5m2)

const char* toString(ScalarType);
size_t elementSize(ScalarType);
bool isFloatingType(ScalarType);
bool isIntegralType(ScalarType, bool include_bool = false);
bool isReducedFloatingType(ScalarType);
ScalarType promoteTypes(ScalarType, ScalarType);
ScalarType toOpMathType(ScalarType);
std::ostream& operator<<(std::ostream&, ScalarType);

enum class DeviceType : int8_t { CPU, CUDA, MKLDNN, HIP = 6, XLA = 9, Vulkan, Metal, XPU, MPS, Meta, HPU, VE,
                                 Lazy, IPU, MTIA, PrivateUse1 };
inline constexpr DeviceType kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA, kHIP = DeviceType::HIP,
                            kXLA = DeviceType::XLA, kXPU = DeviceType::XPU, kMPS = DeviceType::MPS,
                            kMeta = DeviceType::Meta, kHPU = DeviceType::HPU, kPrivateUse1 = DeviceType::PrivateUse1;
using DeviceIndex = int8_t;

struct Device {
    Device(DeviceType type, DeviceIndex index = -1);
    Device(const std::string& name);
    Device(const char* name);
    DeviceType type() const;
    DeviceIndex index() const;
    bool is_cuda() const;
    bool is_cpu() const;
    bool has_index() const;
    std::string str() const;
    bool operator==(const Device&) const;
    bool operator!=(const Device&) const;
};
std::ostream& operator<<(std::ostream&, const Device&);

enum class Layout : int8_t { Strided, Sparse, SparseCsr, Mkldnn };
inline constexpr Layout kStrided = Layout::Strided, kSparse = Layout::Sparse;
enum class MemoryFormat : int8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };
enum class DispatchKey : uint16_t { Undefined, CPU, CUDA, Autograd, AutogradCPU, AutogradCUDA, AutocastCPU, AutocastXPU,
                                    AutocastIPU, AutocastHPU, AutocastXLA, AutocastMPS, AutocastMTIA, AutocastCUDA,
                                    Autocast = AutocastCUDA, AutocastPrivateUse1, BackendSelect, Python,
                                    CompositeImplicitAutograd, CompositeExplicitAutograd, Meta };
struct DispatchKeySet {
    DispatchKeySet() = default;
    DispatchKeySet(DispatchKey);
    DispatchKeySet(std::initializer_list<DispatchKey>);
    DispatchKeySet operator|(DispatchKeySet) const;
    bool has(DispatchKey) const;
};

using std::get;
using std::holds_alternative;
using std::in_place;
using std::make_optional;
using std::nullopt;
using std::nullopt_t;
using std::optional;
using std::variant;
using std::visit;
using string_view = std::string_view;

// As in PyTorch, a list can be made from one element, a vector, an array or braces.
template <typename T>
class ArrayRef {
public:
    using value_type = T;
    using iterator = const T*;
    constexpr ArrayRef() = default;
    constexpr ArrayRef(const T& one);
    constexpr ArrayRef(const T* data, size_t length);
    constexpr ArrayRef(const T* begin, const T* end);
    template <typename A> ArrayRef(const std::vector<T, A>& values);
    template <size_t N> constexpr ArrayRef(const T (&values)[N]);
    template <size_t N> constexpr ArrayRef(const std::array<T, N>& values);
    constexpr ArrayRef(const std::initializer_list<T>& values);
    const T* begin() const;
    const T* end() const;
    const T* data() const;
    size_t size() const;
    bool empty() const;
    const T& operator[](size_t) const;
    const T& at(size_t) const;
    const T& front() const;
    const T& back() const;
    ArrayRef slice(size_t from, size_t count) const;
    ArrayRef slice(size_t from) const;
    std::vector<T> vec() const;
    bool equals(ArrayRef) const;
};
template <typename T> bool operator==(ArrayRef<T>, ArrayRef<T>);
template <typename T> bool operator!=(ArrayRef<T>, ArrayRef<T>);
using IntArrayRef = ArrayRef<int64_t>;
using OptionalIntArrayRef = optional<ArrayRef<int64_t>>;

template <typename T> struct IntegerRange { struct It { T v; T operator*() const; It& operator++(); bool operator!=(const It&) const; };
    It begin() const; It end() const; };
template <typename A, typename B> IntegerRange<B> irange(A, B);
template <typename A> IntegerRange<A> irange(A);

class Scalar {
public:
    Scalar();
    Scalar(float);
    Scalar(double);
    Scalar(int);
    Scalar(int64_t);
    Scalar(unsigned char);
    Scalar(bool);
    Scalar(Half);
    Scalar(BFloat16);
    template <typename T> T to() const;
    double toDouble() const;
    float toFloat() const;
    int64_t toLong() const;
    int toInt() const;
    bool isFloatingPoint() const;
};

struct TensorOptions {
    TensorOptions() = default;
    TensorOptions(ScalarType);
    TensorOptions(DeviceType);
    TensorOptions(Device);
    TensorOptions(Layout);
    TensorOptions(MemoryFormat);
    TensorOptions dtype(ScalarType) const;
    TensorOptions dtype(optional<ScalarType>) const;
    template <typename T> TensorOptions dtype() const;
    ScalarType dtype() const;
    TensorOptions device(Device) const;
    TensorOptions device(DeviceType, DeviceIndex index = -1) const;
    Device device() const;
    TensorOptions layout(Layout) const;
    TensorOptions requires_grad(bool = true) const;
    TensorOptions pinned_memory(bool = true) const;
    TensorOptions memory_format(MemoryFormat) const;
};
TensorOptions dtype(ScalarType);
TensorOptions device(Device);
TensorOptions device(DeviceType, DeviceIndex index = -1);
TensorOptions requires_grad(bool = true);

class Error : public std::exception {
public:
    const char* what() const noexcept override;
};
[[noreturn]] void mp_fail(...);
void mp_warn(...);
template <typename... A> std::string str(const A&...);

template <typename T> class intrusive_ptr {
public:
    intrusive_ptr() = default;
    intrusive_ptr(std::nullptr_t);
    T* get() const;
    T* operator->() const;
    T& operator*() const;
    explicit operator bool() const;
};
template <typename T, typename... A> intrusive_ptr<T> make_intrusive(A&&...);
class intrusive_ptr_target {};

namespace impl {
class ExcludeDispatchKeyGuard {
public:
    explicit ExcludeDispatchKeyGuard(DispatchKey);
    explicit ExcludeDispatchKeyGuard(DispatchKeySet);
    ~ExcludeDispatchKeyGuard();
};
class IncludeDispatchKeyGuard {
public:
    explicit IncludeDispatchKeyGuard(DispatchKey);
    ~IncludeDispatchKeyGuard();
};
bool tls_is_dispatch_key_excluded(DispatchKey);
}  // namespace impl

class DeviceGuard {
public:
    explicit DeviceGuard(Device);
    ~DeviceGuard();
};
class InferenceMode {
public:
    explicit InferenceMode(bool enabled = true);
    ~InferenceMode();
    static bool is_enabled();
};

}  // namespace c10

#define MP_REDUCED_LIMITS(T)                                             \
    template <>                                                          \
    class std::numeric_limits<T> {                                       \
    public:                                                              \
        static constexpr bool is_specialized = true, is_signed = true;   \
        static constexpr bool has_infinity = true, has_quiet_NaN = true; \
        static C10_HOST_DEVICE T min();                                  \
        static C10_HOST_DEVICE T lowest();                               \
        static C10_HOST_DEVICE T max();                                  \
        static C10_HOST_DEVICE T epsilon();                              \
        static C10_HOST_DEVICE T infinity();                             \
        static C10_HOST_DEVICE T quiet_NaN();                            \
        static C10_HOST_DEVICE T denorm_min();                           \
    };
MP_REDUCED_LIMITS(c10::Half)
MP_REDUCED_LIMITS(c10::BFloat16)

#define TORCH_CHECK(cond, ...) do { if (!(cond)) ::c10::mp_fail("" __VA_OPT__(,) __VA_ARGS__); } while (0)
#define TORCH_INTERNAL_ASSERT(cond, ...) TORCH_CHECK(cond __VA_OPT__(,) __VA_ARGS__)
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY(cond, ...) TORCH_CHECK(cond __VA_OPT__(,) __VA_ARGS__)
#define TORCH_CHECK_NOT_IMPLEMENTED(cond, ...) TORCH_CHECK(cond __VA_OPT__(,) __VA_ARGS__)
#define TORCH_CHECK_VALUE(cond, ...) TORCH_CHECK(cond __VA_OPT__(,) __VA_ARGS__)
#define TORCH_WARN(...) ::c10::mp_warn(__VA_ARGS__)
#define TORCH_WARN_ONCE(...) ::c10::mp_warn(__VA_ARGS__)
#define AT_ASSERTM(cond, ...) TORCH_CHECK(cond __VA_OPT__(,) __VA_ARGS__)
#define AT_ASSERT(cond, ...) TORCH_CHECK(cond __VA_OPT__(,) __VA_ARGS__)
#define AT_ERROR(...) ::c10::mp_fail("" __VA_OPT__(,) __VA_ARGS__)
#define AT_CHECK(cond, ...) TORCH_CHECK(cond __VA_OPT__(,) __VA_ARGS__)
#define CUDA_KERNEL_ASSERT(cond) do { (void)(cond); } while (0)
#define TORCH_ARG(T, name)                                     \
    auto name(const T& value) -> decltype(*this) { this->name##_ = value; return *this; } \
    auto name(T&& value) -> decltype(*this) { this->name##_ = std::move(value); return *this; } \
    const T& name() const noexcept { return this->name##_; }   \
    T& name() noexcept { return this->name##_; }               \
    T name##_
