// at::Tensor: operators from mp_ops.inc, properties, accessors, factories.
#pragma once

#include "../c10/mp_c10.h"

namespace at {

using namespace c10;
using OptDtype = std::optional<ScalarType>;
class Tensor;
using Tensor2 = std::tuple<Tensor, Tensor>;
using Tensor3 = std::tuple<Tensor, Tensor, Tensor>;
using TensorList = ArrayRef<Tensor>;
using ITensorListRef = ArrayRef<Tensor>;
using DimVector = SmallVector<int64_t, 5>;
namespace Reduction { enum Reduction { None, Mean, Sum, END }; }
namespace indexing {
enum class TensorIndexType { None, Ellipsis, SymInt, Boolean, Slice, Tensor };
constexpr auto None = std::nullopt;
struct EllipsisIndexType {};
const EllipsisIndexType Ellipsis = {};
struct Slice {
    Slice(std::optional<int64_t> = std::nullopt, std::optional<int64_t> = std::nullopt,
        std::optional<int64_t> = std::nullopt);
};
struct TensorIndex {
    TensorIndex(std::nullopt_t);
    TensorIndex(EllipsisIndexType);
    TensorIndex(const char*);
    TensorIndex(int64_t);
    TensorIndex(int);
    TensorIndex(bool);
    TensorIndex(Slice);
    TensorIndex(Tensor);
};
}  // namespace indexing
struct Generator {
    void set_current_seed(uint64_t);
    uint64_t seed();
};

template <class T> struct DefaultPtrTraits { typedef T* PtrType; };
template <class T> struct RestrictPtrTraits { typedef T* __restrict__ PtrType; };
template <class T, size_t N, template <class> class P = DefaultPtrTraits, class I = int64_t>
class TensorAccessor {
public:
    typedef typename P<T>::PtrType PtrType;
    C10_HOST_DEVICE PtrType data() const;
    C10_HOST_DEVICE I size(I) const;
    C10_HOST_DEVICE I stride(I) const;
    C10_HOST_DEVICE TensorAccessor<T, N - 1, P, I> operator[](I) const;
};
template <class T, template <class> class P, class I>
class TensorAccessor<T, 1, P, I> {
public:
    typedef typename P<T>::PtrType PtrType;
    C10_HOST_DEVICE PtrType data() const;
    C10_HOST_DEVICE I size(I) const;
    C10_HOST_DEVICE I stride(I) const;
    C10_HOST_DEVICE T& operator[](I) const;
};
template <class T, size_t N, template <class> class P = DefaultPtrTraits, class I = int64_t>
class GenericPackedTensorAccessor : public TensorAccessor<T, N, P, I> {};
template <class T, size_t N, template <class> class P = DefaultPtrTraits>
using PackedTensorAccessor = GenericPackedTensorAccessor<T, N, P, int64_t>;
template <class T, size_t N, template <class> class P = DefaultPtrTraits>
using PackedTensorAccessor32 = GenericPackedTensorAccessor<T, N, P, int32_t>;
template <class T, size_t N, template <class> class P = DefaultPtrTraits>
using PackedTensorAccessor64 = GenericPackedTensorAccessor<T, N, P, int64_t>;

struct DeprecatedTypeProperties {
    ScalarType scalarType() const;
    bool is_cuda() const;
    bool is_sparse() const;
    Device device() const;
    operator TensorOptions() const;
    operator ScalarType() const;
};
using Type = DeprecatedTypeProperties;

class TensorBase {
public:
    int64_t dim() const;
    int64_t ndimension() const;
    int64_t numel() const;
    int64_t size(int64_t) const;
    int64_t stride(int64_t) const;
    IntArrayRef sizes() const;
    IntArrayRef strides() const;
    SymIntArrayRef sym_sizes() const;
    size_t nbytes() const;
    int64_t element_size() const;
    size_t itemsize() const;
    int64_t storage_offset() const;
    ScalarType scalar_type() const;
    caffe2::TypeMeta dtype() const;
    Device device() const;
    int64_t get_device() const;
    Layout layout() const;
    TensorOptions options() const;
    DispatchKeySet key_set() const;
    bool defined() const;
    bool has_storage() const;
    bool is_cuda() const;
    bool is_cpu() const;
    bool is_xpu() const;
    bool is_hpu() const;
    bool is_sparse() const;
    bool is_contiguous(MemoryFormat = MemoryFormat::Contiguous) const;
    bool is_non_overlapping_and_dense() const;
    bool is_complex() const;
    bool is_floating_point() const;
    bool is_quantized() const;
    bool is_leaf() const;
    bool is_same(const TensorBase&) const;
    bool is_alias_of(const TensorBase&) const;
    bool is_mkldnn() const;
    bool is_meta() const;
    bool is_pinned() const;
    bool requires_grad() const;
    void* data_ptr() const;
    const void* const_data_ptr() const;
    void* mutable_data_ptr() const;
    template <class T> T* data_ptr() const;
    template <class T> const T* const_data_ptr() const;
    template <class T> T* mutable_data_ptr() const;
    const Storage& storage() const;
    TensorImpl* unsafeGetTensorImpl() const;
    MemoryFormat suggest_memory_format() const;
    template <class T, size_t N> TensorAccessor<T, N> accessor() const;
    template <class T, size_t N, template <class> class P = DefaultPtrTraits>
    PackedTensorAccessor32<T, N, P> packed_accessor32() const;
    template <class T, size_t N, template <class> class P = DefaultPtrTraits>
    PackedTensorAccessor64<T, N, P> packed_accessor64() const;
    template <class T, size_t N, template <class> class P = DefaultPtrTraits, class I = int64_t>
    GenericPackedTensorAccessor<T, N, P, I> packed_accessor() const;
};

class Tensor : public TensorBase {
public:
    Tensor() = default;
    Tensor(const Tensor&) = default;
    Tensor(Tensor&&) = default;
    Tensor& operator=(const Tensor&) & = default;
    Tensor& operator=(Tensor&&) & = default;
    Tensor& operator=(const Tensor&) &&;
    Tensor& operator=(const Scalar&) &&;
    explicit Tensor(TensorBase);

