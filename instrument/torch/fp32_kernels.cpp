#include "instrument/torch/fp32_kernels.hpp"

#include <limits>
#include <stdexcept>

namespace mp::twin {
namespace {

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

}  // namespace

#if MP_TORCH_AT_LEAST(2, 5)

namespace {

// The arguments of an attention op by name; tensors are the twin's.
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
        if (given.find("dropout_p")->toDouble() != 0)
            throw std::runtime_error("with dropout, the kernel of fp32 draws other numbers");
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
    return info.traits.has(Trait::half_only) ||
           (info.traits.has(Trait::product) && info.name == "aten::convolution");
}

Stack run_in_fp32(const Call& call) {
    return call.info.traits.has(Trait::half_only) ? attention(call) : convolution(call);
}

}  // namespace mp::twin
