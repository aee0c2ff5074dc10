#include "instrument/torch/fp32_kernels.hpp"

#include "instrument/torch/tensors.hpp"

#if MP_TORCH_AT_LEAST(2, 11)
#include <ATen/native/ConvUtils.h>
#endif

#include <array>
#include <limits>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <vector>

namespace mp::twin {
namespace {

constexpr const char* kOtherNumbers = "with dropout, the kernel of fp32 draws other numbers";
constexpr const char kRecurrent[] = "aten::_cudnn_rnn";
constexpr const char kConvolution[] = "aten::convolution", kBackward[] = "aten::convolution_backward";

// The arguments of an op by name; tensors are the twin's.
class Arguments {
public:
    explicit Arguments(const Call& call) : call_(call) {}

    const IValue* find(const char* name) const {
        const auto& arguments = call_.op.schema().arguments();
        for (std::size_t i = 0; i < arguments.size(); ++i)
            if (arguments[i].name() == name) return &call_.shadow[i];
        return nullptr;
    }
    at::Tensor tensor(const char* name) const {
        const IValue* const value = find(name);
        return value && value->isTensor() ? value->toTensor() : at::Tensor();
    }

private:
    const Call& call_;
};

// As aten::convolution calls it, without TF32.
Stack convolution(const Call& call) {
    static const c10::OperatorHandle op =
        c10::Dispatcher::singleton().findSchemaOrThrow("aten::_convolution", "");
    const at::Context& context = at::globalContext();
    Stack stack(call.shadow.begin(), call.shadow.end());
    torch::jit::push(stack, context.benchmarkCuDNN(),
                     context.deterministicCuDNN() || context.deterministicAlgorithms(),
                     context.userEnabledCuDNN(), false);
    op.callBoxed(&stack);
    return stack;
}

// The dtype of an argument's program value, by name.
at::ScalarType real_dtype(const Call& call, const char* name) {
    const auto& arguments = call.op.schema().arguments();
    for (std::size_t i = 0; i < arguments.size(); ++i)
        if (arguments[i].name() == name) return call.real[i].toTensor().scalar_type();
    return at::ScalarType::Undefined;
}

Stack as_it_is(const Call& call) {
    Stack results(call.shadow.begin(), call.shadow.end());
    call.op.redispatchBoxed(call.below, &results);
    return results;
}

Stack recurrent(const Call& call) {
    const Arguments given(call);
    const bool drops = given.find("train")->toBool() && given.find("dropout")->toDouble() > 0;
    if (drops && is_low_precision(real_dtype(call, "input"))) throw std::runtime_error(kOtherNumbers);
    return as_it_is(call);
}

}  // namespace

#if MP_TORCH_AT_LEAST(2, 11)

namespace {

using Sizes = std::vector<std::int64_t>;

// One backward of a convolution as cuDNN gets it: with at least two spatial dimensions.
struct ConvolutionBackward {
    explicit ConvolutionBackward(const Arguments& given)
        : gradient(given.tensor("grad_output")),
          input(given.tensor("input")),
          weight(given.tensor("weight")),
          stride(sizes(given, "stride")),
          padding(sizes(given, "padding")),
          dilation(sizes(given, "dilation")),
          output_padding(sizes(given, "output_padding")),
          groups(given.find("groups")->toInt()),
          transposed(given.find("transposed")->toBool()),
          is_flat(weight.dim() == 3) {
        const auto wanted = given.find("output_mask")->toBoolList();
        for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = wanted[i];
        if (!is_flat) return;
        gradient = gradient.unsqueeze(2), input = input.contiguous().unsqueeze(2),
        weight = weight.unsqueeze(2);
        stride.insert(stride.begin(), 1), dilation.insert(dilation.begin(), 1);
        padding.insert(padding.begin(), 0), output_padding.insert(output_padding.begin(), 0);
    }

    // One number stands for all dimensions.
    static Sizes sizes(const Arguments& given, const char* name) {
        Sizes all = given.find(name)->toIntVector();
        const auto dimensions = static_cast<std::size_t>(given.tensor("weight").dim() - 2);
        if (all.size() == 1) all.resize(dimensions, all[0]);
        return all;
    }

