// at::Tensor, its methods and the free functions of at:: and torch::.
#pragma once

#include "mp_torch_types.h"

namespace at {

using namespace c10;
class Tensor;
class Generator;
using TensorList = ArrayRef<Tensor>;
using ITensorListRef = ArrayRef<Tensor>;
enum class TypeKind { any };

namespace indexing {
struct Slice {
    Slice(optional<int64_t> start = {}, optional<int64_t> stop = {}, optional<int64_t> step = {});
};
struct EllipsisIndexType {};
inline constexpr EllipsisIndexType Ellipsis{};
inline constexpr std::nullopt_t None = std::nullopt;
struct TensorIndex {
    TensorIndex(std::nullopt_t);
    TensorIndex(EllipsisIndexType);
    TensorIndex(const char*);
    TensorIndex(int64_t);
    TensorIndex(int);
    TensorIndex(bool);
    TensorIndex(Slice);
    TensorIndex(const Tensor&);
};
}  // namespace indexing

template <typename T> struct RestrictPtrTraits { using PtrType = T* __restrict__; };
template <typename T> struct DefaultPtrTraits { using PtrType = T*; };

template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits, typename Index = int64_t>
class TensorAccessor {
public:
    using PtrType = typename Traits<T>::PtrType;
    C10_HOST_DEVICE TensorAccessor<T, N - 1, Traits, Index> operator[](Index) const;
    C10_HOST_DEVICE Index size(Index) const;
    C10_HOST_DEVICE Index stride(Index) const;
    C10_HOST_DEVICE PtrType data() const;
};
template <typename T, template <typename> class Traits, typename Index>
class TensorAccessor<T, 1, Traits, Index> {
public:
    using PtrType = typename Traits<T>::PtrType;
    C10_HOST_DEVICE T& operator[](Index) const;
    C10_HOST_DEVICE Index size(Index) const;
    C10_HOST_DEVICE Index stride(Index) const;
    C10_HOST_DEVICE PtrType data() const;
};
template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits, typename Index = int64_t>
class GenericPackedTensorAccessor : public TensorAccessor<T, N, Traits, Index> {};
template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits>
using PackedTensorAccessor32 = GenericPackedTensorAccessor<T, N, Traits, int32_t>;
template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits>
using PackedTensorAccessor64 = GenericPackedTensorAccessor<T, N, Traits, int64_t>;
template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits, typename Index = int64_t>
using PackedTensorAccessor = GenericPackedTensorAccessor<T, N, Traits, Index>;

class TensorImpl;
struct Storage {
    size_t nbytes() const;
    void* data() const;
};
class DeprecatedTypeProperties {
public:
    operator ScalarType() const;
    ScalarType scalarType() const;
    bool is_cuda() const;
    bool operator==(const DeprecatedTypeProperties&) const;
};

// Ops that exist as methods and as functions. Braces as the first argument mean sizes or dimensions.
#define MP_TORCH_OPS(F)                                                                              \
    F(abs) F(acos) F(add) F(addbmm) F(addcdiv) F(addcmul) F(addmm) F(addmv) F(addr) F(all) F(amax)    \
    F(amin) F(aminmax) F(any) F(argmax) F(argmin) F(argsort) F(asin) F(atan) F(atan2) F(baddbmm)      \
    F(bernoulli) F(bitwise_and) F(bitwise_not) F(bitwise_or) F(bmm) F(ceil) F(cholesky) F(clamp)      \
    F(clamp_max) F(clamp_min) F(clip) F(clone) F(cos) F(cosh) F(cross) F(cummax) F(cumprod) F(cumsum) \
    F(det) F(detach) F(diag) F(diagonal) F(diff) F(dist) F(div) F(divide) F(dot) F(eq) F(erf) F(erfc) \
    F(erfinv) F(exp) F(exp2) F(expm1) F(flatten) F(flip) F(floor) F(floor_divide) F(fmod) F(frac)     \
    F(gather) F(ge) F(gt) F(hardshrink) F(histc) F(index_add) F(index_copy) F(index_fill)             \
    F(index_put) F(index_select) F(inner) F(inverse) F(isfinite) F(isinf) F(isnan) F(kthvalue)        \
    F(le) F(lerp) F(lgamma) F(log) F(log10) F(log1p) F(log2) F(log_softmax) F(logaddexp)              \
    F(logcumsumexp) F(logical_and) F(logical_not) F(logical_or) F(logit) F(logsumexp) F(lt)           \
    F(lu_solve) F(masked_fill) F(masked_scatter) F(masked_select) F(matmul) F(matrix_exp) F(max)      \
    F(maximum) F(mean) F(median) F(min) F(minimum) F(mm) F(movedim) F(msort) F(mul) F(multinomial)    \
    F(multiply) F(mv) F(nan_to_num) F(nanmean) F(nanmedian) F(nanquantile) F(nansum) F(narrow)        \
    F(ne) F(neg) F(nonzero) F(norm) F(ormqr) F(outer) F(permute) F(pinverse) F(polygamma) F(pow)      \
    F(prelu) F(prod) F(qr) F(quantile) F(reciprocal) F(relu) F(remainder) F(renorm)                   \
    F(repeat_interleave) F(reshape) F(roll) F(rot90) F(round) F(rsqrt) F(rsub) F(scatter)             \
    F(scatter_add) F(scatter_reduce) F(select) F(sigmoid) F(sign) F(sin) F(sinh) F(slogdet) F(softmax) \
    F(sort) F(sqrt) F(square) F(squeeze) F(std) F(stft) F(istft) F(sub) F(subtract) F(sum) F(svd)      \
    F(swapaxes) F(t) F(take) F(tan) F(tanh) F(tensordot) F(tile) F(topk) F(trace) F(transpose)         \
    F(triangular_solve) F(tril) F(triu) F(true_divide) F(trunc) F(unfold) F(unsqueeze) F(var) F(vdot)  \
    F(where) F(xlogy)

#define MP_TORCH_INPLACE_OPS(F)                                                                       \
    F(abs_) F(add_) F(addbmm_) F(addcdiv_) F(addcmul_) F(addmm_) F(addmv_) F(addr_) F(baddbmm_)        \
    F(bernoulli_) F(clamp_) F(clamp_max_) F(clamp_min_) F(copy_) F(cumsum_) F(detach_) F(div_) F(exp_) \
    F(fill_) F(floor_) F(index_add_) F(index_copy_) F(index_fill_) F(index_put_) F(lerp_) F(log_)      \
    F(masked_fill_) F(masked_scatter_) F(mul_) F(nan_to_num_) F(neg_) F(normal_) F(pow_)               \
    F(reciprocal_) F(relu_) F(renorm_) F(requires_grad_) F(resize_) F(round_) F(rsqrt_) F(scatter_)    \
    F(scatter_add_) F(set_) F(sigmoid_) F(sqrt_) F(square_) F(squeeze_) F(sub_) F(swap_) F(tanh_)      \
    F(transpose_) F(tril_) F(triu_) F(true_divide_) F(uniform_) F(unsqueeze_) F(zero_) F(t_)           \
    F(random_) F(exponential_) F(fill_diagonal_) F(resize_as_) F(erf_) F(sin_) F(cos_) F(clip_)

// Functions only. Losses, layers and what lives outside Tensor.
#define MP_TORCH_FUNCTIONS(F)                                                                          \
    F(adaptive_avg_pool1d) F(adaptive_avg_pool2d) F(avg_pool1d) F(avg_pool2d) F(avg_pool3d)            \
    F(batch_norm) F(bilinear) F(binary_cross_entropy) F(binary_cross_entropy_with_logits)              \
    F(block_diag) F(bucketize) F(cartesian_prod) F(cdist) F(celu) F(chain_matmul) F(conv1d) F(conv2d)  \
    F(conv3d) F(conv_tbc) F(conv_transpose1d) F(conv_transpose2d) F(conv_transpose3d) F(convolution)   \
    F(cosine_embedding_loss) F(cosine_similarity) F(cross_entropy_loss) F(ctc_loss) F(dropout)          \
    F(einsum) F(elu) F(embedding) F(embedding_bag) F(fft_fft) F(fft_ifft) F(fft_irfft) F(fft_rfft)     \
    F(frobenius_norm) F(gelu) F(glu) F(grid_sampler) F(group_norm) F(gru_cell) F(hardsigmoid)           \
    F(hardswish) F(hinge_embedding_loss) F(huber_loss) F(instance_norm) F(kl_div) F(l1_loss)            \
    F(layer_norm) F(leaky_relu) F(linalg_cholesky) F(linalg_inv) F(linalg_matrix_norm) F(linalg_norm)   \
    F(linalg_qr) F(linalg_solve) F(linalg_svd) F(linalg_vector_norm) F(linear) F(lstm_cell)             \
    F(margin_ranking_loss) F(max_pool1d) F(max_pool2d) F(max_pool3d) F(meshgrid) F(mish) F(mse_loss)     \
    F(multi_margin_loss) F(multilabel_margin_loss) F(native_layer_norm) F(nll_loss) F(nll_loss2d)        \
    F(nuclear_norm) F(one_hot) F(pad) F(pairwise_distance) F(pdist) F(pixel_shuffle) F(poisson_nll_loss) \
    F(rms_norm) F(rnn_relu_cell) F(rnn_tanh_cell) F(scaled_dot_product_attention) F(selu) F(silu)        \
    F(smooth_l1_loss) F(soft_margin_loss) F(softplus) F(softshrink) F(std_mean) F(triplet_margin_loss)   \
    F(upsample_bilinear2d) F(upsample_nearest2d) F(var_mean) F(segment_reduce) F(polar) F(log_sigmoid)   \
    F(_amp_update_scale_) F(_amp_foreach_non_finite_check_and_unscale_) F(_softmax) F(_log_softmax)      \
    F(_foreach_add_) F(_foreach_mul_) F(_foreach_norm) F(native_batch_norm) F(dropout_) F(searchsorted)  \
    F(celu_) F(isclose) F(allclose) F(equal) F(tensor_split) F(vander) F(cumulative_trapezoid)

class Tensor {
public:
    Tensor();
    Tensor(const Tensor&);
    Tensor(Tensor&&) noexcept;
    Tensor& operator=(const Tensor&);
    Tensor& operator=(Tensor&&) noexcept;
    Tensor& operator=(const Scalar&);
    ~Tensor();

