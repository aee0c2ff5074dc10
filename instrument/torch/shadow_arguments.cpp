#include "instrument/torch/shadow_arguments.hpp"

#include <cctype>
#include <stdexcept>

#include "instrument/torch/tensors.hpp"
#include "instrument/torch/test_hooks.hpp"
#include "instrument/torch/thread_state.hpp"

namespace mp::twin {
namespace {

bool is_wrapped_number(const at::Tensor& t) {
    return t.unsafeGetTensorImpl()->is_wrapped_number() && !rule_disabled("wrapped_number");
}

// Whether the name of an autograd node is that of an op's backward: "MaxPool2DWithIndicesBackward0" of
// "max_pool2d_with_indices".
bool names_backward_of(std::string_view node, std::string_view base) {
    std::size_t at = 0;
    for (const char c : base) {
        if (c == '_') continue;
        if (at == node.size() || std::tolower(static_cast<unsigned char>(node[at])) != c) return false;
        ++at;
    }
    return node.substr(at).starts_with("Backward");
}

// Whether an op that runs now belongs to the backward of `maker`.
bool in_backward_of(const OpInfo& maker, const OpInfo& op) {
    if (rule_disabled("own_backward")) return false;
    const NodePlace* const node = thread_state().node;
    return (node && names_backward_of(node->name, maker.base)) || op.base == maker.base + "_backward";
}

// Bytes without a meaning of their own, laid out for the dtype of the op that filled them.
bool is_workspace(const ShadowMap::Lookup& found) {
    return found.shadow.defined() && found.shadow.scalar_type() == at::kByte &&
           found.maker->traits.has(Trait::own_integers);
}

IValue low_precision_to_fp32(const IValue& dtype) {
    if (!dtype.isInt()) return dtype;
    const auto type = static_cast<at::ScalarType>(dtype.toInt());
    return IValue(static_cast<std::int64_t>(twin_dtype(type)));
}

constexpr const char* kOutside =
    "reads a value that the program computed outside the dispatcher (a custom kernel, numpy, ctypes)";

}  // namespace

// Data from outside is the program's own: a batch, loaded weights. A value that belongs to the graph of autograd, a
// gradient, or a parameter that changed is computed, and the twin has not seen how. New memory that the op fills is
// not.
bool ShadowArguments::computed_outside(ShadowMap::Found found, const Argument& argument,
                                       const at::Tensor& t) const {
    if (argument.overwrite || t.numel() == 0 || t.dim() == 0 || found == ShadowMap::Found::lost) return false;
    if (argument.write && found == ShadowMap::Found::unknown) return false;
    const bool in_backward = thread_state().node && !at::GradMode::is_enabled();
    // The view of a weight, as of every linear layer, is data as the weight is.
    const bool of_graph = t.requires_grad() && !t.is_leaf() && !(t.is_view() && t._base().is_leaf());
    if (found == ShadowMap::Found::stale)
        return in_backward || of_graph || (t.requires_grad() && now_.number > 0);
    // Mode step forgets all values between steps.
    return (in_backward || of_graph) && control_.options().mode != trace::Mode::step;
}

void ShadowArguments::prepare(Call& call) {
    if (rule_disabled("prepare") || (rule_disabled("after_two") && now_.number > 1))
        throw std::runtime_error("switched off by a test");
    const TwinScope scope;
    call.bytes = call.info.rule == Rule::collective ? gathers_bytes(call)
                                                    : call.info.moves_bytes && moves_floats_as_bytes(call);
    call.shadow.reserve(call.real.size());
    for (std::size_t i = 0; i < call.real.size(); ++i)
        call.shadow.push_back(convert(call, call.info.arguments[i], call.real[i]));
}

bool ShadowArguments::moves_floats_as_bytes(const Call& call) {
    bool found = false;
    for (std::size_t i = 0; i < call.real.size(); ++i) {
        if (!call.info.arguments[i].tensor) continue;
        for_each_tensor(call.real[i], [&](const at::Tensor& t) {
            if (found || !has_plain_memory(t) || t.scalar_type() != at::kByte) return;
            if (call.info.arguments[i].overwrite) return;
            found = shadows_.lanes(t, false).defined();
        });
    }
    return found;
}

IValue ShadowArguments::convert(Call& call, const Argument& argument, const IValue& value) {
    if (argument.dtype) return low_precision_to_fp32(value);
    if (argument.half_to_float) return IValue(false);
    if (!argument.tensor || value.isNone()) return value;
    if (value.isTensor()) return convert_tensor(call, argument, value.toTensor());
    if (!value.isList()) return value;
    const c10::List<IValue> list = value.toList();
    c10::impl::GenericList converted(list.elementType());
    converted.reserve(list.size());
    for (std::size_t i = 0; i < list.size(); ++i) converted.push_back(convert(call, argument, list.get(i)));
    return converted;
}

at::Tensor ShadowArguments::convert_tensor(Call& call, const Argument& argument, const at::Tensor& t) {
    if (!t.defined() || argument.keep_real || is_wrapped_number(t)) return t;
    if (!argument.write && has_sparse_floats(t)) {
        const at::Tensor values = shadow_of_float(call, argument, t._values());
        return at::_sparse_coo_tensor_unsafe(t._indices(), values, t.sizes())._coalesced_(t.is_coalesced());
    }
    if (!has_plain_memory(t)) {
        call.possible = false;
        call.why_not = t.is_sparse()      ? "sparse tensor"
                       : t.is_quantized() ? "quantized tensor"
                                          : "tensor without plain memory";
        return t;
    }
    return carries_floats(t) ? shadow_of_float(call, argument, t) : shadow_of_integer(call, argument, t);
}

at::Tensor ShadowArguments::shadow_of_float(Call& call, const Argument& argument, const at::Tensor& t) {
    using Found = ShadowMap::Found;
    using Seed = CoverageCounters::Seed;
    at::Tensor shadow;
    const bool apart = !call.local && argument.out && t.numel() == 0;
    if (call.local) {
        shadow = at::empty_like(t, t.options().dtype(twin_dtype(t.scalar_type()))).copy_(t);
    } else if (apart) {
        shadow = at::empty({0}, t.options().dtype(twin_dtype(t.scalar_type())));
    } else {
        const ShadowMap::Lookup found = shadows_.find(t);
        shadow = found.shadow;
        if (found.decider) coverage_.decision(found.decider->name);
        if (!shadow.defined()) {
            shadow = shadows_.seed(t, argument.overwrite);
            // Writes of a whole tensor need no history. All other tensors start from the program's values.
            const Seed why = found.found == Found::stale  ? Seed::stale
                             : found.found == Found::lost ? Seed::lost
                                                          : Seed::external;
            if (!argument.overwrite && t.numel() > 0) coverage_.seed(call.info.name, why, bytes_of(t));
            if (computed_outside(found.found, argument, t))
                coverage_.outside(call.info.name + ": " + kOutside, bytes_of(t));
            shadows_.written(t);
        }
    }
    if (argument.write) call.written_floats.push_back({t, shadow, apart});
    return shadow;
}

// The twin's op made other integers than the program's. Its own backward reads them, as an fp32 run would; the fp32 op
// on real inputs reads the real ones where it can. For every other op they are a decision of the program.
at::Tensor ShadowArguments::own_integers(Call& call, const at::Tensor& t, const ShadowMap::Lookup& found) {
    const bool same_size = found.shadow.defined() && found.shadow.sizes() == t.sizes() &&
                           found.shadow.scalar_type() == t.scalar_type();
    const bool reads_own =
        found.maker->traits.has(Trait::own_integers) || in_backward_of(*found.maker, call.info);
    if (found.shadow.defined() && reads_own && !(same_size && call.local)) return found.shadow;
    if (same_size) {
        if (!call.local) coverage_.decision(found.maker->name);
        return t;
    }
    // A kernel that reads the program's would run over their end.
    call.possible = false;
    call.why_not = "an integer argument has another size in fp32";
    return t;
}

at::Tensor ShadowArguments::shadow_of_integer(Call& call, const Argument& argument, const at::Tensor& t) {
    if (call.bytes && t.scalar_type() == at::kByte) {
        if (argument.write) call.written_floats.push_back({t, t});
        return shadows_.lanes(t, true);
    }
    const ShadowMap::Lookup found = shadows_.find(t);
    if (argument.write && found.maker && found.found != ShadowMap::Found::hit)
        shadows_.forget_integers(t);
    else if (found.found == ShadowMap::Found::own && !(call.local && argument.write))
        return own_integers(call, t, found);
    if (call.local) return argument.write ? t.clone() : is_workspace(found) ? found.shadow : t;
    if (argument.real_mask && !control_.options().free_ints) return t;
    if (found.maker && !found.shadow.defined()) coverage_.decision(found.maker->name);
    if (found.shadow.defined()) {
        if (argument.write) call.written_integers.push_back({t, found.shadow});
        return found.shadow;
    }
    if (!argument.write) return t;
    at::Tensor copy = t.clone();
    call.written_integers.push_back({t, copy});
    return copy;
}

}  // namespace mp::twin
