#include "analyzer/analyses/protocol_events.hpp"

#include <algorithm>
#include <array>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/support.hpp"
#include "kernels/numerics/op_traits.hpp"

namespace mp::lint {
namespace {

using enum EventKind;

// Methods called on a receiver, one bit each.
enum Method : std::uint32_t {
    kScale = 1,
    kUnscale = 2,
    kStep = 4,
    kUpdate = 8,
    kZeroGrad = 16,
    kBackward = 32,        // with the loss as its argument: an engine's
    kScaledBackward = 64,  // x.scale(loss).backward()
    kStepped = 128,        // a scaler steps it
};

std::uint32_t method_bit(std::string_view leaf) {
    if (leaf == "scale") return kScale;
    if (leaf.starts_with("unscale"))
        return kUnscale;  // unscale_, unscale_gradients; a parameter's, in own scalers
    if (leaf == "step") return kStep;
    if (leaf == "update") return kUpdate;
    if (leaf == "zero_grad") return kZeroGrad;
    return 0;
}

bool are_a_scalers(std::uint32_t methods) {
    if (methods & kScaledBackward) return true;
    const auto has = [&](std::uint32_t all) { return (methods & all) == all; };
    return has(kScale | kUnscale) || has(kScale | kStep | kUpdate);
}

bool are_an_engines(std::uint32_t methods) { return (methods & kBackward) && (methods & kStep); }

bool are_an_optimizers(std::uint32_t methods) {
    return !are_an_engines(methods) && !are_a_scalers(methods) &&
           ((methods & kStepped) || ((methods & kZeroGrad) && (methods & kStep)));
}

bool starts_any(std::string_view text, std::initializer_list<std::string_view> heads) {
    return std::ranges::any_of(heads, [&](std::string_view h) { return text.starts_with(h); });
}

ClassKind kind_of(std::string_view owner) {
    const std::string_view leaf = last_part(owner);
    const bool library = starts_any(owner, {"torch.", "fairscale.", "torch_npu.", "torch_xla."});
    if (library && leaf.ends_with("GradScaler")) return ClassKind::scaler;
    if (starts_any(owner, {"torch.optim.lr_scheduler.", "torch.optim.swa_utils."}) ||
        (owner.starts_with("torch::optim::") && (leaf.ends_with("LR") || leaf.ends_with("Scheduler"))))
        return ClassKind::scheduler;
    if (starts_any(owner, {"torch.optim.", "torch::optim::", "apex.optimizers.", "bitsandbytes.optim.",
                           "transformers.optimization.", "timm.optim."}))
        return ClassKind::optimizer;
    if (owner == "accelerate.Accelerator" || leaf == "Fabric" || leaf == "DeepSpeedEngine")
        return ClassKind::engine;
    return ClassKind::unknown;
}

bool is_clip(std::string_view leaf) {
    constexpr std::array<std::string_view, 8> kClips{
        "clip_grad_norm_",       "clip_grad_norm",     "clip_grad_value_", "clip_grad_value",
        "clip_grads_with_norm_", "dispatch_clip_grad", "clip_gradients",   "clip_grad_norm_fp32"};
    return any_of(leaf, kClips);
}

bool is_named_gradient(const Operand& o) {
    return o.name.str().ends_with(".grad") || o.name.str().ends_with(".grad.data");
}

// p.grad.copy_(p.grad.clamp(-1, 1))
bool copies_clipped(const Function& f, const Call& copy) {
    if (copy.args.size() != 2 || !is_named_gradient(copy.args[0])) return false;
    const Call* made = call_of(f, copy.args[1]);
    const std::string_view name = made ? last_part(made->name.str()) : "";
    return (name == "clamp" || name == "clip") && !made->args.empty() && is_named_gradient(made->args[0]);
}

// The effect on a gradient, by the name of the method alone.
EventKind done_to_gradient(std::string_view leaf) {
    // A copy is not listed as a write, because it stores the mean over ranks, which has the same scale.
    constexpr std::array<std::string_view, 8> kWrites{"mul_",          "clamp_",
                                                      "clip_",         "__imul__",
                                                      "_foreach_mul_", "_foreach_clamp_min_",
                                                      "clamp",         "_foreach_clamp_max_"};
    constexpr std::array<std::string_view, 4> kNoise{"add_", "__iadd__", "sub_", "normal_"};
    // Division is how gradients are unscaled or averaged by hand.
    if (leaf == "div_" || leaf == "__itruediv__" || leaf == "operator/=") return read_scale;
    if (any_of(leaf, kWrites)) return clip;
    const bool reads = leaf == "norm" || traits_of(leaf).has(Trait::finite_test);
    return reads || any_of(leaf, kNoise) ? inspect : none;
}

EventKind gradient_event(const Function& f, const Call& call, std::string_view leaf) {
    const EventKind kind = done_to_gradient(leaf);
    // p.grad = p.grad.clamp(-1, 1): of the two only the assignment changes the gradient.
    if (leaf == "clamp" && !is_named_gradient(call.result)) return none;
    if (leaf == "copy_") return copies_clipped(f, call) ? clip : none;
    return kind != none && !call.args.empty() && is_gradient(f, call.args[0]) ? kind : none;
}

bool opens_region(std::string_view name) {
    return name == "at::autocast::set_enabled" ||
           (name.ends_with("autocast.__enter__") && name.starts_with("torch."));
}

// Objects and their classes are learnt from constructors and from the methods of the protocol.
bool may_teach(std::string_view name) {
    const std::string_view leaf = last_part(name);
    return method_bit(leaf) != 0 || leaf == "backward" || kind_of(name) != ClassKind::unknown;
}

bool is_step_or_unscale(std::string_view name) {
    return (method_bit(last_part(name)) & (kStep | kUnscale)) != 0;
}

// Position of the autocast's dtype among the constructor's arguments.
const Operand* dtype_argument(const Call& made) {
    const std::string_view owner = owner_of(made.name.str());
    const bool old = owner.ends_with("cuda.amp");
    return argument(made, 1, "dtype") ? argument(made, 1, "dtype")
                                      : (old ? nullptr : keyword_argument(made, "dtype"));
}

// `device.type`, and not of torch.device("cpu").
bool may_be_cuda(const Function& f, const Operand* device) {
    if (!device || !device->constant.empty()) return false;
    return std::ranges::none_of(f.calls, [&](const Call& call) {
        return call.name.str() == "torch.device" && !call.args.empty() &&
               spelled(call.args[0]).starts_with("cpu") &&
               device->name.str().starts_with(call.result.name.str());
    });
}

// A dtype taken from a table of this function by an option: fp16 is one of the choices.
bool may_be_fp16(const Function& f, const Operand& o, int depth = 0) {
    if (o.dtype == DType::fp16) return true;
    const Call* from = call_of(f, o);
    if (!from || depth > 3) return false;
    return std::ranges::any_of(from->args, [&](const Operand& a) { return may_be_fp16(f, a, depth + 1); });
}

}  // namespace

std::string_view last_part(std::string_view name) {
    if (name.ends_with("->")) name.remove_suffix(2);
    const auto at = name.find_last_of(".:>");
    return at == std::string_view::npos ? name : name.substr(at + 1);
}

std::string_view owner_of(std::string_view name) {
    auto at = name.find_last_of(".:");
    if (at == std::string_view::npos) return {};
    if (at > 0 && name[at] == ':' && name[at - 1] == ':') --at;
    return name.substr(0, at);
}

namespace {

// `state['opt']` and `optimizers[0]`, not `optimizers[i]`.
bool is_constant_item(std::string_view text, std::size_t at) {
    const char first = at + 1 < text.size() ? text[at + 1] : ' ';
    return at > 0 && text.ends_with("]") && (first == '\'' || first == '"' || (first >= '0' && first <= '9'));
}

}  // namespace

namespace {

// grads = [p.grad for p in parameters]
bool lists_gradients(const Call& call) {
    return call.kind == CallKind::constructor && call.name.str() == "list" && call.args.size() == 1 &&
           is_named_gradient(call.args[0]);
}

}  // namespace

bool is_gradient(const Function& f, const Operand& o) {
    if (is_named_gradient(o)) return true;
    const Call* from = call_of(f, o);
    if (from && lists_gradients(*from)) return true;
    const std::string_view leaf = from ? last_part(from->name.str()) : "";
    if (from && from->kind == CallKind::method && (leaf == "grad" || leaf == "mutable_grad")) return true;
    if (from || o.name.empty()) return false;
    return std::ranges::any_of(f.aliases, [&](const Alias& alias) {
        return alias.item && alias.name == o.name && std::ranges::any_of(f.calls, [&](const Call& call) {
                   return call.result.name == alias.of && lists_gradients(call);
               });
    });
}

Symbol key_of(const Operand& o) {
    if (!o.name.empty()) return o.name;
    std::string_view text = o.text.str();
    while (text.starts_with("*") || text.starts_with("&")) text.remove_prefix(1);
    if (text.ends_with("->")) text.remove_suffix(2);
    if (text.find_first_of("()+ ") != std::string_view::npos) return {};
    if (const auto item = text.find('['); item != std::string_view::npos && !is_constant_item(text, item))
        return {};
    return Symbol(text);
}

Roles::Roles(const Program& program) {
    for (const Function* f : program.functions()) {
        // scale() needs a parameter for the value to scale.
        const std::size_t self = f->kind == FunctionKind::python ? 1 : 0;
        const std::string_view method = last_part(f->name.str());
        if (!f->parent_class.empty() && (method != "scale" || f->params.size() > self))
            learn_class(f->parent_class, method);
    }
    for_each_call(program, may_teach, [&](const Function& f, const Call& call) { learn(f, call); });
    for (const auto& [name, methods] : classes_)
        if (are_a_scalers(methods)) scaler_classes_.push_back(name);
    // An object that a scaler steps is an optimizer.
    for_each_call(program, is_step_or_unscale, [&](const Function& f, const Call& call) {
        if (call.args.size() > 1 && is_scaler(f, call)) receivers_[key(f, call.args[1])] |= kStepped;
    });
}

Roles::Key Roles::key(const Function& f, const Operand& receiver) {
    const Symbol part(last_part(key_of(receiver).str()));
    return Key{f.span.file.id()} << 32 | part.id();
}

const Roles::Name& Roles::name(Symbol symbol) const {
    return names_.get(symbol, [symbol] {
        const std::string_view owner = owner_of(symbol.str());
        return Name{Symbol(last_part(symbol.str())), Symbol(owner), kind_of(owner)};
    });
}

void Roles::learn_class(Symbol owner, std::string_view method) {
    if (const std::uint32_t bit = method_bit(method)) classes_[owner] |= bit;
}

void Roles::learn(const Function& f, const Call& call) {
    if (call.kind == CallKind::constructor && !call.result.name.empty()) {
        const Symbol part(last_part(call.result.name.str()));
        switch (kind_of(call.name.str())) {
            case ClassKind::scaler:
                scaler_names_.insert(part);
                break;
            case ClassKind::optimizer:
                optimizer_names_.insert(part);
                break;
            case ClassKind::scheduler:
                scheduler_names_.insert(part);
                break;
            default:
                break;
        }
    }
    if (call.kind != CallKind::method || call.args.empty()) return;
    const Name& n = name(call.name);
    std::uint32_t bit = method_bit(n.leaf.str());
    if (n.leaf.str() == "backward") {
        const Call* scaled = call_of(f, call.args[0]);
        if (scaled && scaled->args.size() > 1 && name(scaled->name).leaf.str() == "scale" &&
            !key_of(scaled->args[0]).empty())
            receivers_[key(f, scaled->args[0])] |= kScaledBackward;
        if (call.args.size() > 1 && call.args[1].keyword.empty()) bit = kBackward;
    }
    if (bit == kScale && call.args.size() < 2) return;
    if (bit == 0) return;
    if (n.owner.str() != "?" && n.kind == ClassKind::unknown) classes_[n.owner] |= bit;
    if (!key_of(call.args[0]).empty()) receivers_[key(f, call.args[0])] |= bit;
}

std::uint32_t Roles::methods_of(const Function& f, const Call& call) const {
    std::uint32_t methods = 0;
    const Name& n = name(call.name);
    if (n.owner.str() != "?") {
        const auto found = classes_.find(n.owner);
        return found == classes_.end() ? 0 : found->second;
    }
    if (call.args.empty() || key_of(call.args[0]).empty()) return 0;
    // `self.step()` of an unknown class proves nothing about an object.
    if (key_of(call.args[0]).str() == "self") return 0;
    const auto found = receivers_.find(key(f, call.args[0]));
    if (found != receivers_.end()) methods |= found->second;
    return methods;
}

bool Roles::is_scaler(const Function& f, const Call& call) const {
    const Name& n = name(call.name);
    if (n.kind != ClassKind::unknown) return n.kind == ClassKind::scaler;
    const std::uint32_t methods = methods_of(f, call);
    if (are_a_scalers(methods)) return true;
    if (n.owner.str() != "?" || call.args.empty()) return false;
    // A helper that finishes what its caller has scaled.
    if ((methods & kUnscale) && (methods & kStep)) return true;
    return scaler_names_.contains(Symbol(last_part(key_of(call.args[0]).str())));
}

bool Roles::names_scaler(const Function& f, const Operand& o) const {
    const Symbol name = key_of(o);
    if (name.empty()) return false;
    const auto found = receivers_.find(key(f, o));
    return (found != receivers_.end() && are_a_scalers(found->second)) ||
           scaler_names_.contains(Symbol(last_part(name.str())));
}

bool Roles::makes_scaler(const Call& call) const {
    return call.kind == CallKind::constructor && is_scaler_class(call.name.str());
}

bool Roles::is_scaler_class(std::string_view name) const {
    return kind_of(name) == ClassKind::scaler || std::ranges::any_of(scaler_classes_, [name](Symbol own) {
               return own.str() == name || own.str() == owner_of(name);
           });
}

bool Roles::makes_optimizer(const Call& call) const {
    return call.kind == CallKind::constructor && kind_of(call.name.str()) == ClassKind::optimizer;
}

bool Roles::is_optimizer(const Function& f, const Call& call) const {
    const Name& n = name(call.name);
    if (n.kind != ClassKind::unknown) return n.kind == ClassKind::optimizer;
    const std::uint32_t methods = methods_of(f, call);
    if (are_an_optimizers(methods)) return true;
    if (n.owner.str() != "?" || call.args.empty() || are_an_engines(methods)) return false;
    const Symbol part(last_part(key_of(call.args[0]).str()));
    return optimizer_names_.contains(part) && !scheduler_names_.contains(part);
}

Event Roles::method_event(const Function& f, const Call& call, const Name& n) const {
    const std::string_view leaf = n.leaf.str();
    const Symbol subject = key_of(call.args[0]);
    const Operand* first = call.args.size() > 1 ? &call.args[1] : nullptr;
    const Symbol target = first ? key_of(*first) : Symbol();
    if (leaf == "backward") {
        const bool tensor = n.owner.str().ends_with("Tensor");
        const bool engine = !tensor && (n.kind == ClassKind::engine || are_an_engines(methods_of(f, call)) ||
                                        (first && first->keyword.empty()));
        return {engine ? managed : backward, subject, {}, engine ? first : &call.args[0]};
    }
    if (leaf == "manual_backward") return {managed, subject, {}, first};
    if (leaf == "zero_grad") return {zero_grad, subject, {}, nullptr};
    if (leaf == "get_scale" || leaf == "_get_scale_async") return {read_scale, subject, {}, nullptr};
    if (leaf == "step") {
        if (is_scaler(f, call)) {
            // A scaler of one's own may update its scale in the step.
            const bool own = n.kind == ClassKind::unknown && n.owner.str() != "?";
            const bool updates = !own || (methods_of(f, call) & kUpdate);
            return {first ? scaler_step : none, subject, target, nullptr, updates};
        }
        if (first && names_scaler(f, *first)) return {};  // optimizer.step(scaler): a wrapper that uses it
        if (is_optimizer(f, call)) {
            const bool unscales = keyword_argument(call, "scale");  // it divides the gradients itself
            return unscales ? Event{read_scale, subject, {}, nullptr}
                            : Event{optimizer_step, subject, subject, nullptr};
        }
        const bool schedules =
            n.kind == ClassKind::scheduler ||
            (n.owner.str() == "?" && scheduler_names_.contains(Symbol(last_part(subject.str()))));
        return {schedules ? scheduler_step : none, subject, {}, nullptr};
    }
    // optimizer.unscale_(scaler): an optimizer that takes the scale out itself.
    if (method_bit(leaf) == kUnscale && first && names_scaler(f, *first))
        return {read_scale, target, {}, nullptr};
    if (!is_scaler(f, call)) return {};
    if (leaf == "scale" && first) return {scale, subject, {}, first};
    if (leaf == "update") return {update, subject, {}, nullptr};
    if (method_bit(leaf) == kUnscale) return {unscale, subject, target, nullptr};
    return {};
}

Event Roles::region_event(const Function& f, const Call& call) const {
    const std::string_view text = call.name.str();
    if (!opens_region(text) || call.args.empty()) return {};
    if (text.starts_with("at::"))
        return is_true(&call.args[0]) ? Event{region, {}, {}, nullptr, false} : Event{};
    const Call* made = call_of(f, call.args[0]);
    // A region that another function made, `with self.region:`, repeats its arguments after the object.
    Call entered;
    if (!made) {
        entered.args.assign(call.args.begin() + 1, call.args.end());
        made = &entered;
        if (entered.args.empty()) return {};
    }
    const Operand* enabled = keyword_argument(*made, "enabled");
    if (is_false(enabled)) return {};
    const Operand* dtype = dtype_argument(*made);
    const bool old_cuda = text.find("cuda") != std::string_view::npos;
    const Operand* device = old_cuda ? nullptr : argument(*made, 0, "device_type");
    const std::string_view on = device ? spelled(*device) : "";
    if (on == "cpu" || text.find("cpu.amp") != std::string_view::npos) return {};
    const bool certain = (!enabled || is_true(enabled)) && !keyword_argument(call, "<when>");
    // Without a dtype CUDA's is fp16.
    if (!dtype || dtype->constant.str() == "None") {
        if (old_cuda || on == "cuda") return {region, {}, {}, nullptr, certain};
        return may_be_cuda(f, device) ? Event{region, {}, {}, nullptr, false} : Event{};
    }
    if (dtype->dtype == DType::fp16) return {region, {}, {}, nullptr, certain && !dtype->assumed};
    if (dtype->dtype == DType::lowp) return {region, {}, {}, nullptr, false};
    if (dtype->dtype != DType::unknown) return {};
    if (may_be_fp16(f, *dtype)) return {region, {}, {}, nullptr, false};
    // Branches give fp16, and fp32 or no dtype at all: a flag. With bf16 beside fp16 it is an option.
    const auto low = dtype_from_name(last_part(dtype->alternative.str()));
    if (low != DType::fp16 && low != DType::lowp) return {};
    return {region, {}, {}, nullptr, false, low == DType::lowp};
}

// A method that clips may unscale first. Only the model's own (of FSDP) is known not to.
bool Roles::is_clip_of_unknown(const Call& call, const Name& n) {
    if (call.kind != CallKind::method || call.args.empty() || n.owner.str().starts_with("torch"))
        return false;
    const std::string_view object = last_part(key_of(call.args[0]).str());
    return n.leaf.str() != "clip_grad_norm_" || (!mentions(object, "model") && !mentions(object, "net"));
}

bool Roles::may_be_event(std::string_view name) {
    constexpr std::array<std::string_view, 5> kMethods{"backward", "manual_backward", "grad", "get_scale",
                                                       "_get_scale_async"};
    const std::string_view leaf = last_part(name);
    return method_bit(leaf) != 0 || any_of(leaf, kMethods) || is_clip(leaf) || leaf == "copy_" ||
           done_to_gradient(leaf) != none || opens_region(name);
}

Event Roles::event(const Function& f, const Call& call) const {
    const Name& n = name(call.name);
    const std::string_view leaf = n.leaf.str();
    if (call.kind == CallKind::method && !call.args.empty()) {
        if (const Event e = method_event(f, call, n); e.kind != none) return e;
        // Accelerate unscales before it clips.
        if (is_clip(leaf) && n.kind == ClassKind::engine) return {managed, key_of(call.args[0]), {}, nullptr};
    }
    if (is_clip(leaf) && !is_clip_of_unknown(call, n)) return {clip, {}, {}, nullptr};
    if (const EventKind g = gradient_event(f, call, leaf); g != none) return {g, {}, {}, nullptr};
    const std::string_view text = call.name.str();
    if (text == "torch.autograd.backward" && !call.args.empty()) return {backward, {}, {}, &call.args[0]};
    if (text == "torch.autograd.grad" && is_true(keyword_argument(call, "create_graph")) &&
        !call.args.empty())
        return {penalty, {}, {}, &call.args[0]};
    return region_event(f, call);
}

}  // namespace mp::lint