    int64_t dim() const;
    int64_t ndimension() const;
    int64_t numel() const;
    int64_t size(int64_t) const;
    int64_t stride(int64_t) const;
    IntArrayRef sizes() const;
    IntArrayRef strides() const;
    int64_t storage_offset() const;
    int64_t element_size() const;
    int64_t itemsize() const;
    size_t nbytes() const;
    ScalarType scalar_type() const;
    ScalarType dtype() const;
    DeprecatedTypeProperties type() const;
    TensorOptions options() const;
    Device device() const;
    int64_t get_device() const;
    Layout layout() const;
    bool defined() const;
    bool has_storage() const;
    const Storage& storage() const;
    bool is_cuda() const;
    bool is_cpu() const;
    bool is_sparse() const;
    bool is_contiguous(MemoryFormat = MemoryFormat::Contiguous) const;
    bool is_floating_point() const;
    bool is_complex() const;
    bool is_leaf() const;
    bool is_same(const Tensor&) const;
    bool is_alias_of(const Tensor&) const;
    bool requires_grad() const;
    bool equal(const Tensor&) const;
    bool allclose(const Tensor&, double rtol = 1e-5, double atol = 1e-8, bool nan = false) const;
    MemoryFormat suggest_memory_format() const;
    TensorImpl* unsafeGetTensorImpl() const;
    void reset();
    Generator* generator() const;

