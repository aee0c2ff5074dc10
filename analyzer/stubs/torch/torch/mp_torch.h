// The C++ frontend: modules, functional forms, optimizers, autograd, serialization, op registration.
#pragma once

#include "../ATen/mp_tensor.h"
#include "../ATen/autocast_mode.h"

#include <fstream>
#include <iostream>
#include <random>
#include <thread>

namespace torch {

using namespace at;
using at::Tensor;
using at::TensorList;
using c10::Device;
using c10::DeviceType;
using Dtype = at::ScalarType;
using c10::nullopt;
using c10::optional;
namespace indexing = at::indexing;
constexpr auto kUInt8 = at::kByte;
constexpr auto kInt8 = at::kChar;
constexpr auto kInt16 = at::kShort;
constexpr auto kInt32 = at::kInt;
constexpr auto kInt64 = at::kLong;
constexpr auto kFloat16 = at::kHalf;
constexpr auto kFloat32 = at::kFloat;
constexpr auto kFloat64 = at::kDouble;
constexpr auto kU8 = kUInt8;
constexpr auto kI32 = kInt32;
constexpr auto kI64 = kInt64;
constexpr auto kF16 = kFloat16;
constexpr auto kF32 = kFloat32;
constexpr auto kF64 = kFloat64;

MP_FACTORIES
MP_TENSOR_OF(float) MP_TENSOR_OF(double) MP_TENSOR_OF(int) MP_TENSOR_OF(int64_t) MP_TENSOR_OF(at::Half) MP_TENSOR_OF(at::BFloat16)

// Names that select a reduction or a mode.
namespace enumtype {
#define MP_ENUM(name) struct k##name {};
MP_ENUM(Linear) MP_ENUM(ReLU) MP_ENUM(GELU) MP_ENUM(Tanh) MP_ENUM(Sigmoid) MP_ENUM(LeakyReLU) MP_ENUM(FanIn)
MP_ENUM(FanOut) MP_ENUM(Mean) MP_ENUM(Sum) MP_ENUM(None) MP_ENUM(BatchMean) MP_ENUM(Zeros) MP_ENUM(Same) MP_ENUM(Valid)
MP_ENUM(Constant) MP_ENUM(Reflect) MP_ENUM(Replicate) MP_ENUM(Circular) MP_ENUM(Nearest) MP_ENUM(Bilinear)
MP_ENUM(Bicubic) MP_ENUM(Trilinear) MP_ENUM(Border) MP_ENUM(Max) MP_ENUM(LSTM) MP_ENUM(GRU)
#undef MP_ENUM
}  // namespace enumtype
#define MP_ENUM(name) extern const enumtype::k##name k##name;
MP_ENUM(Linear) MP_ENUM(ReLU) MP_ENUM(GELU) MP_ENUM(Tanh) MP_ENUM(Sigmoid) MP_ENUM(LeakyReLU) MP_ENUM(FanIn)
MP_ENUM(FanOut) MP_ENUM(Mean) MP_ENUM(Sum) MP_ENUM(None) MP_ENUM(BatchMean) MP_ENUM(Zeros) MP_ENUM(Same) MP_ENUM(Valid)
MP_ENUM(Constant) MP_ENUM(Reflect) MP_ENUM(Replicate) MP_ENUM(Circular) MP_ENUM(Nearest) MP_ENUM(Bilinear)
MP_ENUM(Bicubic) MP_ENUM(Trilinear) MP_ENUM(Border) MP_ENUM(Max)
#undef MP_ENUM
struct AnyEnum { template <class T> AnyEnum(T); };

namespace cuda {
bool is_available();
bool cudnn_is_available();
size_t device_count();
void synchronize(int64_t = -1);
void manual_seed(uint64_t);
void manual_seed_all(uint64_t);
}  // namespace cuda

namespace autograd {
using Variable = at::Tensor;
using variable_list = std::vector<Variable>;
using edge_list = std::vector<int>;
struct AutogradContext {
    std::unordered_map<std::string, c10::IValue> saved_data;
    void save_for_backward(variable_list);
    void mark_dirty(const variable_list&);
    void mark_non_differentiable(const variable_list&);
    void set_materialize_grads(bool);
    variable_list get_saved_variables() const;
    bool needs_input_grad(size_t) const;
};
template <class T> struct Function {
    template <class X = T, class... A>
    static auto apply(A&&... a) -> decltype(X::forward(static_cast<AutogradContext*>(nullptr),
        std::forward<A>(a)...));
};
variable_list grad(const variable_list& outputs, const variable_list& inputs,
    const variable_list& grad_outputs = {}, std::optional<bool> retain_graph = std::nullopt,
    bool create_graph = false, bool allow_unused = false);
void backward(const variable_list&, const variable_list& = {}, std::optional<bool> = std::nullopt,
    bool = false, const variable_list& = {});
struct GradMode { static bool is_enabled(); static void set_enabled(bool); };
struct DetectAnomalyGuard { explicit DetectAnomalyGuard(bool = true); ~DetectAnomalyGuard(); };
}  // namespace autograd
using autograd::Variable;

namespace jit { struct CompilationUnit; }
namespace serialize {
class OutputArchive {
public:
    OutputArchive();
    void write(const std::string&, const Tensor&, bool = false);
    explicit OutputArchive(std::shared_ptr<jit::CompilationUnit>);
    std::shared_ptr<jit::CompilationUnit> compilation_unit() const;
    void write(const std::string&, const c10::IValue&);
    void write(const std::string&, OutputArchive&);
    void save_to(const std::string&);
    void save_to(std::ostream&);
};
class InputArchive {
public:
    InputArchive();
    void read(const std::string&, Tensor&, bool = false);
    void read(const std::string&, c10::IValue&);
    bool try_read(const std::string&, c10::IValue&);
    bool try_read(const std::string&, InputArchive&);
    std::vector<std::string> keys();
    void read(const std::string&, InputArchive&);
    bool try_read(const std::string&, Tensor&, bool = false);
    void load_from(const std::string&, std::optional<Device> = std::nullopt);
    void load_from(std::istream&, std::optional<Device> = std::nullopt);
};
}  // namespace serialize
template <class T, class... A> void save(const T&, A&&...);
template <class T, class... A> void load(T&, A&&...);

template <class K, class V> class OrderedDict {
public:
    struct Item {
        const K& key() const;
        V& value();
        const V& value() const;
        V& operator*();
        V* operator->();
    };
    using Iterator = typename std::vector<Item>::iterator;
    Iterator begin();
    Iterator end();
    typename std::vector<Item>::const_iterator begin() const;
    typename std::vector<Item>::const_iterator end() const;
    size_t size() const;
    bool is_empty() const;
    bool contains(const K&) const;
    V* find(const K&);
    V& operator[](const K&);
    V& insert(K, V);
    std::vector<K> keys() const;
    std::vector<V> values() const;
};
template <size_t D, class T = int64_t> class ExpandingArray {
public:
    ExpandingArray(std::initializer_list<T>);
    ExpandingArray(std::vector<T>);
    ExpandingArray(at::ArrayRef<T>);
    ExpandingArray(T);
    ExpandingArray(std::array<T, D>);
};

#define TORCH_ARG(T, name) \
public: \
    auto name(const T& v) -> decltype(*this) { this->name##_ = v; return *this; } \
    auto name(T&& v) -> decltype(*this) { this->name##_ = std::move(v); return *this; } \
    const T& name() const noexcept { return this->name##_; } \
    T& name() noexcept { return this->name##_; } \
private: \
    T name##_

namespace nn {

class Module {
public:
    Module();
    explicit Module(std::string);
    Module(const Module&) = default;
    virtual ~Module();
    const std::string& name() const noexcept;
    std::vector<Tensor> parameters(bool recurse = true) const;
    OrderedDict<std::string, Tensor> named_parameters(bool recurse = true) const;
    std::vector<Tensor> buffers(bool recurse = true) const;
    OrderedDict<std::string, Tensor> named_buffers(bool recurse = true) const;
    std::vector<std::shared_ptr<Module>> modules(bool include_self = true) const;
    OrderedDict<std::string, std::shared_ptr<Module>> named_modules(const std::string& = std::string(),
        bool = true) const;
    std::vector<std::shared_ptr<Module>> children() const;
    OrderedDict<std::string, std::shared_ptr<Module>> named_children() const;
    virtual void train(bool on = true);
    void eval();
    virtual bool is_training() const noexcept;
    virtual void to(Device device, Dtype dtype, bool non_blocking = false);
    virtual void to(Dtype dtype, bool non_blocking = false);
    virtual void to(Device device, bool non_blocking = false);
    virtual void zero_grad(bool set_to_none = true);
    virtual void save(serialize::OutputArchive&) const;
    virtual void load(serialize::InputArchive&);
    virtual void pretty_print(std::ostream&) const;
    virtual std::shared_ptr<Module> clone(const std::optional<Device>& = std::nullopt) const;
    template <class F> void apply(const F&) MP_NO_BODY
    template <class T> T* as() noexcept;
    template <class T> const T* as() const noexcept;
    Tensor& register_parameter(std::string, Tensor, bool requires_grad = true);
    Tensor& register_buffer(std::string, Tensor);
    template <class M> std::shared_ptr<M> register_module(std::string, std::shared_ptr<M>);
    template <class H, class C = typename H::ContainedType> H register_module(std::string, H);
    template <class M> std::shared_ptr<M> replace_module(const std::string&, std::shared_ptr<M>);
    void unregister_module(const std::string&);
};
template <class T> class Cloneable : public Module {
public:
    using Module::Module;
    virtual void reset() = 0;
};
template <class C> class ModuleHolder {
public:
    using ContainedType = C;
    ModuleHolder();
    ModuleHolder(std::nullptr_t);
    template <class H, class... T, class = std::enable_if_t<!(std::is_base_of_v<ModuleHolder,
        std::decay_t<H>> && sizeof...(T) == 0)>>
    explicit ModuleHolder(H&&, T&&...);
    ModuleHolder(std::shared_ptr<C>);
    explicit operator bool() const noexcept;
    C* operator->();
    const C* operator->() const;
    C& operator*();
    const std::shared_ptr<C>& ptr() const;
    C* get();
    bool is_empty() const noexcept;
    template <class... A,
        class X = C> auto operator()(A&&... a) -> decltype(std::declval<X&>().forward(std::forward<A>(a)...));
    template <class A, class X = C> auto operator[](A&& a) -> decltype(std::declval<X&>()[std::forward<A>(a)]);
};
template <class C> std::ostream& operator<<(std::ostream&, const ModuleHolder<C>&);
#define TORCH_MODULE_IMPL(Name, ImplType) \
    class Name : public torch::nn::ModuleHolder<ImplType> { \
    public: \
        using torch::nn::ModuleHolder<ImplType>::ModuleHolder; \
        using Impl = ImplType; \
    }
#define TORCH_MODULE(Name) TORCH_MODULE_IMPL(Name, Name##Impl)

// A module with options (fluent setters) and a forward.
#define MP_ARG(O, T, name) O& name(const T&); const T& name() const; T& name();

struct LinearOptions {
    LinearOptions(int64_t, int64_t);
    MP_ARG(LinearOptions, int64_t, in_features) MP_ARG(LinearOptions, int64_t,
        out_features) MP_ARG(LinearOptions, bool, bias)
};
class LinearImpl : public Cloneable<LinearImpl> {
public:
    LinearImpl(int64_t, int64_t);
    explicit LinearImpl(const LinearOptions&);
    void reset() override;
    void reset_parameters();
    Tensor forward(const Tensor&);
    LinearOptions options;
    Tensor weight;
    Tensor bias;
};
TORCH_MODULE(Linear);

template <size_t D> struct ConvOptions {
    ConvOptions(int64_t, int64_t, ExpandingArray<D>);
    MP_ARG(ConvOptions, ExpandingArray<D>, stride) MP_ARG(ConvOptions, ExpandingArray<D>, padding)
    MP_ARG(ConvOptions, ExpandingArray<D>, dilation) MP_ARG(ConvOptions, ExpandingArray<D>, output_padding)
    MP_ARG(ConvOptions, int64_t, groups) MP_ARG(ConvOptions, bool, bias) MP_ARG(ConvOptions, AnyEnum, padding_mode)
};
#define MP_CONV(Name, D) \
    using Name##Options = ConvOptions<D>; \
    class Name##Impl : public Cloneable<Name##Impl> { \
    public: \
        Name##Impl(int64_t, int64_t, ExpandingArray<D>); \
        explicit Name##Impl(ConvOptions<D>); \
        void reset() override; \
        Tensor forward(const Tensor&); \
        Tensor weight; \
        Tensor bias; \
    }; \
    TORCH_MODULE(Name);
MP_CONV(Conv1d, 1) MP_CONV(Conv2d, 2) MP_CONV(Conv3d, 3)
MP_CONV(ConvTranspose1d, 1) MP_CONV(ConvTranspose2d, 2) MP_CONV(ConvTranspose3d, 3)
#undef MP_CONV

struct LayerNormOptions {
    LayerNormOptions(std::vector<int64_t>);
    MP_ARG(LayerNormOptions, double, eps) MP_ARG(LayerNormOptions, bool, elementwise_affine)
};
struct BatchNormOptions {
    BatchNormOptions(int64_t);
    MP_ARG(BatchNormOptions, double, eps) MP_ARG(BatchNormOptions, std::optional<double>, momentum)
    MP_ARG(BatchNormOptions, bool, affine) MP_ARG(BatchNormOptions, bool, track_running_stats)
};
struct GroupNormOptions {
    GroupNormOptions(int64_t, int64_t);
    MP_ARG(GroupNormOptions, double, eps) MP_ARG(GroupNormOptions, bool, affine)
};
struct EmbeddingOptions {
    EmbeddingOptions(int64_t, int64_t);
    MP_ARG(EmbeddingOptions, std::optional<int64_t>, padding_idx) MP_ARG(EmbeddingOptions, bool, sparse)
};
struct DropoutOptions {
    DropoutOptions(double = 0.5);
    MP_ARG(DropoutOptions, double, p) MP_ARG(DropoutOptions, bool, inplace)
};
struct SoftmaxOptions { SoftmaxOptions(int64_t); MP_ARG(SoftmaxOptions, int64_t, dim) };
struct ActivationOptions {
    ActivationOptions();
    ActivationOptions(double);
    ActivationOptions(bool);
    MP_ARG(ActivationOptions, bool, inplace) MP_ARG(ActivationOptions, double,
        negative_slope) MP_ARG(ActivationOptions, double, alpha)
    MP_ARG(ActivationOptions, std::string, approximate)
};
using ReLUOptions = ActivationOptions;
using LeakyReLUOptions = ActivationOptions;
using ELUOptions = ActivationOptions;
using GELUOptions = ActivationOptions;
template <size_t D> struct PoolOptions {
    PoolOptions(ExpandingArray<D>);
    MP_ARG(PoolOptions, ExpandingArray<D>, stride) MP_ARG(PoolOptions, ExpandingArray<D>,
        padding) MP_ARG(PoolOptions, bool, ceil_mode)
};
struct UpsampleOptions {
    UpsampleOptions();
    MP_ARG(UpsampleOptions, std::optional<std::vector<int64_t>>, size) MP_ARG(UpsampleOptions,
        std::optional<std::vector<double>>, scale_factor)
    MP_ARG(UpsampleOptions, AnyEnum, mode) MP_ARG(UpsampleOptions, std::optional<bool>, align_corners)
};
struct FlattenOptions { FlattenOptions(); MP_ARG(FlattenOptions, int64_t, start_dim) MP_ARG(FlattenOptions,
    int64_t, end_dim) };
struct LossOptions {
    LossOptions();
    LossOptions(AnyEnum);
    MP_ARG(LossOptions, AnyEnum, reduction) MP_ARG(LossOptions, Tensor, weight) MP_ARG(LossOptions, int64_t,
        ignore_index)
    MP_ARG(LossOptions, double, label_smoothing) MP_ARG(LossOptions, Tensor, pos_weight) MP_ARG(LossOptions,
        double, beta)
    MP_ARG(LossOptions, double, delta) MP_ARG(LossOptions, double, margin) MP_ARG(LossOptions, bool, log_target)
};
#define MP_LOSS_OPTIONS(n) using n##Options = LossOptions;
MP_LOSS_OPTIONS(MSELoss) MP_LOSS_OPTIONS(L1Loss) MP_LOSS_OPTIONS(CrossEntropyLoss) MP_LOSS_OPTIONS(NLLLoss)
MP_LOSS_OPTIONS(BCELoss) MP_LOSS_OPTIONS(BCEWithLogitsLoss) MP_LOSS_OPTIONS(SmoothL1Loss) MP_LOSS_OPTIONS(HuberLoss) MP_LOSS_OPTIONS(KLDivLoss)
#undef MP_LOSS_OPTIONS

// A simple module: options type, then its one-tensor forward.
#define MP_MODULE(Name, Options) \
    class Name##Impl : public Cloneable<Name##Impl> { \
    public: \
        explicit Name##Impl(const Options&); \
        void reset() override; \
        Tensor forward(const Tensor&); \
        Tensor weight, bias, running_mean, running_var; \
    }; \
    TORCH_MODULE(Name);
#define MP_MODULE_0(Name, Options) \
    class Name##Impl : public Cloneable<Name##Impl> { \
    public: \
        explicit Name##Impl(const Options& = {}); \
        void reset() override; \
        Tensor forward(Tensor); \
    }; \
    TORCH_MODULE(Name);
#define MP_LOSS(Name) \
    class Name##Impl : public Cloneable<Name##Impl> { \
    public: \
        explicit Name##Impl(LossOptions = {}); \
        void reset() override; \
        Tensor forward(const Tensor& input, const Tensor& target); \
    }; \
    TORCH_MODULE(Name);
MP_MODULE(LayerNorm, LayerNormOptions)
MP_MODULE(BatchNorm1d, BatchNormOptions) MP_MODULE(BatchNorm2d, BatchNormOptions) MP_MODULE(BatchNorm3d,
    BatchNormOptions)
MP_MODULE(InstanceNorm2d, BatchNormOptions)
MP_MODULE(Softmax, SoftmaxOptions) MP_MODULE(LogSoftmax, SoftmaxOptions)
class GroupNormImpl : public Cloneable<GroupNormImpl> {
public:
    GroupNormImpl(int64_t, int64_t);
    explicit GroupNormImpl(const GroupNormOptions&);
    void reset() override;
    Tensor forward(const Tensor&);
    Tensor weight, bias;
};
TORCH_MODULE(GroupNorm);
class EmbeddingImpl : public Cloneable<EmbeddingImpl> {
public:
    EmbeddingImpl(int64_t, int64_t);
    explicit EmbeddingImpl(EmbeddingOptions);
    void reset() override;
    Tensor forward(const Tensor&);
    Tensor weight;
};
TORCH_MODULE(Embedding);
MP_MODULE_0(Dropout, DropoutOptions) MP_MODULE_0(Dropout2d, DropoutOptions)
MP_MODULE_0(ReLU, ActivationOptions) MP_MODULE_0(LeakyReLU, ActivationOptions) MP_MODULE_0(ELU, ActivationOptions)
MP_MODULE_0(GELU, ActivationOptions) MP_MODULE_0(SiLU, ActivationOptions) MP_MODULE_0(Tanh, ActivationOptions)
MP_MODULE_0(Sigmoid, ActivationOptions) MP_MODULE_0(Softplus, ActivationOptions) MP_MODULE_0(Identity,
    ActivationOptions)
MP_MODULE_0(Mish, ActivationOptions) MP_MODULE_0(ReLU6, ActivationOptions) MP_MODULE_0(SELU, ActivationOptions)
MP_MODULE_0(Flatten, FlattenOptions) MP_MODULE_0(Upsample, UpsampleOptions)
MP_MODULE(MaxPool1d, PoolOptions<1>) MP_MODULE(MaxPool2d, PoolOptions<2>) MP_MODULE(AvgPool2d, PoolOptions<2>)
MP_MODULE(AdaptiveAvgPool2d, ExpandingArray<2>)
using MaxPool2dOptions = PoolOptions<2>;
using AvgPool2dOptions = PoolOptions<2>;
MP_LOSS(MSELoss) MP_LOSS(L1Loss) MP_LOSS(CrossEntropyLoss) MP_LOSS(NLLLoss) MP_LOSS(BCELoss) MP_LOSS(BCEWithLogitsLoss)
MP_LOSS(SmoothL1Loss) MP_LOSS(HuberLoss) MP_LOSS(KLDivLoss)
#undef MP_MODULE
#undef MP_MODULE_0
#undef MP_LOSS

struct RNNOptionsBase {
    RNNOptionsBase(int64_t, int64_t);
    MP_ARG(RNNOptionsBase, int64_t, num_layers) MP_ARG(RNNOptionsBase, bool,
        batch_first) MP_ARG(RNNOptionsBase, double, dropout)
    MP_ARG(RNNOptionsBase, bool, bidirectional) MP_ARG(RNNOptionsBase, bool, bias)
};
using LSTMOptions = RNNOptionsBase;
using GRUOptions = RNNOptionsBase;
class LSTMImpl : public Cloneable<LSTMImpl> {
public:
    LSTMImpl(int64_t, int64_t);
    explicit LSTMImpl(const LSTMOptions&);
    void reset() override;
    std::tuple<Tensor, std::tuple<Tensor, Tensor>> forward(const Tensor&, std::optional<std::tuple<Tensor,
        Tensor>> = {});
};
TORCH_MODULE(LSTM);
class GRUImpl : public Cloneable<GRUImpl> {
public:
    GRUImpl(int64_t, int64_t);
    explicit GRUImpl(const GRUOptions&);
    void reset() override;
    std::tuple<Tensor, Tensor> forward(const Tensor&, Tensor = {});
};
TORCH_MODULE(GRU);
struct MultiheadAttentionOptions {
    MultiheadAttentionOptions(int64_t, int64_t);
    MP_ARG(MultiheadAttentionOptions, double, dropout) MP_ARG(MultiheadAttentionOptions, bool, bias)
};
class MultiheadAttentionImpl : public Cloneable<MultiheadAttentionImpl> {
public:
    MultiheadAttentionImpl(int64_t, int64_t);
    explicit MultiheadAttentionImpl(const MultiheadAttentionOptions&);
    void reset() override;
    std::tuple<Tensor, Tensor> forward(const Tensor&, const Tensor&, const Tensor&, const Tensor& = {},
        bool = true, const Tensor& = {}, bool = true);
};
TORCH_MODULE(MultiheadAttention);

class AnyModule {
public:
    AnyModule();
    template <class M> explicit AnyModule(M&&);
    template <class R = Tensor, class... A> R forward(A&&...);
    std::shared_ptr<Module> ptr() const;
    template <class T> T& get();
};
class SequentialImpl : public Cloneable<SequentialImpl> {
public:
    using Iterator = std::vector<AnyModule>::iterator;
    SequentialImpl();
    template <class... M> explicit SequentialImpl(M&&...);
    explicit SequentialImpl(std::initializer_list<std::pair<std::string, AnyModule>>);
    void reset() override;
    template <class R = Tensor, class... A> R forward(A&&...);
    template <class M> void push_back(M&&);
    template <class M> void push_back(std::string, M&&);
    Iterator begin();
    Iterator end();
    size_t size() const noexcept;
    bool is_empty() const noexcept;
    std::shared_ptr<Module> ptr(size_t) const;
    std::shared_ptr<Module> operator[](size_t) const;
    template <class T> T& at(size_t);
};
class Sequential : public ModuleHolder<SequentialImpl> {
public:
    using ModuleHolder<SequentialImpl>::ModuleHolder;
    Sequential() : ModuleHolder() {}
    Sequential(std::initializer_list<std::pair<std::string, AnyModule>>);
};
class ModuleListImpl : public Cloneable<ModuleListImpl> {
public:
    template <class... M> explicit ModuleListImpl(M&&...);
    void reset() override;
    template <class M> void push_back(M&&);
    std::vector<std::shared_ptr<Module>>::iterator begin();
    std::vector<std::shared_ptr<Module>>::iterator end();
    size_t size() const noexcept;
    std::shared_ptr<Module> operator[](size_t) const;
    std::shared_ptr<Module> ptr(size_t) const;
    template <class T> T& at(size_t);
};
TORCH_MODULE(ModuleList);

namespace functional {
struct SoftmaxFuncOptions {
    SoftmaxFuncOptions(int64_t);
    MP_ARG(SoftmaxFuncOptions, int64_t, dim) MP_ARG(SoftmaxFuncOptions, std::optional<Dtype>, dtype)
};
using LogSoftmaxFuncOptions = SoftmaxFuncOptions;
struct NormalizeFuncOptions {
    NormalizeFuncOptions();
    MP_ARG(NormalizeFuncOptions, double, p) MP_ARG(NormalizeFuncOptions, int64_t,
        dim) MP_ARG(NormalizeFuncOptions, double, eps)
};
struct CosineSimilarityFuncOptions {
    CosineSimilarityFuncOptions();
    MP_ARG(CosineSimilarityFuncOptions, int64_t, dim) MP_ARG(CosineSimilarityFuncOptions, double, eps)
};
using LossFuncOptions = LossOptions;
#define MP_LOSS(name, Name) Tensor name(const Tensor& input, const Tensor& target, LossOptions = {}); using Name##FuncOptions = LossOptions;
MP_LOSS(mse_loss, MSELoss) MP_LOSS(l1_loss, L1Loss) MP_LOSS(cross_entropy, CrossEntropy) MP_LOSS(nll_loss, NLLLoss)
MP_LOSS(binary_cross_entropy, BinaryCrossEntropy) MP_LOSS(binary_cross_entropy_with_logits,
    BinaryCrossEntropyWithLogits)
MP_LOSS(smooth_l1_loss, SmoothL1Loss) MP_LOSS(huber_loss, HuberLoss) MP_LOSS(kl_div, KLDiv)
#undef MP_LOSS
#define MP_CONV(name, D) \
    struct name##_options_mp { name##_options_mp(); MP_ARG(name##_options_mp, Tensor, bias) MP_ARG(name##_options_mp, ExpandingArray<D>, stride) \
        MP_ARG(name##_options_mp, ExpandingArray<D>, padding) MP_ARG(name##_options_mp, int64_t, groups) }; \
    Tensor name(const Tensor&, const Tensor&, const name##_options_mp& = {});
MP_CONV(conv1d, 1) MP_CONV(conv2d, 2) MP_CONV(conv3d, 3)
#undef MP_CONV
using Conv1dFuncOptions = conv1d_options_mp;
using Conv2dFuncOptions = conv2d_options_mp;
struct LayerNormFuncOptions {
    LayerNormFuncOptions(std::vector<int64_t>);
    MP_ARG(LayerNormFuncOptions, Tensor, weight) MP_ARG(LayerNormFuncOptions, Tensor,
        bias) MP_ARG(LayerNormFuncOptions, double, eps)
};
struct DropoutFuncOptions {
    DropoutFuncOptions();
    MP_ARG(DropoutFuncOptions, double, p) MP_ARG(DropoutFuncOptions, bool, training)
};
struct InterpolateFuncOptions {
    InterpolateFuncOptions();
    MP_ARG(InterpolateFuncOptions, std::optional<std::vector<int64_t>>, size) MP_ARG(InterpolateFuncOptions,
        std::optional<std::vector<double>>, scale_factor)
    MP_ARG(InterpolateFuncOptions, AnyEnum, mode) MP_ARG(InterpolateFuncOptions, std::optional<bool>,
        align_corners)
};
struct PadFuncOptions {
    PadFuncOptions(std::vector<int64_t>);
    MP_ARG(PadFuncOptions, AnyEnum, mode) MP_ARG(PadFuncOptions, double, value)
};
Tensor softmax(const Tensor&, const SoftmaxFuncOptions&);
Tensor log_softmax(const Tensor&, const LogSoftmaxFuncOptions&);
Tensor normalize(const Tensor&, NormalizeFuncOptions = {});
Tensor cosine_similarity(const Tensor&, const Tensor&, const CosineSimilarityFuncOptions& = {});
Tensor layer_norm(const Tensor&, const LayerNormFuncOptions&);
Tensor linear(const Tensor&, const Tensor&, const Tensor& = {});
Tensor dropout(Tensor, const DropoutFuncOptions& = {});
Tensor relu(Tensor, const ActivationOptions& = {});
Tensor gelu(const Tensor&, const ActivationOptions& = {});
Tensor silu(const Tensor&);
Tensor leaky_relu(Tensor, const ActivationOptions& = {});
Tensor elu(Tensor, const ActivationOptions& = {});
Tensor softplus(const Tensor&);
Tensor logsigmoid(const Tensor&);
Tensor one_hot(const Tensor&, int64_t = -1);
Tensor embedding(const Tensor&, const Tensor&);
Tensor interpolate(const Tensor&, const InterpolateFuncOptions& = {});
Tensor pad(const Tensor&, const PadFuncOptions&);
Tensor max_pool2d(const Tensor&, const PoolOptions<2>&);
Tensor avg_pool2d(const Tensor&, const PoolOptions<2>&);
using MaxPool2dFuncOptions = PoolOptions<2>;
using AvgPool2dFuncOptions = PoolOptions<2>;
Tensor grid_sample(const Tensor&, const Tensor&);
}  // namespace functional

namespace init {
Tensor xavier_uniform_(Tensor, double = 1.0);
Tensor xavier_normal_(Tensor, double = 1.0);
Tensor kaiming_uniform_(Tensor, double = 0, AnyEnum = 0, AnyEnum = 0);
Tensor kaiming_normal_(Tensor, double = 0, AnyEnum = 0, AnyEnum = 0);
Tensor constant_(Tensor, at::Scalar);
Tensor ones_(Tensor);
Tensor zeros_(Tensor);
Tensor normal_(Tensor, double = 0, double = 1);
Tensor uniform_(Tensor, double = 0, double = 1);
Tensor orthogonal_(Tensor, double = 1.0);
double calculate_gain(AnyEnum, double = 0.01);
}  // namespace init

namespace utils {
double clip_grad_norm_(const std::vector<Tensor>&, double, double = 2.0, bool = false);
double clip_grad_norm_(std::initializer_list<Tensor>, double, double = 2.0, bool = false);
double clip_grad_norm_(Tensor, double, double = 2.0, bool = false);
void clip_grad_value_(const std::vector<Tensor>&, double);
void clip_grad_value_(Tensor, double);
Tensor parameters_to_vector(const std::vector<Tensor>&);
void vector_to_parameters(const Tensor&, const std::vector<Tensor>&);
namespace rnn {
Tensor pad_sequence(at::ArrayRef<Tensor>, bool = false, double = 0);
}  // namespace rnn
}  // namespace utils

}  // namespace nn

namespace optim {
class OptimizerParamState { public: virtual ~OptimizerParamState(); };
class OptimizerOptions {
public:
    virtual ~OptimizerOptions();
    virtual std::unique_ptr<OptimizerOptions> clone() const;
    virtual double get_lr() const;
    virtual void set_lr(const double);
};
class OptimizerParamGroup {
public:
    OptimizerParamGroup(std::vector<Tensor>);
    OptimizerParamGroup(std::vector<Tensor>, std::unique_ptr<OptimizerOptions>);
    bool has_options() const;
    OptimizerOptions& options();
    const OptimizerOptions& options() const;
    std::vector<Tensor>& params();
    const std::vector<Tensor>& params() const;
};
class Optimizer {
public:
    using LossClosure = std::function<Tensor()>;
    virtual ~Optimizer();
    virtual Tensor step(LossClosure closure = nullptr);
    void zero_grad(bool set_to_none = true);
    void add_param_group(const OptimizerParamGroup&);
    std::vector<Tensor>& parameters();
    size_t size() const noexcept;
    std::vector<OptimizerParamGroup>& param_groups();
    const std::vector<OptimizerParamGroup>& param_groups() const;
    OptimizerOptions& defaults();
    std::unordered_map<void*, std::unique_ptr<OptimizerParamState>>& state();
    virtual void save(serialize::OutputArchive&) const;
    virtual void load(serialize::InputArchive&);
};
#define MP_OPTIMIZER(Name, ...) \
    struct Name##Options : OptimizerOptions { \
        Name##Options(double lr = 1e-3); \
        MP_ARG(Name##Options, double, lr) __VA_ARGS__ \
    }; \
    class Name : public Optimizer { \
    public: \
        explicit Name(std::vector<OptimizerParamGroup>, Name##Options = {}); \
        explicit Name(std::vector<Tensor>, Name##Options = {}); \
        Tensor step(LossClosure closure = nullptr) override; \
    };
using MpBetas = std::tuple<double, double>;
#define MP_O(O, T, name) MP_ARG(O, T, name)
MP_OPTIMIZER(Adam, MP_O(AdamOptions, MpBetas, betas) MP_O(AdamOptions, double, eps) MP_O(AdamOptions, double,
    weight_decay) MP_O(AdamOptions, bool, amsgrad))
MP_OPTIMIZER(AdamW, MP_O(AdamWOptions, MpBetas, betas) MP_O(AdamWOptions, double, eps) MP_O(AdamWOptions,
    double, weight_decay) MP_O(AdamWOptions, bool, amsgrad))
MP_OPTIMIZER(SGD, MP_O(SGDOptions, double, momentum) MP_O(SGDOptions, double, dampening) MP_O(SGDOptions,
    double, weight_decay) MP_O(SGDOptions, bool, nesterov))
MP_OPTIMIZER(RMSprop, MP_O(RMSpropOptions, double, alpha) MP_O(RMSpropOptions, double,
    eps) MP_O(RMSpropOptions, double, weight_decay) MP_O(RMSpropOptions, double,
    momentum) MP_O(RMSpropOptions, bool, centered))
MP_OPTIMIZER(Adagrad, MP_O(AdagradOptions, double, lr_decay) MP_O(AdagradOptions, double,
    eps) MP_O(AdagradOptions, double, weight_decay))
#undef MP_O
#undef MP_OPTIMIZER
class LRScheduler { public: virtual ~LRScheduler(); void step(); };
class StepLR : public LRScheduler { public: StepLR(Optimizer&, unsigned, double = 0.1); };
}  // namespace optim

namespace data {
template <class D = Tensor, class T = Tensor> struct Example { D data; T target; Example(D, T); };
struct DataLoaderOptions {
    DataLoaderOptions(size_t = 1);
    MP_ARG(DataLoaderOptions, size_t, batch_size) MP_ARG(DataLoaderOptions, size_t,
        workers) MP_ARG(DataLoaderOptions, bool, drop_last)
};
namespace samplers { class RandomSampler {}; class SequentialSampler {}; }
namespace transforms { template <class B = Example<>> struct Stack {}; template <class T = Tensor> struct Normalize { Normalize(double, double); }; }
namespace datasets {
template <class Self, class E = Example<>> class Dataset {
public:
    using ExampleType = E;
    virtual ~Dataset();
    virtual E get(size_t) = 0;
    virtual std::optional<size_t> size() const = 0;
    template <class F> Self map(F) && MP_NO_BODY
};
class MNIST : public Dataset<MNIST> {
public:
    enum class Mode { kTrain, kTest };
    explicit MNIST(const std::string&, Mode = Mode::kTrain);
    Example<> get(size_t) override;
    std::optional<size_t> size() const override;
};
}  // namespace datasets
template <class D> class DataLoader_mp {
public:
    std::vector<Example<>>::iterator begin();
    std::vector<Example<>>::iterator end();
};
template <class S = samplers::RandomSampler, class D> std::unique_ptr<DataLoader_mp<D>> make_data_loader(D,
    DataLoaderOptions = {});
}  // namespace data

namespace utils {
Tensor flatten_dense_tensors(TensorList);
std::vector<Tensor> unflatten_dense_tensors(const Tensor&, TensorList);
}  // namespace utils

// Registration of operators.
struct CppFunction_mp {};
class Library {
public:
    template <class F> Library& def(const char*, F&&) MP_NO_BODY
    Library& def(const char*);
    template <class F> Library& impl(const char*, F&&) MP_NO_BODY
    template <class F> Library& fallback(F&&) MP_NO_BODY
    template <class T> struct class_mp { template <class... A> class_mp& def(A&&...); template <class... A> class_mp& def_pickle(A&&...); };
    template <class T> class_mp<T> class_(const std::string&);
};
struct LibraryInit_mp { LibraryInit_mp(void (*)(Library&)); };
struct RegisterOperators {
    RegisterOperators();
    template <class F> RegisterOperators(const std::string&, F) MP_NO_BODY
    template <class F> RegisterOperators op(const std::string&, F) && MP_NO_BODY
    template <class F> RegisterOperators& op(const std::string&, F) & MP_NO_BODY
};
template <class F> CppFunction_mp dispatch(c10::DispatchKey, F&&) MP_NO_BODY
struct CustomClassHolder { virtual ~CustomClassHolder(); };
namespace jit {
namespace script {
struct Module {
    void eval();
    void train(bool = true);
    void to(at::Device, bool = false);
    void to(at::ScalarType, bool = false);
    c10::IValue forward(std::vector<c10::IValue>);
    template <class... A> c10::IValue operator()(A&&...);
};
}  // namespace script
using script::Module;
script::Module load(const std::string&, std::optional<c10::Device> = std::nullopt);
}  // namespace jit
}  // namespace torch

#define MP_LIBRARY(ns, m, tag) \
    static void mp_library_##tag##ns(torch::Library&); \
    static const torch::LibraryInit_mp mp_library_init_##tag##ns(&mp_library_##tag##ns); \
    void mp_library_##tag##ns(torch::Library& m)
#define TORCH_LIBRARY(ns, m) MP_LIBRARY(ns, m, lib_)
#define TORCH_LIBRARY_FRAGMENT(ns, m) MP_LIBRARY(ns, m, fragment_)
#define TORCH_LIBRARY_IMPL(ns, key, m) MP_LIBRARY(ns, m, key##_)
#define TORCH_FN(f) f
#define TORCH_SELECTIVE_NAME(n) n
