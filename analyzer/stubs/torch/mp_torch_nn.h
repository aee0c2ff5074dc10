// torch::nn, torch::optim, autograd, serialisation: the parts training programs use.
#pragma once

#include <chrono>
#include <iostream>
#include <mutex>
#include <sstream>

#include "mp_torch_dispatch.h"

namespace torch {
using namespace at;
using at::Tensor;
using at::NoGradGuard;
using Dtype = at::ScalarType;
using c10::dtype;
using c10::device;
using c10::requires_grad;
using TensorOptions = c10::TensorOptions;
namespace indexing = at::indexing;
MP_FACTORIES
inline constexpr auto kUInt8 = at::kByte, kInt8 = at::kChar, kInt16 = at::kShort, kInt32 = at::kInt,
                      kInt64 = at::kLong, kFloat16 = at::kHalf, kFloat32 = at::kFloat, kFloat64 = at::kDouble;
template <typename... A> void save(A&&...);
template <typename... A> void load(A&&...);
void manual_seed(uint64_t);
Dtype typeMetaToScalarType(Dtype);
bool hasXLA();
namespace cuda {
bool is_available();
size_t device_count();
void synchronize(int64_t = -1);
bool cudnn_is_available();
void manual_seed_all(uint64_t);
}  // namespace cuda
namespace autograd {
using Variable = at::Tensor;
using variable_list = std::vector<Variable>;
using tensor_list = std::vector<Tensor>;
struct AutogradContext {
    void save_for_backward(variable_list);
    variable_list get_saved_variables() const;
    void mark_dirty(const variable_list&);
    void mark_non_differentiable(const variable_list&);
    bool needs_input_grad(size_t) const;
    std::unordered_map<std::string, struct IValueStub> saved_data;
};
template <typename T> struct Function {
    template <typename... A> static auto apply(A&&...) -> variable_list;
};
variable_list grad(const variable_list&, const variable_list&, const variable_list& = {}, optional<bool> = {},
                   bool create = false, bool unused = false);
class AutoGradMode { public: explicit AutoGradMode(bool); ~AutoGradMode(); };
}  // namespace autograd
using autograd::AutoGradMode;
using autograd::Variable;

namespace linalg {
template <typename... A> Tensor norm(const Tensor&, A&&...);
template <typename... A> Tensor vector_norm(const Tensor&, A&&...);
template <typename... A> Tensor matrix_norm(const Tensor&, A&&...);
template <typename... A> Tensor inv(const Tensor&, A&&...);
template <typename... A> Tensor solve(const Tensor&, A&&...);
template <typename... A> Tensor svd(const Tensor&, A&&...);
template <typename... A> Tensor cholesky(const Tensor&, A&&...);
template <typename... A> Tensor eigh(const Tensor&, A&&...);
template <typename... A> Tensor qr(const Tensor&, A&&...);
template <typename... A> Tensor det(const Tensor&, A&&...);
}  // namespace linalg
namespace fft {
template <typename... A> Tensor fft(const Tensor&, A&&...);
template <typename... A> Tensor ifft(const Tensor&, A&&...);
template <typename... A> Tensor rfft(const Tensor&, A&&...);
template <typename... A> Tensor irfft(const Tensor&, A&&...);
template <typename... A> Tensor fft2(const Tensor&, A&&...);
template <typename... A> Tensor fftn(const Tensor&, A&&...);
}  // namespace fft
namespace special {
template <typename... A> Tensor expit(const Tensor&, A&&...);
template <typename... A> Tensor logsumexp(const Tensor&, A&&...);
template <typename... A> Tensor softmax(const Tensor&, A&&...);
template <typename... A> Tensor log_softmax(const Tensor&, A&&...);
template <typename... A> Tensor erf(const Tensor&, A&&...);
}  // namespace special

template <typename K, typename V> class OrderedDict {
public:
    struct Item { const K& key() const; V& value(); const V& value() const; V& operator*(); V* operator->(); };
    std::vector<V> values() const;
    std::vector<K> keys() const;
    std::vector<std::pair<K, V>> pairs() const;
    typename std::vector<Item>::iterator begin();
    typename std::vector<Item>::iterator end();
    typename std::vector<Item>::const_iterator begin() const;
    typename std::vector<Item>::const_iterator end() const;
    size_t size() const;
    bool is_empty() const;
    bool contains(const K&) const;
    V& operator[](const K&);
    V& operator[](size_t);
    V* find(const K&);
};

namespace serialize {
class InputArchive {
public:
    void read(const std::string&, Tensor&, bool buffer = false);
    bool try_read(const std::string&, Tensor&, bool buffer = false);
    void read(const std::string&, InputArchive&);
    bool try_read(const std::string&, InputArchive&);
    template <typename... A> void load_from(A&&...);
    std::vector<std::string> keys();
};
class OutputArchive {
public:
    OutputArchive();
    template <typename T> explicit OutputArchive(T&&);
    void write(const std::string&, const Tensor&, bool buffer = false);
    void write(const std::string&, OutputArchive&);
    template <typename... A> void save_to(A&&...);
    std::shared_ptr<struct CompilationUnitStub> compilation_unit();
};
}  // namespace serialize

namespace nn {
class Module : public std::enable_shared_from_this<Module> {
public:
    explicit Module(std::string name);
    Module();
    Module(const Module&) = default;
    virtual ~Module();
    std::vector<Tensor> parameters(bool recurse = true) const;
    OrderedDict<std::string, Tensor> named_parameters(bool recurse = true) const;
    std::vector<Tensor> buffers(bool recurse = true) const;
    OrderedDict<std::string, Tensor> named_buffers(bool recurse = true) const;
    std::vector<std::shared_ptr<Module>> modules(bool self = true) const;
    std::vector<std::shared_ptr<Module>> children() const;
    OrderedDict<std::string, std::shared_ptr<Module>> named_children() const;
    OrderedDict<std::string, std::shared_ptr<Module>> named_modules(const std::string& = {}, bool self = true) const;
    virtual void train(bool on = true);
    void eval();
    bool is_training() const noexcept;
    virtual void to(Device, Dtype, bool non_blocking = false);
    virtual void to(Dtype, bool non_blocking = false);
    virtual void to(Device, bool non_blocking = false);
    void to(DeviceType, bool non_blocking = false);
    virtual void zero_grad(bool set_to_none = true);
    virtual void save(serialize::OutputArchive&) const;
    virtual void load(serialize::InputArchive&);
    virtual void pretty_print(std::ostream&) const;
    virtual bool is_serializable() const;
    virtual std::shared_ptr<Module> clone(const optional<Device>& = {}) const;
    template <typename F> void apply(const F&);
    template <typename T> T* as();
    const std::string& name() const;

protected:
    Tensor& register_parameter(std::string, Tensor, bool requires_grad = true);
    Tensor& register_buffer(std::string, Tensor);
    template <typename M> std::shared_ptr<M> register_module(std::string, std::shared_ptr<M>);
    template <typename H> auto register_module(std::string, H) -> std::shared_ptr<typename H::ContainedType>;
    void unregister_module(const std::string&);
};
template <typename T> class Cloneable : public Module { public: virtual void reset() = 0; };

template <typename Contained>
class ModuleHolder {
public:
    using ContainedType = Contained;
    ModuleHolder();
    ModuleHolder(std::nullptr_t);
    ModuleHolder(std::shared_ptr<Contained>);
    template <typename Head, typename... Tail,
              typename = std::enable_if_t<!(sizeof...(Tail) == 0 &&
                                            (std::is_base_of_v<ModuleHolder, std::decay_t<Head>> ||
                                             std::is_convertible_v<Head, std::shared_ptr<Contained>>))>>
    explicit ModuleHolder(Head&& head, Tail&&... tail) : impl_(new Contained(std::forward<Head>(head), std::forward<Tail>(tail)...)) {}
    explicit operator bool() const noexcept;
    Contained* operator->() const;
    Contained& operator*() const;
    const std::shared_ptr<Contained>& ptr() const;
    Contained* get() const;
    template <typename... A> auto operator()(A&&... a) const { return impl_->forward(std::forward<A>(a)...); }
    bool is_empty() const noexcept;

protected:
    std::shared_ptr<Contained> impl_;
};
#define TORCH_MODULE_IMPL(Name, ImplType)                             \
    class Name : public torch::nn::ModuleHolder<ImplType> {           \
    public:                                                           \
        using torch::nn::ModuleHolder<ImplType>::ModuleHolder;        \
        using Impl = ImplType;                                        \
    }
#define TORCH_MODULE(Name) TORCH_MODULE_IMPL(Name, Name##Impl)

#define MP_OPTION(Self, T, name) Self& name(T value); T name() const;
struct LinearOptions {
    LinearOptions(int64_t in, int64_t out);
    MP_OPTION(LinearOptions, bool, bias)
    MP_OPTION(LinearOptions, int64_t, in_features)
    MP_OPTION(LinearOptions, int64_t, out_features)
};
struct EmbeddingOptions { EmbeddingOptions(int64_t n, int64_t width); };
struct LayerNormOptions {
    LayerNormOptions(std::vector<int64_t>);
    MP_OPTION(LayerNormOptions, double, eps)
    MP_OPTION(LayerNormOptions, bool, elementwise_affine)
};
struct BatchNormOptions {
    BatchNormOptions(int64_t features);
    MP_OPTION(BatchNormOptions, double, eps)
    MP_OPTION(BatchNormOptions, double, momentum)
};
struct GroupNormOptions { GroupNormOptions(int64_t groups, int64_t channels); };
struct ConvOptions {
    ConvOptions(int64_t in, int64_t out, int64_t kernel);
    ConvOptions(int64_t in, int64_t out, IntArrayRef kernel);
    MP_OPTION(ConvOptions, int64_t, stride)
    MP_OPTION(ConvOptions, int64_t, padding)
    MP_OPTION(ConvOptions, int64_t, groups)
    MP_OPTION(ConvOptions, int64_t, dilation)
    MP_OPTION(ConvOptions, bool, bias)
};
using Conv1dOptions = ConvOptions;
using Conv2dOptions = ConvOptions;
using Conv3dOptions = ConvOptions;
struct DropoutOptions {
    DropoutOptions(double p = 0.5);
    MP_OPTION(DropoutOptions, bool, inplace)
};
struct AnyOptions {
    AnyOptions() = default;
    template <typename... A> explicit AnyOptions(A&&...);
    template <typename T> AnyOptions& inplace(T);
    template <typename T> AnyOptions& reduction(T);
    template <typename T> AnyOptions& stride(T);
    template <typename T> AnyOptions& padding(T);
    template <typename T> AnyOptions& batch_first(T);
    template <typename T> AnyOptions& dropout(T);
    template <typename T> AnyOptions& num_layers(T);
    template <typename T> AnyOptions& negative_slope(T);
    template <typename T> AnyOptions& ignore_index(T);
    template <typename T> AnyOptions& weight(T);
};
using ReLUOptions = AnyOptions;
using LeakyReLUOptions = AnyOptions;
using MaxPool2dOptions = AnyOptions;
using AvgPool2dOptions = AnyOptions;
using CrossEntropyLossOptions = AnyOptions;
using MSELossOptions = AnyOptions;
using LSTMOptions = AnyOptions;
using GRUOptions = AnyOptions;
using TransformerEncoderLayerOptions = AnyOptions;
using MultiheadAttentionOptions = AnyOptions;

// A layer: constructors from options or sizes, forward on tensors, and its parameters.
#define MP_LAYER(Name, Options)                                               \
    class Name##Impl : public Cloneable<Name##Impl> {                         \
    public:                                                                   \
        Name##Impl();                                                         \
        explicit Name##Impl(const Options&);                                  \
        template <typename A, typename... B> explicit Name##Impl(A&&, B&&...); \
        void reset() override;                                                \
        template <typename... A> Tensor forward(const Tensor&, A&&...);       \
        Tensor weight, bias, running_mean, running_var, num_batches_tracked;  \
    };                                                                        \
    TORCH_MODULE(Name);
MP_LAYER(Linear, LinearOptions) MP_LAYER(Embedding, EmbeddingOptions) MP_LAYER(LayerNorm, LayerNormOptions)
MP_LAYER(BatchNorm1d, BatchNormOptions) MP_LAYER(BatchNorm2d, BatchNormOptions) MP_LAYER(BatchNorm3d, BatchNormOptions)
MP_LAYER(GroupNorm, GroupNormOptions) MP_LAYER(InstanceNorm2d, BatchNormOptions)
MP_LAYER(Conv1d, ConvOptions) MP_LAYER(Conv2d, ConvOptions) MP_LAYER(Conv3d, ConvOptions)
MP_LAYER(ConvTranspose1d, ConvOptions) MP_LAYER(ConvTranspose2d, ConvOptions) MP_LAYER(ConvTranspose3d, ConvOptions)
MP_LAYER(Dropout, DropoutOptions) MP_LAYER(Dropout2d, DropoutOptions)
MP_LAYER(ReLU, AnyOptions) MP_LAYER(LeakyReLU, AnyOptions) MP_LAYER(GELU, AnyOptions) MP_LAYER(SiLU, AnyOptions)
MP_LAYER(Tanh, AnyOptions) MP_LAYER(Sigmoid, AnyOptions) MP_LAYER(Softmax, AnyOptions) MP_LAYER(LogSoftmax, AnyOptions)
MP_LAYER(ELU, AnyOptions) MP_LAYER(PReLU, AnyOptions) MP_LAYER(Softplus, AnyOptions) MP_LAYER(Identity, AnyOptions)
MP_LAYER(Flatten, AnyOptions) MP_LAYER(MaxPool2d, AnyOptions) MP_LAYER(AvgPool2d, AnyOptions)
MP_LAYER(AdaptiveAvgPool2d, AnyOptions) MP_LAYER(Upsample, AnyOptions) MP_LAYER(Hardswish, AnyOptions)
MP_LAYER(BCELoss, AnyOptions) MP_LAYER(BCEWithLogitsLoss, AnyOptions) MP_LAYER(CrossEntropyLoss, AnyOptions)
MP_LAYER(MSELoss, AnyOptions) MP_LAYER(L1Loss, AnyOptions) MP_LAYER(NLLLoss, AnyOptions) MP_LAYER(SmoothL1Loss, AnyOptions)
MP_LAYER(KLDivLoss, AnyOptions) MP_LAYER(HuberLoss, AnyOptions) MP_LAYER(CosineEmbeddingLoss, AnyOptions)
MP_LAYER(TransformerEncoderLayer, AnyOptions) MP_LAYER(MultiheadAttention, AnyOptions) MP_LAYER(LSTM, AnyOptions)
MP_LAYER(GRU, AnyOptions) MP_LAYER(LSTMCell, AnyOptions) MP_LAYER(GRUCell, AnyOptions) MP_LAYER(Bilinear, AnyOptions)

class SequentialImpl : public Cloneable<SequentialImpl> {
public:
    SequentialImpl();
    template <typename... A> explicit SequentialImpl(A&&...);
    void reset() override;
    template <typename M> void push_back(M&&);
    template <typename M> void push_back(std::string, M&&);
    template <typename R = Tensor, typename... A> R forward(A&&...);
    size_t size() const noexcept;
    bool is_empty() const noexcept;
    std::shared_ptr<Module> operator[](size_t) const;
    std::shared_ptr<Module> ptr(size_t) const;
    std::vector<std::shared_ptr<Module>>::iterator begin();
    std::vector<std::shared_ptr<Module>>::iterator end();
};
class Sequential : public ModuleHolder<SequentialImpl> {
public:
    using ModuleHolder<SequentialImpl>::ModuleHolder;
    Sequential();
    Sequential(std::initializer_list<std::pair<std::string, std::shared_ptr<Module>>>);
};
class ModuleListImpl : public Cloneable<ModuleListImpl> {
public:
    ModuleListImpl();
    template <typename... A> explicit ModuleListImpl(A&&...);
    void reset() override;
    template <typename M> void push_back(M&&);
    size_t size() const noexcept;
    std::shared_ptr<Module> operator[](size_t) const;
    template <typename T> T& at(size_t) const;
    std::vector<std::shared_ptr<Module>>::iterator begin();
    std::vector<std::shared_ptr<Module>>::iterator end();
};
TORCH_MODULE(ModuleList);
class ModuleDictImpl : public Cloneable<ModuleDictImpl> { public: void reset() override; };
TORCH_MODULE(ModuleDict);

namespace functional {
struct AnyFuncOptions : AnyOptions { using AnyOptions::AnyOptions; AnyFuncOptions() = default; };
#define MP_FUNCTIONAL(name) template <typename... A> Tensor name(const Tensor&, A&&...);
MP_TORCH_FUNCTIONS(MP_FUNCTIONAL)
MP_FUNCTIONAL(softmax) MP_FUNCTIONAL(log_softmax) MP_FUNCTIONAL(cross_entropy) MP_FUNCTIONAL(relu) MP_FUNCTIONAL(normalize)
MP_FUNCTIONAL(interpolate) MP_FUNCTIONAL(grid_sample) MP_FUNCTIONAL(softmin) MP_FUNCTIONAL(tanhshrink)
MP_FUNCTIONAL(local_response_norm) MP_FUNCTIONAL(unfold) MP_FUNCTIONAL(fold) MP_FUNCTIONAL(prelu) MP_FUNCTIONAL(sigmoid)
#undef MP_FUNCTIONAL
#define MP_FUNC_OPTIONS(Name) using Name = AnyFuncOptions;
MP_FUNC_OPTIONS(SoftmaxFuncOptions) MP_FUNC_OPTIONS(LogSoftmaxFuncOptions) MP_FUNC_OPTIONS(CrossEntropyFuncOptions)
MP_FUNC_OPTIONS(MSELossFuncOptions) MP_FUNC_OPTIONS(NormalizeFuncOptions) MP_FUNC_OPTIONS(InterpolateFuncOptions)
MP_FUNC_OPTIONS(PadFuncOptions) MP_FUNC_OPTIONS(DropoutFuncOptions) MP_FUNC_OPTIONS(LayerNormFuncOptions)
MP_FUNC_OPTIONS(BinaryCrossEntropyFuncOptions) MP_FUNC_OPTIONS(MaxPool2dFuncOptions) MP_FUNC_OPTIONS(AvgPool2dFuncOptions)
MP_FUNC_OPTIONS(GELUFuncOptions) MP_FUNC_OPTIONS(SmoothL1LossFuncOptions)
}  // namespace functional
namespace F = functional;

namespace utils {
double clip_grad_norm_(const std::vector<Tensor>&, double max_norm, double norm_type = 2.0, bool error = false);
double clip_grad_norm_(Tensor, double max_norm, double norm_type = 2.0, bool error = false);
void clip_grad_value_(const std::vector<Tensor>&, double value);
Tensor parameters_to_vector(const std::vector<Tensor>&);
void vector_to_parameters(const Tensor&, const std::vector<Tensor>&);
}  // namespace utils
namespace init {
#define MP_INIT(name) template <typename... A> Tensor name(Tensor, A&&...);
MP_INIT(kaiming_normal_) MP_INIT(kaiming_uniform_) MP_INIT(xavier_normal_) MP_INIT(xavier_uniform_) MP_INIT(normal_)
MP_INIT(uniform_) MP_INIT(constant_) MP_INIT(zeros_) MP_INIT(ones_) MP_INIT(orthogonal_)
#undef MP_INIT
}  // namespace init
namespace parallel {
template <typename... A> Tensor data_parallel(A&&...);
}
}  // namespace nn