    template <typename T> T item() const;
    Scalar item() const;
    template <typename T> T* data_ptr() const;
    void* data_ptr() const;
    template <typename T> const T* const_data_ptr() const;
    const void* const_data_ptr() const;
    template <typename T> T* mutable_data_ptr() const;
    void* mutable_data_ptr() const;
    template <typename T> T* data() const;
    Tensor data() const;
    template <typename T, size_t N> TensorAccessor<T, N> accessor() const;
    template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits>
    PackedTensorAccessor32<T, N, Traits> packed_accessor32() const;
    template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits>
    PackedTensorAccessor64<T, N, Traits> packed_accessor64() const;
    template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits, typename Index = int64_t>
    GenericPackedTensorAccessor<T, N, Traits, Index> packed_accessor() const;

    Tensor to(ScalarType, bool non_blocking = false, bool copy = false, optional<MemoryFormat> = {}) const;
    Tensor to(Device, ScalarType, bool non_blocking = false, bool copy = false, optional<MemoryFormat> = {}) const;
    Tensor to(DeviceType, bool non_blocking = false) const;
    Tensor to(Device, bool non_blocking = false) const;
    Tensor to(const TensorOptions&, bool non_blocking = false, bool copy = false, optional<MemoryFormat> = {}) const;
    Tensor to(const Tensor&, bool non_blocking = false, bool copy = false, optional<MemoryFormat> = {}) const;
    Tensor toType(ScalarType) const;
    Tensor type_as(const Tensor&) const;
    Tensor to_dense() const;
    Tensor cpu() const;
    Tensor cuda() const;
    Tensor contiguous(MemoryFormat = MemoryFormat::Contiguous) const;
    Tensor view(IntArrayRef) const;
    Tensor view(ScalarType) const;
    Tensor view_as(const Tensor&) const;
    Tensor reshape_as(const Tensor&) const;
    Tensor expand(IntArrayRef, bool implicit = false) const;
    Tensor expand_as(const Tensor&) const;
    Tensor repeat(IntArrayRef) const;
    Tensor as_strided(IntArrayRef, IntArrayRef, optional<int64_t> = {}) const;
    Tensor slice(int64_t dim = 0, optional<int64_t> start = {}, optional<int64_t> end = {}, int64_t step = 1) const;
    Tensor alias() const;
    Tensor mT() const;
    Tensor new_empty(IntArrayRef, TensorOptions = {}) const;
    Tensor new_zeros(IntArrayRef, TensorOptions = {}) const;
    Tensor new_ones(IntArrayRef, TensorOptions = {}) const;
    Tensor new_full(IntArrayRef, const Scalar&, TensorOptions = {}) const;
    Tensor coalesce() const;
    Tensor indices() const;
    Tensor values() const;
    Tensor _values() const;
    Tensor _indices() const;
    std::vector<Tensor> chunk(int64_t, int64_t = 0) const;
    std::vector<Tensor> split(int64_t, int64_t = 0) const;
    std::vector<Tensor> split(IntArrayRef, int64_t = 0) const;
    std::vector<Tensor> unbind(int64_t = 0) const;
    Tensor index(std::initializer_list<indexing::TensorIndex>) const;
    Tensor index(ArrayRef<indexing::TensorIndex>) const;
    Tensor& index_put_(std::initializer_list<indexing::TensorIndex>, const Tensor&);
    Tensor& index_put_(std::initializer_list<indexing::TensorIndex>, const Scalar&);
    Tensor operator[](int64_t) const;
    Tensor operator[](const Tensor&) const;