    at::native::ConvBackend backend() const {
        const auto symbols = [](const Sizes& all) { return c10::fromIntArrayRefSlow(all); };
        return at::native::select_conv_backend(input, weight, std::nullopt, symbols(stride), symbols(padding),
                                               symbols(dilation), transposed, symbols(output_padding), groups,
                                               at::OptionalSymIntArrayRef());
    }

    at::Tensor gradient, input, weight;
    Sizes stride, padding, dilation, output_padding;
    std::int64_t groups;
    bool transposed, is_flat;
    std::array<bool, 3> mask{};
};

// The function that serves a device in a stub of torch; null: there is none. The stub's own search has a symbol whose
// name depends on the processors that torch was built for.
template <typename Stub>
typename Stub::FnPtr function_for(const Stub& stub, c10::DeviceType device) {
    static_assert(sizeof(Stub) == sizeof(at::native::DispatchStubImpl));
    const auto& table = reinterpret_cast<const at::native::DispatchStubImpl&>(stub);
    void* const found = device == c10::DeviceType::CUDA          ? table.cuda_dispatch_ptr
                        : device == c10::DeviceType::PrivateUse1 ? table.privateuse1_dispatch_ptr
                                                                 : nullptr;
    return reinterpret_cast<typename Stub::FnPtr>(found);
}

// The gradients of input and weight as aten::convolution_backward has them of cuDNN, but without TF32. None where
// another library computes them. A device out of tree may give torch the function too.
std::optional<std::tuple<at::Tensor, at::Tensor>> run_in_cudnn(const ConvolutionBackward& b) {
    using at::native::ConvBackend;
    const ConvBackend told = b.backend();
    const auto own = b.transposed ? ConvBackend::CudnnTranspose : ConvBackend::Cudnn;
    if (told != own && told != ConvBackend::Overrideable) return std::nullopt;
    const c10::DeviceType device = b.input.device().type();
    const at::Context& context = at::globalContext();
    const bool benchmark = context.benchmarkCuDNN();
    const bool deterministic = context.deterministicCuDNN() || context.deterministicAlgorithms();
    const at::Tensor input =
        b.mask[1] ? b.input.contiguous(at::native::_determine_backend_memory_format(b.input, b.weight, own))
                  : b.input;
    const std::array<bool, 2> mask{b.mask[0], b.mask[1]};
    if (b.transposed) {
        const auto run = function_for(at::native::cudnn_convolution_transpose_backward_stub, device);
        if (!run) return std::nullopt;
        return run(input, b.gradient, b.weight, b.padding, b.output_padding, b.stride, b.dilation, b.groups,
                   benchmark, deterministic, false, mask);
    }
    const auto run = function_for(at::native::cudnn_convolution_backward_stub, device);
    if (!run) return std::nullopt;
    return run(input, b.gradient, b.weight, b.padding, b.stride, b.dilation, b.groups, benchmark,
               deterministic, false, mask);
}

Stack convolution_backward(const Call& call) {
    if (call.shadow[1].toTensor().device().is_cpu()) return as_it_is(call);
    const ConvolutionBackward b{Arguments(call)};
    const auto gradients = run_in_cudnn(b);
    if (!gradients) return as_it_is(call);
    auto [of_input, of_weight] = *gradients;
    if (b.is_flat && of_input.defined()) of_input = of_input.squeeze(2);
    if (b.is_flat && of_weight.defined()) of_weight = of_weight.squeeze(2);
    at::Tensor of_bias;
    if (b.mask[2]) of_bias = b.gradient.dim() == 5 ? b.gradient.sum({0, 2, 3, 4}) : b.gradient.sum({0, 2, 3});
    return {of_input, of_weight, of_bias};
}

}  // namespace

#else

namespace {

Stack convolution_backward(const Call& call) { return as_it_is(call); }

}  // namespace

#endif

#if MP_TORCH_AT_LEAST(2, 5)

namespace {

// The kernel reads rows of a bias from addresses that are multiples of 16 bytes. As torch does, before it takes it.
at::Tensor aligned_bias(const at::Tensor& bias, const at::Tensor& query, const at::Tensor& key) {
    if (!bias.defined() || bias.numel() == 0) return {};
    constexpr std::int64_t kAligned = 8;  // elements
    const std::int64_t columns = bias.size(-1), more = (kAligned - columns % kAligned) % kAligned;
    const at::Tensor padded = more == 0 ? bias : at::pad(bias, {0, more}).slice(-1, 0, columns);
    return padded.expand({query.size(0), query.size(1), query.size(2), key.size(2)});
}

// One attention in the memory-efficient kernel.
struct Efficient {
    explicit Efficient(const Arguments& given)
        : query(given.tensor("query")),
          key(given.tensor("key")),
          value(given.tensor("value")),
          causal(given.find("is_causal")->toBool()) {
        if (given.find("dropout_p")->toDouble() != 0) throw std::runtime_error(kOtherNumbers);
        if (const IValue* const told = given.find("scale"); told && told->isDouble())
            scale = told->toDouble();
        shared = query.size(1) / key.size(1);
        if (shared > 1) key = key.repeat_interleave(shared, 1), value = value.repeat_interleave(shared, 1);
        bias = aligned_bias(given.tensor("attn_bias"), query, key);
    }