    DeprecatedTypeProperties type() const;
    DeprecatedTypeProperties toBackend() const;
    template <class T> T item() const;
    Scalar item() const;
    template <class T> T* data() const;
    Tensor data() const;
    Tensor tensor_data() const;
    Tensor variable_data() const;
    void set_data(const Tensor&) const;
    const Tensor& grad() const;
    Tensor& mutable_grad() const;
    const Tensor& requires_grad_(bool = true) const;
    const Tensor& set_requires_grad(bool) const;
    void retain_grad() const;
    void backward(const Tensor& gradient = {}, std::optional<bool> retain_graph = std::nullopt,
        bool create_graph = false, std::optional<TensorList> inputs = std::nullopt) const;
    template <class F> unsigned register_hook(F&&) const MP_NO_BODY
    int64_t _version() const;
    void reset();

    Tensor to(TensorOptions, bool non_blocking = false, bool copy = false,
        std::optional<MemoryFormat> = std::nullopt) const;
    Tensor to(std::optional<ScalarType> dtype, std::optional<Layout>, std::optional<Device>,
        std::optional<bool>, bool, bool, std::optional<MemoryFormat>) const;
    Tensor to(Device, ScalarType, bool non_blocking = false, bool copy = false,
        std::optional<MemoryFormat> = std::nullopt) const;
    Tensor to(ScalarType, bool non_blocking = false, bool copy = false,
        std::optional<MemoryFormat> = std::nullopt) const;
    Tensor to(const Tensor& other, bool non_blocking = false, bool copy = false,
        std::optional<MemoryFormat> = std::nullopt) const;
    Tensor toType(ScalarType) const;
    Tensor type_as(const Tensor&) const;
    Tensor cpu() const;
    Tensor cuda() const;
    Tensor hip() const;
    Tensor contiguous(MemoryFormat = MemoryFormat::Contiguous) const;
    Tensor to_dense() const;
    Tensor pin_memory() const;
    Tensor& copy_(const Tensor& src, bool non_blocking = false) const;
    Tensor& set_(const Tensor&) const;
    Tensor& zero_() const;
    Tensor& resize_(IntArrayRef) const;
    Tensor& resize_as_(const Tensor&) const;
    Tensor& swap_(Tensor&) const;
    Tensor& normal_(double mean = 0, double std = 1, std::optional<Generator> = std::nullopt) const;
    Tensor& uniform_(double from = 0, double to = 1, std::optional<Generator> = std::nullopt) const;
    Tensor& random_(std::optional<Generator> = std::nullopt) const;
    Tensor& exponential_(double = 1) const;
    Tensor& bernoulli_(double p = 0.5, std::optional<Generator> = std::nullopt) const;
    Tensor& index_put_(std::initializer_list<indexing::TensorIndex>, const Tensor&);
    Tensor& index_put_(std::initializer_list<indexing::TensorIndex>, const Scalar&);
    Tensor& index_put_(const std::vector<std::optional<Tensor>>&, const Tensor&, bool accumulate = false) const;
    Tensor index_put(const std::vector<std::optional<Tensor>>&, const Tensor&, bool accumulate = false) const;
    Tensor index(std::initializer_list<indexing::TensorIndex>) const;
    Tensor index(ArrayRef<indexing::TensorIndex>) const;
    Tensor index(const std::vector<std::optional<Tensor>>&) const;
    Tensor new_zeros(IntArrayRef, TensorOptions = {}) const;
    Tensor new_empty(IntArrayRef, TensorOptions = {}) const;
    Tensor new_ones(IntArrayRef, TensorOptions = {}) const;
    Tensor new_full(IntArrayRef, const Scalar&, TensorOptions = {}) const;
    Tensor sum_to_size(IntArrayRef) const;
    Tensor where(const Tensor& condition, const Scalar& other) const;
    bool is_nonzero() const;
    Tensor coalesce() const;
    bool is_coalesced() const;
    Tensor _values() const;
    Tensor _indices() const;
    Tensor values() const;
    Tensor indices() const;
    std::string toString() const;
    void print() const;