    Tensor& grad() const;
    Tensor& mutable_grad() const;
    void backward(const Tensor& gradient = {}, optional<bool> retain = {}, bool create = false,
                  optional<TensorList> inputs = {}) const;
    const Tensor& set_requires_grad(bool) const;
    void retain_grad() const;
    Tensor variable_data() const;
    Tensor tensor_data() const;
    void set_data(const Tensor&) const;
    template <typename F> unsigned register_hook(F&&) const;
    void record_stream(...) const;
    void print() const;

    Tensor operator-() const;
    Tensor operator~() const;
    Tensor& operator+=(const Tensor&);
    Tensor& operator+=(const Scalar&);
    Tensor& operator-=(const Tensor&);
    Tensor& operator-=(const Scalar&);
    Tensor& operator*=(const Tensor&);
    Tensor& operator*=(const Scalar&);
    Tensor& operator/=(const Tensor&);
    Tensor& operator/=(const Scalar&);

#define MP_METHOD(name)                                                      \
    template <typename... A> Tensor name(A&&...) const;                      \
    Tensor name(IntArrayRef) const;                                          \
    Tensor name(IntArrayRef, bool, optional<ScalarType> = {}) const;         \
    Tensor name(const Scalar&, IntArrayRef, bool = false) const;
#define MP_INPLACE_METHOD(name)                                              \
    template <typename... A> Tensor& name(A&&...) const;                     \
    Tensor& name(IntArrayRef) const;
    MP_TORCH_OPS(MP_METHOD)
    MP_TORCH_INPLACE_OPS(MP_INPLACE_METHOD)
#undef MP_METHOD
#undef MP_INPLACE_METHOD
};

// max(dim), sort(), topk() and the like give tuples in PyTorch; a Tensor here is also that tuple.
template <size_t I> Tensor get(const Tensor&);

std::ostream& operator<<(std::ostream&, const Tensor&);
#define MP_TENSOR_OPERATOR(op)                             \
    Tensor operator op(const Tensor&, const Tensor&);      \
    Tensor operator op(const Tensor&, const Scalar&);      \
    Tensor operator op(const Scalar&, const Tensor&);
MP_TENSOR_OPERATOR(+) MP_TENSOR_OPERATOR(-) MP_TENSOR_OPERATOR(*) MP_TENSOR_OPERATOR(/) MP_TENSOR_OPERATOR(%)
MP_TENSOR_OPERATOR(<) MP_TENSOR_OPERATOR(<=) MP_TENSOR_OPERATOR(>) MP_TENSOR_OPERATOR(>=)
MP_TENSOR_OPERATOR(==) MP_TENSOR_OPERATOR(!=) MP_TENSOR_OPERATOR(&) MP_TENSOR_OPERATOR(|) MP_TENSOR_OPERATOR(^)
#undef MP_TENSOR_OPERATOR

#define MP_FUNCTION(name)                                                          \
    template <typename... A> Tensor name(const Tensor&, A&&...);                   \
    Tensor name(const Tensor&, IntArrayRef);                                       \
    Tensor name(const Tensor&, IntArrayRef, bool, optional<ScalarType> = {});      \
    Tensor name(const Tensor&, const Scalar&, IntArrayRef, bool = false);          \
    template <typename... A> Tensor name##_out(Tensor&, A&&...);
#define MP_PLAIN_FUNCTION(name) template <typename... A> Tensor name(A&&...);
MP_TORCH_OPS(MP_FUNCTION)
MP_TORCH_FUNCTIONS(MP_FUNCTION)
MP_PLAIN_FUNCTION(einsum) MP_PLAIN_FUNCTION(block_diag) MP_PLAIN_FUNCTION(meshgrid)
MP_PLAIN_FUNCTION(_foreach_norm) MP_PLAIN_FUNCTION(_foreach_add_) MP_PLAIN_FUNCTION(_foreach_mul_)
MP_PLAIN_FUNCTION(_amp_foreach_non_finite_check_and_unscale_)
#undef MP_FUNCTION
#undef MP_PLAIN_FUNCTION

Tensor cat(ArrayRef<Tensor>, int64_t dim = 0);
Tensor concat(ArrayRef<Tensor>, int64_t dim = 0);
Tensor stack(ArrayRef<Tensor>, int64_t dim = 0);
Tensor hstack(ArrayRef<Tensor>);
Tensor vstack(ArrayRef<Tensor>);
std::vector<Tensor> chunk(const Tensor&, int64_t, int64_t = 0);
std::vector<Tensor> split(const Tensor&, int64_t, int64_t = 0);
std::vector<Tensor> unbind(const Tensor&, int64_t = 0);
std::vector<Tensor> broadcast_tensors(ArrayRef<Tensor>);
bool is_grad_enabled();

#define MP_FACTORIES                                                                              \
    Tensor empty(IntArrayRef, TensorOptions = {}, optional<MemoryFormat> = {});                    \
    Tensor zeros(IntArrayRef, TensorOptions = {});                                                 \
    Tensor ones(IntArrayRef, TensorOptions = {});                                                  \
    Tensor rand(IntArrayRef, TensorOptions = {});                                                  \
    Tensor randn(IntArrayRef, TensorOptions = {});                                                 \
    Tensor full(IntArrayRef, const Scalar&, TensorOptions = {});                                   \
    Tensor randint(int64_t high, IntArrayRef, TensorOptions = {});                                 \
    Tensor randint(int64_t low, int64_t high, IntArrayRef, TensorOptions = {});                    \
    Tensor normal(double mean, double std, IntArrayRef);                                           \
    Tensor eye(int64_t, TensorOptions = {});                                                       \
    Tensor randperm(int64_t, TensorOptions = {});                                                  \
    Tensor arange(const Scalar& end, TensorOptions = {});                                          \
    Tensor arange(const Scalar& start, const Scalar& end, TensorOptions = {});                     \
    Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step, TensorOptions = {}); \
    Tensor linspace(const Scalar& start, const Scalar& end, int64_t steps, TensorOptions = {});    \
    Tensor scalar_tensor(const Scalar&, TensorOptions = {});                                       \
    Tensor empty_like(const Tensor&, TensorOptions = {}, optional<MemoryFormat> = {});             \
    Tensor zeros_like(const Tensor&, TensorOptions = {}, optional<MemoryFormat> = {});             \
    Tensor ones_like(const Tensor&, TensorOptions = {}, optional<MemoryFormat> = {});              \
    Tensor rand_like(const Tensor&, TensorOptions = {}, optional<MemoryFormat> = {});              \
    Tensor randn_like(const Tensor&, TensorOptions = {}, optional<MemoryFormat> = {});             \
    Tensor full_like(const Tensor&, const Scalar&, TensorOptions = {});                            \
    Tensor from_blob(void*, IntArrayRef, TensorOptions = {});                                      \
    template <typename D> Tensor from_blob(void*, IntArrayRef, D&&, TensorOptions);                \
    template <typename T> Tensor tensor(std::initializer_list<T>, TensorOptions = {});             \
    template <typename T> Tensor tensor(const std::vector<T>&, TensorOptions = {});                \
    Tensor tensor(const Scalar&, TensorOptions = {});                                              \
    Tensor empty_strided(IntArrayRef, IntArrayRef, TensorOptions = {});