    // The gradient of a key or value that several heads share.
    at::Tensor of_heads(const at::Tensor& gradient) const {
        if (shared <= 1) return gradient;
        return gradient.reshape({gradient.size(0), gradient.size(1) / shared, shared, gradient.size(2), -1})
            .sum(2);
    }

    at::Tensor query, key, value, bias;
    bool causal;
    std::optional<double> scale;
    std::int64_t shared = 1;  // heads of the query for one of the key
};

Stack forward(const Call& call, const Efficient& a) {
    const bool has_bias = a.bias.defined();
    const auto [out, sums, seed, offset] = at::_scaled_dot_product_efficient_attention(
        a.query, a.key, a.value, has_bias ? std::optional(a.bias) : std::nullopt, true, 0.0, a.causal,
        a.scale);
    Stack results(call.op.schema().returns().size());
    results[0] = out;
    const IValue& real = (*call.stack)[call.stack->size() - results.size() + 1];
    if (real.isTensor() && real.toTensor().defined() && real.toTensor().numel() > 0)
        results[1] = sums.slice(-1, 0, a.query.size(2)).reshape(real.toTensor().sizes());
    return results;
}

Stack backward(const Efficient& a, const Arguments& given) {
    constexpr std::int64_t kAligned = 32;  // the kernel reads so many sums at a time
    const std::int64_t rows = a.query.size(2), all = (rows + kAligned - 1) / kAligned * kAligned;
    const at::Tensor told = given.tensor("logsumexp");
    const at::Tensor sums = at::full({a.query.size(0), a.query.size(1), all},
                                     std::numeric_limits<float>::infinity(), told.options());
    sums.slice(-1, 0, rows).copy_(told.reshape({a.query.size(0), a.query.size(1), rows}));
    const at::Tensor unused = at::empty({}, at::kLong);
    const auto [query, key, value, bias] = at::_scaled_dot_product_efficient_attention_backward(
        given.tensor("grad_out"), a.query, a.key, a.value, a.bias, given.tensor("out"), sums, unused, unused,
        0.0, {true, true, true, false}, a.causal, a.scale);
    return {query, a.of_heads(key), a.of_heads(value)};
}

Stack attention(const Call& call) {
    const Arguments given(call);
    if (call.info.name.rfind("aten::_scaled_dot_product_", 0) != 0)
        throw std::runtime_error("has no kernel in fp32");
    const Efficient attention(given);
    return given.find("grad_out") ? backward(attention, given) : forward(call, attention);
}

}  // namespace

#else

namespace {

Stack attention(const Call&) { throw std::runtime_error("has no kernel in fp32"); }

}  // namespace

#endif

bool has_own_fp32_kernel(const OpInfo& info) {
    return info.traits.has(Trait::half_only) || info.name == kConvolution || info.name == kBackward ||
           info.name == kRecurrent;
}

Stack run_in_fp32(const Call& call) {
    if (call.info.traits.has(Trait::half_only)) return attention(call);
    if (call.info.name == kRecurrent) return recurrent(call);
    return call.info.name == kConvolution ? convolution(call) : convolution_backward(call);
}

}  // namespace mp::twin