    Tensor operator~() const;
    Tensor operator-() const;
    Tensor& operator+=(const Tensor&);
    Tensor& operator+=(const Scalar&);
    Tensor& operator-=(const Tensor&);
    Tensor& operator-=(const Scalar&);
    Tensor& operator*=(const Tensor&);
    Tensor& operator*=(const Scalar&);
    Tensor& operator/=(const Tensor&);
    Tensor& operator/=(const Scalar&);
    Tensor& operator|=(const Tensor&);
    Tensor& operator&=(const Tensor&);
    Tensor operator[](const Scalar&) const;
    Tensor operator[](const Tensor&) const;
    Tensor operator[](int64_t) const;

#define MP_OP(R, name, ...) R name(__VA_ARGS__) const;
#define MP_OP_(R, name, ...) R name(__VA_ARGS__) const; Tensor& name##_(__VA_ARGS__) const;
#define MP_IN(name, ...) Tensor& name##_(__VA_ARGS__) const;
#define MP_FN(...)
#include "mp_ops.inc"
#undef MP_OP
#undef MP_OP_
#undef MP_IN
#undef MP_FN
};
std::ostream& operator<<(std::ostream&, const Tensor&);

#define MP_OP(R, name, ...) R name(const Tensor& self __VA_OPT__(,) __VA_ARGS__);
#define MP_OP_(R, name, ...) \
    R name(const Tensor& self __VA_OPT__(,) __VA_ARGS__); Tensor& name##_(Tensor& self __VA_OPT__(,) __VA_ARGS__);
#define MP_IN(name, ...) Tensor& name##_(Tensor& self __VA_OPT__(,) __VA_ARGS__);
#define MP_FN(R, name, ...) R name(__VA_ARGS__);
#include "mp_ops.inc"
#undef MP_OP
#undef MP_OP_
#undef MP_IN
#undef MP_FN

#define MP_ARITHMETIC(op) \
    Tensor operator op(const Tensor&, const Tensor&); \
    Tensor operator op(const Tensor&, const Scalar&); \
    Tensor operator op(const Scalar&, const Tensor&);
MP_ARITHMETIC(+) MP_ARITHMETIC(-) MP_ARITHMETIC(*) MP_ARITHMETIC(/) MP_ARITHMETIC(%) MP_ARITHMETIC(&)
MP_ARITHMETIC(|) MP_ARITHMETIC(^) MP_ARITHMETIC(<) MP_ARITHMETIC(<=) MP_ARITHMETIC(>) MP_ARITHMETIC(>=)
MP_ARITHMETIC(==) MP_ARITHMETIC(!=)
#undef MP_ARITHMETIC

// Factories, in at and again in torch, as in the library.
#define MP_FACTORIES \
    Tensor empty(IntArrayRef, TensorOptions = {}, std::optional<MemoryFormat> = std::nullopt); \
    Tensor zeros(IntArrayRef, TensorOptions = {}); \
    Tensor ones(IntArrayRef, TensorOptions = {}); \
    Tensor full(IntArrayRef, const Scalar&, TensorOptions = {}); \
    Tensor rand(IntArrayRef, TensorOptions = {}); \
    Tensor randn(IntArrayRef, TensorOptions = {}); \
    Tensor randint(int64_t, IntArrayRef, TensorOptions = {}); \
    Tensor randint(int64_t, int64_t, IntArrayRef, TensorOptions = {}); \
    Tensor randperm(int64_t, TensorOptions = {}); \
    Tensor arange(const Scalar&, TensorOptions = {}); \
    Tensor arange(const Scalar&, const Scalar&, TensorOptions = {}); \
    Tensor arange(const Scalar&, const Scalar&, const Scalar&, TensorOptions = {}); \
    Tensor linspace(const Scalar&, const Scalar&, int64_t, TensorOptions = {}); \
    Tensor logspace(const Scalar&, const Scalar&, int64_t, double = 10, TensorOptions = {}); \
    Tensor eye(int64_t, TensorOptions = {}); \
    Tensor eye(int64_t, int64_t, TensorOptions = {}); \
    Tensor scalar_tensor(const Scalar&, TensorOptions = {}); \
    Tensor hann_window(int64_t, TensorOptions = {}); \
    Tensor hamming_window(int64_t, TensorOptions = {}); \
    Tensor empty_strided(IntArrayRef, IntArrayRef, TensorOptions = {}); \
    Tensor empty_like(const Tensor&, TensorOptions = {}, std::optional<MemoryFormat> = std::nullopt); \
    Tensor zeros_like(const Tensor&, TensorOptions = {}, std::optional<MemoryFormat> = std::nullopt); \
    Tensor ones_like(const Tensor&, TensorOptions = {}, std::optional<MemoryFormat> = std::nullopt); \
    Tensor full_like(const Tensor&, const Scalar&, TensorOptions = {}, std::optional<MemoryFormat> = std::nullopt); \
    Tensor rand_like(const Tensor&, TensorOptions = {}, std::optional<MemoryFormat> = std::nullopt); \
    Tensor randn_like(const Tensor&, TensorOptions = {}, std::optional<MemoryFormat> = std::nullopt); \
    Tensor normal(double, double, IntArrayRef, std::optional<Generator> = std::nullopt, TensorOptions = {}); \
    Tensor from_blob(void*, IntArrayRef, TensorOptions = {}); \
    Tensor from_blob(void*, IntArrayRef, IntArrayRef, TensorOptions = {}); \
    Tensor from_blob(void*, IntArrayRef, const std::function<void(void*)>&, TensorOptions = {});
MP_FACTORIES
#define MP_TENSOR_OF(T) Tensor tensor(ArrayRef<T>, TensorOptions = {}); Tensor tensor(T, TensorOptions = {});
MP_TENSOR_OF(float) MP_TENSOR_OF(double) MP_TENSOR_OF(int) MP_TENSOR_OF(int64_t) MP_TENSOR_OF(uint8_t) MP_TENSOR_OF(Half) MP_TENSOR_OF(BFloat16)

void native_set_(Tensor&);
bool _has_compatible_shallow_copy_type(const Tensor&, const Tensor&);
ScalarType result_type(const Tensor&, const Tensor&);
bool is_floating_point(const Tensor&);
bool can_cast(ScalarType, ScalarType);
int64_t numel(const Tensor&);
Tensor& sum_out(Tensor&, const Tensor&, OptionalIntArrayRef, bool = false, OptDtype = std::nullopt);
Tensor& mm_out(Tensor&, const Tensor&, const Tensor&);
Tensor& matmul_out(Tensor&, const Tensor&, const Tensor&);
Tensor& add_out(Tensor&, const Tensor&, const Tensor&, const Scalar& = 1);
Tensor& cat_out(Tensor&, TensorList, int64_t = 0);
void _amp_foreach_non_finite_check_and_unscale_(TensorList, Tensor&, const Tensor&);
Tensor& _amp_update_scale_(Tensor&, Tensor&, const Tensor&, double, double, int64_t);
std::vector<Tensor> _foreach_norm(TensorList, const Scalar& = 2);
void _foreach_mul_(TensorList, const Scalar&);
void _foreach_add_(TensorList, TensorList, const Scalar& = 1);
void manual_seed(uint64_t);
int get_num_threads();
void set_num_threads(int);
void set_num_interop_threads(int);
bool hasCUDA();
bool hasXLA();
bool hasMPS();
template <class F> void parallel_for(int64_t, int64_t, int64_t, const F&) MP_NO_BODY
std::vector<Tensor> broadcast_tensors(TensorList);
std::vector<Tensor> split_with_sizes(const Tensor&, IntArrayRef, int64_t = 0);
IntArrayRef infer_size(IntArrayRef, IntArrayRef);
std::vector<int64_t> expand_inferred(IntArrayRef);

struct Context {
    bool allowTF32CuBLAS() const;
    void setAllowTF32CuBLAS(bool);
    void setAllowTF32CuDNN(bool);
    void setAllowFP16ReductionCuBLAS(bool);
    void setAllowBF16ReductionCuBLAS(bool);
    void setBenchmarkCuDNN(bool);
    void setDeterministicCuDNN(bool);
    void setFloat32MatmulPrecision(const std::string&);
};
Context& globalContext();

std::optional<Device> device_of(const Tensor&);
std::optional<Device> device_of(TensorList);
struct DeviceGuard { explicit DeviceGuard(Device); ~DeviceGuard(); };
struct OptionalDeviceGuard {
    explicit OptionalDeviceGuard(std::optional<Device> = std::nullopt);
    ~OptionalDeviceGuard();
};
struct AutoNonVariableTypeMode { explicit AutoNonVariableTypeMode(bool = true); ~AutoNonVariableTypeMode(); };
struct AutoDispatchBelowAutograd { AutoDispatchBelowAutograd(); ~AutoDispatchBelowAutograd(); };
struct AutoDispatchBelowADInplaceOrView { AutoDispatchBelowADInplaceOrView(); ~AutoDispatchBelowADInplaceOrView(); };
struct AutoGradMode { explicit AutoGradMode(bool); ~AutoGradMode(); };
struct NoGradGuard : AutoGradMode { NoGradGuard(); };
struct GradMode { static bool is_enabled(); static void set_enabled(bool); };

struct TensorArg { Tensor tensor; const char* name; int pos; };
using CheckedFrom = const char*;
void checkAllSameGPU(CheckedFrom, ArrayRef<TensorArg>);

c10::optional<c10::Device> device_of(const Tensor&);
}  // namespace at
namespace c10 { using at::GradMode; using at::NoGradGuard; }