MP_FACTORIES

namespace linalg {}

class AutoNonVariableTypeMode {
public:
    explicit AutoNonVariableTypeMode(bool = true);
    ~AutoNonVariableTypeMode();
};
class AutoDispatchBelowAutograd {
public:
    AutoDispatchBelowAutograd();
    ~AutoDispatchBelowAutograd();
};
class NoGradGuard {
public:
    NoGradGuard();
    ~NoGradGuard();
};
class GradMode {
public:
    static bool is_enabled();
    static void set_enabled(bool);
};

optional<Device> device_of(const Tensor&);

struct TensorArg {
    TensorArg(const Tensor&, const char*, int);
};
using CheckedFrom = const char*;
void checkAllSameGPU(CheckedFrom, ArrayRef<TensorArg>);
void checkAllSameType(CheckedFrom, ArrayRef<TensorArg>);
void manual_seed(uint64_t);
template <typename F> void parallel_for(int64_t begin, int64_t end, int64_t grain, const F&);
int get_num_threads();
bool hasCUDA();
struct Context {
    bool allowTF32CuBLAS() const;
    void setAllowTF32CuBLAS(bool);
    void setAllowFP16ReductionCuBLAS(bool);
    void setAllowBF16ReductionCuBLAS(bool);
    void setFloat32MatmulPrecision(const std::string&);
    bool deterministicAlgorithms() const;
};
Context& globalContext();