namespace optim {
class OptimizerOptions {
public:
    virtual ~OptimizerOptions();
    virtual double get_lr() const;
    virtual void set_lr(double);
};
class OptimizerParamState { public: virtual ~OptimizerParamState(); };
class OptimizerParamGroup {
public:
    OptimizerParamGroup(std::vector<Tensor>);
    std::vector<Tensor>& params();
    const std::vector<Tensor>& params() const;
    OptimizerOptions& options();
    bool has_options() const;
};
class Optimizer {
public:
    using LossClosure = std::function<Tensor()>;
    template <typename... A> explicit Optimizer(A&&...);
    Optimizer(const Optimizer&) = delete;
    virtual ~Optimizer();
    virtual Tensor step(LossClosure closure = nullptr);
    void zero_grad(bool set_to_none = true);
    std::vector<OptimizerParamGroup>& param_groups() noexcept;
    const std::vector<OptimizerParamGroup>& param_groups() const noexcept;
    OptimizerOptions& defaults() noexcept;
    std::unordered_map<void*, std::unique_ptr<OptimizerParamState>>& state() noexcept;
    void add_param_group(const OptimizerParamGroup&);
    size_t size() const noexcept;
    virtual void save(serialize::OutputArchive&) const;
    virtual void load(serialize::InputArchive&);
};
#define MP_OPTIMIZER(Name)                                                          \
    struct Name##Options : OptimizerOptions {                                       \
        Name##Options(double lr = 1e-3);                                            \
        MP_OPTION(Name##Options, double, lr)                                        \
        MP_OPTION(Name##Options, double, eps)                                       \
        MP_OPTION(Name##Options, double, weight_decay)                              \
        MP_OPTION(Name##Options, double, momentum)                                  \
        MP_OPTION(Name##Options, double, alpha)                                     \
        MP_OPTION(Name##Options, bool, amsgrad)                                     \
        MP_OPTION(Name##Options, bool, nesterov)                                    \
        Name##Options& betas(std::tuple<double, double>);                           \
    };                                                                              \
    class Name : public Optimizer {                                                 \
    public:                                                                         \
        explicit Name(std::vector<Tensor> params, Name##Options defaults = {});     \
        explicit Name(std::vector<OptimizerParamGroup> groups, Name##Options defaults = {}); \
        Tensor step(LossClosure closure = nullptr) override;                        \
    };
MP_OPTIMIZER(Adam) MP_OPTIMIZER(AdamW) MP_OPTIMIZER(SGD) MP_OPTIMIZER(RMSprop) MP_OPTIMIZER(Adagrad) MP_OPTIMIZER(LBFGS)
class LRScheduler { public: void step(); virtual ~LRScheduler(); };
class StepLR : public LRScheduler { public: StepLR(Optimizer&, unsigned step, double gamma = 0.1); };
}  // namespace optim

namespace jit {
struct Module {
    template <typename... A> Tensor forward(A&&...);
    void eval();
    void train(bool = true);
    template <typename... A> void to(A&&...);
};
template <typename... A> Module load(A&&...);
}  // namespace jit
namespace data {
template <typename Data = Tensor, typename Target = Tensor> struct Example { Data data; Target target; };
}
}  // namespace torch

namespace c10 {
struct IValue {
    IValue();
    template <typename T> IValue(T&&);
    at::Tensor toTensor() const;
    double toDouble() const;
    int64_t toInt() const;
    bool toBool() const;
};
}  // namespace c10
namespace torch::autograd { struct IValueStub : c10::IValue { using c10::IValue::IValue; }; }
std::ostream& operator<<(std::ostream&, const torch::nn::Module&);