namespace c10 {
class IValue {
public:
    IValue();
    template <class T> IValue(T);
    at::Tensor toTensor() const;
    double toDouble() const;
    int64_t toInt() const;
    bool toBool() const;
    bool isTensor() const;
    std::string toStringRef() const;
    std::vector<at::Tensor> toTensorVector() const;
    std::vector<int64_t> toIntVector() const;
    c10::List<int64_t> toIntList() const;
    c10::List<double> toDoubleList() const;
    c10::List<at::Tensor> toTensorList() const;
    bool isNone() const;
    bool isInt() const;
    bool isDouble() const;
    bool isBool() const;
    template <class T> T to() const;
};
}  // namespace c10

// A type chosen at run time, instantiated once per case.
#define AT_PRIVATE_CASE_TYPE_USING_HINT(S, hint, ...) \
    case S: { \
        using hint [[maybe_unused]] = ::c10::impl::ScalarTypeToCPPTypeT<S>; \
        return __VA_ARGS__(); \
    }
#define AT_DISPATCH_CASE(S, ...) AT_PRIVATE_CASE_TYPE_USING_HINT(S, scalar_t, __VA_ARGS__)
#define AT_PRIVATE_CASE_TYPE(NAME, S, T, ...) AT_DISPATCH_CASE(S, __VA_ARGS__)
#define AT_DISPATCH_SWITCH(TYPE, NAME, ...) \
    [&] { \
        const auto& mp_type = TYPE; \
        constexpr const char* at_dispatch_name [[maybe_unused]] = NAME; \
        const at::ScalarType _st = ::detail::scalar_type(mp_type); \
        switch (_st) { \
            __VA_ARGS__ \
            default: AT_ERROR(at_dispatch_name, " not implemented for '", toString(_st), "'"); \
        } \
    }()