namespace autocast {
bool is_enabled();
void set_enabled(bool);
bool is_cpu_enabled();
void set_cpu_enabled(bool);
bool is_xpu_enabled();
void set_xpu_enabled(bool);
bool is_hpu_enabled();
void set_hpu_enabled(bool);
bool is_ipu_enabled();
void set_ipu_enabled(bool);
bool is_xla_enabled();
void set_xla_enabled(bool);
bool is_privateuseone_enabled();
void set_privateuseone_enabled(bool);
bool is_autocast_enabled(DeviceType);
void set_autocast_enabled(DeviceType, bool);
ScalarType get_autocast_gpu_dtype();
void set_autocast_gpu_dtype(ScalarType);
ScalarType get_autocast_cpu_dtype();
void set_autocast_cpu_dtype(ScalarType);
ScalarType get_autocast_xpu_dtype();
void set_autocast_xpu_dtype(ScalarType);
void set_autocast_hpu_dtype(ScalarType);
ScalarType get_autocast_dtype(DeviceType);
void set_autocast_dtype(DeviceType, ScalarType);
void clear_cache();
int increment_nesting();
int decrement_nesting();
bool is_autocast_cache_enabled();
void set_autocast_cache_enabled(bool);
bool is_eligible(const Tensor&, DeviceType = DeviceType::CUDA);
Tensor cached_cast(ScalarType, const Tensor&, DeviceType = DeviceType::CUDA);
std::vector<Tensor> cached_cast(ScalarType, const TensorList&, DeviceType = DeviceType::CUDA);
ScalarType promote_type(ScalarType, DeviceType, ...);
}  // namespace autocast