namespace detail {
inline at::ScalarType scalar_type(at::ScalarType s) { return s; }
inline at::ScalarType scalar_type(const at::DeprecatedTypeProperties& t) { return t.scalarType(); }
inline at::ScalarType scalar_type(const caffe2::TypeMeta& t) { return t.toScalarType(); }
}  // namespace detail
#define MP_CASES_FLOATING(...) \
    AT_DISPATCH_CASE(at::ScalarType::Double, __VA_ARGS__) AT_DISPATCH_CASE(at::ScalarType::Float, __VA_ARGS__)
#define MP_CASES_INTEGRAL(...) \
    AT_DISPATCH_CASE(at::ScalarType::Byte, __VA_ARGS__) AT_DISPATCH_CASE(at::ScalarType::Char, __VA_ARGS__) \
    AT_DISPATCH_CASE(at::ScalarType::Int, __VA_ARGS__) AT_DISPATCH_CASE(at::ScalarType::Long, __VA_ARGS__) \
    AT_DISPATCH_CASE(at::ScalarType::Short, __VA_ARGS__)
#define MP_CASES_ALL(...) MP_CASES_INTEGRAL(__VA_ARGS__) MP_CASES_FLOATING(__VA_ARGS__)
#define MP_CASES_COMPLEX(...) \
    AT_DISPATCH_CASE(at::ScalarType::ComplexDouble, __VA_ARGS__) AT_DISPATCH_CASE(at::ScalarType::ComplexFloat, __VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_TYPES(...) MP_CASES_FLOATING(__VA_ARGS__)
#define AT_DISPATCH_CASE_INTEGRAL_TYPES(...) MP_CASES_INTEGRAL(__VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES(...) MP_CASES_ALL(__VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES(TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, MP_CASES_FLOATING(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(TYPE, NAME, ...) \
    AT_DISPATCH_SWITCH(TYPE, NAME, MP_CASES_FLOATING(__VA_ARGS__) AT_DISPATCH_CASE(at::ScalarType::Half, __VA_ARGS__))
#define AT_DISPATCH_REDUCED_FLOATING_TYPES(TYPE, NAME, ...) \
    AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE(at::ScalarType::Half, __VA_ARGS__) AT_DISPATCH_CASE(at::ScalarType::BFloat16, __VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES(TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, MP_CASES_INTEGRAL(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES(TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, MP_CASES_ALL(__VA_ARGS__))
#define AT_DISPATCH_INDEX_TYPES(TYPE, NAME, ...) \
    AT_DISPATCH_SWITCH(TYPE, NAME, AT_PRIVATE_CASE_TYPE_USING_HINT(at::ScalarType::Int, index_t, __VA_ARGS__) \
        AT_PRIVATE_CASE_TYPE_USING_HINT(at::ScalarType::Long, index_t, __VA_ARGS__))
#define MP_AND1(A, ...) AT_DISPATCH_CASE(A, __VA_ARGS__)
#define MP_AND2(A, B, ...) MP_AND1(A, __VA_ARGS__) AT_DISPATCH_CASE(B, __VA_ARGS__)
#define MP_AND3(A, B, C, ...) MP_AND2(A, B, __VA_ARGS__) AT_DISPATCH_CASE(C, __VA_ARGS__)
#define MP_AND4(A, B, C, D, ...) MP_AND3(A, B, C, __VA_ARGS__) AT_DISPATCH_CASE(D, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND(A, TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, MP_CASES_FLOATING(__VA_ARGS__) MP_AND1(A, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND2(A, B, TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, MP_CASES_FLOATING(__VA_ARGS__) MP_AND2(A, B, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND3(A, B, C, TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, MP_CASES_FLOATING(__VA_ARGS__) MP_AND3(A, B, C, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND4(A, B, C, D, TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, MP_CASES_FLOATING(__VA_ARGS__) MP_AND4(A, B, C, D, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND(A, TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, MP_CASES_ALL(__VA_ARGS__) MP_AND1(A, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND2(A, B, TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, MP_CASES_ALL(__VA_ARGS__) MP_AND2(A, B, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND3(A, B, C, TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, MP_CASES_ALL(__VA_ARGS__) MP_AND3(A, B, C, __VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES_AND(A, TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, MP_CASES_INTEGRAL(__VA_ARGS__) MP_AND1(A, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES(TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, MP_CASES_FLOATING(__VA_ARGS__) MP_CASES_COMPLEX(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND1(A, TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, MP_CASES_FLOATING(__VA_ARGS__) MP_CASES_COMPLEX(__VA_ARGS__) MP_AND1(A, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND2(A, B, TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, MP_CASES_FLOATING(__VA_ARGS__) MP_CASES_COMPLEX(__VA_ARGS__) MP_AND2(A, B, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX(TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, MP_CASES_ALL(__VA_ARGS__) MP_CASES_COMPLEX(__VA_ARGS__))

// The variadic form: AT_DISPATCH_V2(type, name, AT_WRAP(lambda), AT_EXPAND(AT_FLOATING_TYPES), kHalf, ...).
#define AT_WRAP(...) __VA_ARGS__
#define AT_EXPAND(X) X
#define AT_FLOATING_TYPES at::ScalarType::Double, at::ScalarType::Float
#define AT_INTEGRAL_TYPES at::ScalarType::Byte, at::ScalarType::Char, at::ScalarType::Int, at::ScalarType::Long, at::ScalarType::Short
#define AT_ALL_TYPES AT_EXPAND(AT_INTEGRAL_TYPES), AT_EXPAND(AT_FLOATING_TYPES)
#define AT_DISPATCH_V2(TYPE, NAME, BODY, ...) \
    [&] { \
        auto mp_body = [&](auto mp_tag) { \
            using scalar_t [[maybe_unused]] = decltype(mp_tag); \
            return (BODY)(); \
        }; \
        const at::ScalarType _st = ::detail::scalar_type(TYPE); \
        return ::detail::mp_dispatch<__VA_ARGS__>(_st, mp_body); \
    }()
namespace detail {
template <at::ScalarType... S, class F> auto mp_dispatch(at::ScalarType s, F& f) {
    ((s == S ? (void)f(::c10::impl::ScalarTypeToCPPTypeT<S>{}) : (void)0), ...);
}
}  // namespace detail