// Types of the accumulators and of the arithmetic inside kernels.
template <typename T, bool is_cuda> struct AccumulateType { using type = T; };
#define MP_ACC(T, D, C)                                                 \
    template <> struct AccumulateType<T, true> { using type = D; };     \
    template <> struct AccumulateType<T, false> { using type = C; };
MP_ACC(Half, float, float) MP_ACC(BFloat16, float, float) MP_ACC(float, float, double) MP_ACC(double, double, double)
MP_ACC(int8_t, int64_t, int64_t) MP_ACC(uint8_t, int64_t, int64_t) MP_ACC(int16_t, int64_t, int64_t)
MP_ACC(int32_t, int64_t, int64_t) MP_ACC(int64_t, int64_t, int64_t) MP_ACC(bool, bool, bool)
#ifdef MP_TORCH_CUDA
MP_ACC(__half, float, float)
#endif
#undef MP_ACC
template <typename T, bool is_cuda> using acc_type = typename AccumulateType<T, is_cuda>::type;
template <typename T> struct OpMathType { using type = T; };
template <> struct OpMathType<Half> { using type = float; };
template <> struct OpMathType<BFloat16> { using type = float; };
template <> struct OpMathType<Float8_e4m3fn> { using type = float; };
template <> struct OpMathType<Float8_e5m2> { using type = float; };
template <typename T> using opmath_type = typename OpMathType<T>::type;

}  // namespace at

template <> struct std::tuple_size<at::Tensor> : std::integral_constant<size_t, 2> {};
template <size_t I> struct std::tuple_element<I, at::Tensor> { using type = at::Tensor; };
namespace std {
template <size_t I> at::Tensor get(const at::Tensor&);
}
