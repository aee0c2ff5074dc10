#include "analyzer/analyses/tensor_dtypes.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <optional>
#include <utility>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/given_tensors.hpp"
#include "analyzer/analyses/module_dtypes.hpp"
#include "analyzer/analyses/python_code.hpp"
#include "analyzer/analyses/regions.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/trials.hpp"
#include "analyzer/region/calls.hpp"
#include "analyzer/region/classes.hpp"
#include "analyzer/region/object_classes.hpp"
#include "kernels/numerics/op_traits.hpp"

namespace mp::lint {
namespace {

// Longer ways than this are not followed; the answer is then unknown.
constexpr int kDeepest = 256;

bool is_display(const Call& call) {
    const std::string_view name = call.name.str();
    return call.kind == CallKind::constructor && (name == "list" || name == "tuple");
}

bool is_number(const Operand& o) { return !o.constant.empty() || o.shape == Shape::scalar; }

// Whether an argument of an op can be one of its inputs.
bool may_be_input(const Function& f, const Call& call, std::size_t at, bool several) {
    const Operand& argument = call.args[at];
    if (argument.shape == Shape::tensor) return true;
    if (!is_python(f) || argument.shape != Shape::other || !argument.keyword.empty() || is_number(argument))
        return false;
    const bool after_module = at == 1 && call.args[0].shape == Shape::module;
    return at == 0 || after_module || several;
}

// Python's factories and moves that take the dtype of their first argument unless told otherwise.
bool follows_first(const Function& f, const Call& call) {
    constexpr std::array<std::string_view, 17> kNames{
        "new_zeros",  "new_ones",   "new_full",  "new_empty",  "zeros_like",    "ones_like",
        "full_like",  "empty_like", "rand_like", "randn_like", "cuda",          "cpu",
        "contiguous", "clone",      "detach",    "pin_memory", "requires_grad_"};
    if (!is_python(f) || call.args.empty() || !any_of(leaf(call.name.str()), kNames)) return false;
    return std::ranges::none_of(call.args, [](const Operand& o) { return o.keyword.str() == "dtype"; });
}

bool is_known_op(const RuleContext& context, Op op) {
    const Traits traits = traits_of(op);
    return traits.has(Trait::keeps) || traits.has(Trait::promotes) ||
           context.policy("cuda")->category(op) != Category::unlisted ||
           context.policy("cpu")->category(op) != Category::unlisted;
}

TensorDType unknown() { return {.dtype = DType::unknown, .proven = false, .chain = {}}; }

// The region is open on every known way to this call.
bool always_open(const Program& program, const Function& f, const Call& call) {
    const auto contexts = program.contexts(f, call);
    return std::ranges::all_of(contexts,
                               [](const Context& c) { return c.enabled == Switch::on && c.proven; });
}

// Some caller runs the function in its own region, and this call does not: what the region makes of the result does not
// hold here, unless it is proven.
bool is_outside_of_callers_region(const Program& program, const Function& f, const Call& call,
                                  const Function& callee) {
    if (!is_python(f) || program.enabled_context(f, call)) return false;
    return std::ranges::any_of(program.callers(callee.usr), [&](const Call* other) {
        const Function* owner = program.owner(*other);
        return owner && program.enabled_context(*owner, *other);
    });
}

// What this call has of what the function returns.
TensorDType seen_from(const Program& program, const Function& f, const Call& call, const Function& callee,
                      const TensorDType& returned) {
    return !returned.proven && is_outside_of_callers_region(program, f, call, callee) ? unknown() : returned;
}

// `logits` of model(x).logits. The loss beside them is fp32.
bool is_part_of_output(std::string_view name) {
    constexpr std::array<std::string_view, 6> kEndings{"logits", "hidden_state",  "hidden_states",
                                                       "embeds", "pooler_output", "sample"};
    return std::ranges::any_of(kEndings, [&](std::string_view ending) { return name.ends_with(ending); });
}

// What a region makes of the result of an op that its list casts, whatever the inputs are.
std::optional<TensorDType> cast_by(const Context& region, Category category) {
    switch (category) {
        case Category::lower:
            return TensorDType{.dtype = region.dtype == DType::unknown ? DType::lowp : region.dtype,
                               .proven = true,
                               .chain = {}};
        case Category::fp32:
        case Category::fp32_set_opt_dtype:
        case Category::fp32_append_dtype:
            return TensorDType{.dtype = DType::fp32, .proven = true, .chain = {}};
        default:
            return std::nullopt;
    }
}

// In a region the last layer that its list casts decides, and the layers behind it keep its dtype: of Linear, ReLU,
// Linear, Tanh the second Linear.
std::optional<TensorDType> last_cast(const Function& f, const Call& layers, const Context& region,
                                     const Policy& policy) {
    for (std::size_t i = layers.args.size(); i-- > 0;) {
        const Call* layer = call_of(f, layers.args[i]);
        if (!layer || layer->kind != CallKind::constructor) return unknown();
        const bool nested = layer->name.str() == "torch.nn.Sequential";
        const Op op = nested ? Op() : op_of_layer(layer->name);
        if (!nested && !op.known()) return unknown();
        if (std::optional<TensorDType> found =
                nested ? last_cast(f, *layer, region, policy) : cast_by(region, category_in(policy, op)))
            return found;
    }
    return std::nullopt;
}

}  // namespace

const TensorDTypes::OpTraits& TensorDTypes::traits(Op op) {
    const auto [entry, is_new] = traits_.try_emplace(op.symbol());
    if (is_new)
        entry->second = {.is_known = is_known_op(context_, op),
                         .takes_several = traits_of(op).has(Trait::second_tensor)};
    return entry->second;
}

void WayToAnswer::add(const WayToAnswer& part) {
    height = std::max(height, part.height);
    is_open = is_open || part.is_open;
    asks_modules = asks_modules || part.asks_modules;
}

const TensorAnswer* TensorAnswers::find(FactKey key) const {
    Part& part = part_of(key);
    const std::scoped_lock lock(part.mutex);
    return part.answers.find(key);
}

const TensorAnswer& TensorAnswers::add(FactKey key, TensorAnswer answer) const {
    Part& part = part_of(key);
    const std::scoped_lock lock(part.mutex);
    return part.answers.try_emplace(key, std::move(answer)).first;
}

TensorDTypes::TensorDTypes(const RuleContext& context)
    : context_(context),
      shared_(context.tensor_answers.get([] { return std::make_shared<const TensorAnswers>(); })) {}

const TensorAnswer* TensorDTypes::shared(FactKey key) const {
    const TensorAnswer* answer = shared_.find(key);
    return answer && modules_ && answer->way.asks_modules ? nullptr : answer;
}

const TensorAnswer* TensorDTypes::keep(FactKey key, TensorDType found) {
    TensorAnswer answer{std::move(found), way_};
    ++answer.way.height;
    if (way_.is_open || (modules_ && way_.asks_modules)) return &own_.emplace_back(std::move(answer));
    return &shared_.add(key, std::move(answer));
}

// Only the question that was asked first is known to nest too deep.
const TensorAnswer* TensorDTypes::give_up() {
    if (depth_ > 0) return nullptr;
    is_too_deep_ = false;
    return &own_.emplace_back(TensorAnswer{unknown(), {.height = kDeepest, .is_open = true}});
}

// A question that nests too deep has no answer, and so no answer depends on what other rules have already asked.
template <typename Find>
TensorDType TensorDTypes::once(const void* fact, std::int32_t index, Find find) {
    if (is_too_deep_) return unknown();
    const FactKey key{fact, index};
    Question& question = questions_.try_emplace(key).first;
    if (question.is_asked) {
        way_.is_open = true;
        return unknown();
    }
    if (!question.answer) question.answer = shared(key);
    const int height = question.answer ? question.answer->way.height : 1;
    is_too_deep_ = depth_ + height > kDeepest;
    if (is_too_deep_) return unknown();
    if (!question.answer) {
        const WayToAnswer outer = std::exchange(way_, {});
        question.is_asked = true;
        ++depth_;
        TensorDType found = find();
        --depth_;
        question.is_asked = false;
        question.answer = is_too_deep_ ? give_up() : keep(key, std::move(found));
        way_ = outer;
        if (!question.answer) return unknown();
    }
    way_.add(question.answer->way);
    return question.answer->found;
}

TensorDType TensorDTypes::of(const Function& f, const Operand& operand) {
    ResolvedDType found = context_.program.dtype_of(f, operand);
    if (found.dtype != DType::unknown) {
        const Call* made = operand.dtype == DType::unknown ? call_of(f, operand) : nullptr;
        const bool assumed = operand.assumed || (made && made->result.assumed);
        const bool from_test = std::ranges::any_of(
            found.chain, [&](const Note& note) { return is_test(note.span.file) && !is_test(f.span.file); });
        return {.dtype = found.dtype, .proven = !assumed && !from_test, .chain = std::move(found.chain)};
    }
    if (operand.call >= 0 && static_cast<std::size_t>(operand.call) < f.calls.size())
        return of_result(f, f.calls[static_cast<std::size_t>(operand.call)]);
    if (operand.param != kNone) return of_parameter(f, operand.param);
    if (is_attribute_of_self(operand) && !f.parent_class.empty() && modules())
        if (TensorDType member = modules_->of_member(f, operand); member.dtype != DType::unknown)
            return member;
    if (TensorDType output = of_output(f, operand); output.dtype != DType::unknown) return output;
    if (TensorDType kept = of_kept(f, operand); kept.dtype != DType::unknown) return kept;
    return of_earlier_value(f, operand);
}

// self.total, which the constructor makes in a dtype that its caller gives: torch.zeros(n, dtype=dtype).
TensorDType TensorDTypes::of_kept(const Function& f, const Operand& operand) {
    if (!is_attribute_of_self(operand) || f.parent_class.empty()) return unknown();
    const Function* init = classes_of(context_).method(f.parent_class, "__init__");
    if (!init || init == &f) return unknown();
    const Call* made = nullptr;
    for (const Call& call : init->calls) {
        if (call.result.name != operand.name || call.in_place) continue;
        if (made) return unknown();
        made = &call;
    }
    const Operand* dtype = made ? keyword_argument(*made, "dtype") : nullptr;
    if (!dtype || !made->callee.empty() || made->result.shape != Shape::tensor) return unknown();
    TensorDType found = of(*init, *dtype);
    found.proven = false;
    found.chain.push_back({made->span, "made here"});
    return is_low_precision(found.dtype) ? found : unknown();
}

// torch.zeros(n, dtype=y.dtype), x.to(y.dtype): the dtype of y, when that is low; x.type_as(y).
TensorDType TensorDTypes::of_asked(const Function& f, const Call& call) {
    constexpr std::string_view kDtype = ".dtype";
    if (!is_python(f)) return unknown();
    if (leaf(call.name.str()) == "type_as" && call.args.size() == 2) return of(f, call.args[1]);
    for (const Operand& argument : call.args) {
        const std::string_view name = argument.name.str();
        if (argument.shape != Shape::dtype || argument.dtype != DType::unknown || !name.ends_with(kDtype))
            continue;
        Operand of;
        of.name = Symbol(name.substr(0, name.size() - kDtype.size()));
        of.span = argument.span;
        return of_earlier_value(f, of);
    }
    return unknown();
}

// A variable that a loop or a branch binds again: what the last statement before it gave, when that is low.
TensorDType TensorDTypes::of_earlier_value(const Function& f, const Operand& operand) {
    const std::string_view name = operand.name.str();
    if (!is_python(f) || name.empty() || name.find('.') != std::string_view::npos || !operand.span.known())
        return unknown();
    const Call* last = last_named(f, operand.name, operand.span.line);
    TensorDType found = unknown();
    if (last) {
        found = of_result(f, *last);
    } else {
        const auto param = std::ranges::find(f.params, operand.name, &Parameter::name);
        if (param != f.params.end())
            found = of_parameter(f, static_cast<std::int32_t>(param - f.params.begin()));
    }
    found.proven = false;
    return is_low_precision(found.dtype) ? found : unknown();
}

// The last call before the line whose result has the name.
const Call* TensorDTypes::last_named(const Function& f, Symbol name, std::uint32_t before_line) {
    const auto [entry, is_new] = results_.try_emplace(&f);
    std::vector<NamedResult>& named = entry->second;
    if (is_new) {
        for (std::uint32_t i = 0; i < f.calls.size(); ++i)
            if (const Symbol result = f.calls[i].result.name; !result.empty()) named.push_back({result, i});
        std::ranges::sort(named);
    }
    auto after = std::ranges::upper_bound(named, name, std::less<>{}, &NamedResult::name);
    for (; after != named.begin() && std::prev(after)->name == name; --after) {
        const Call& call = f.calls[std::prev(after)->call];
        if (call.span.line < before_line) return &call;
    }
    return nullptr;
}

// model(x).logits, and `output.logits` of a parameter: "@3.logits", "#0.logits".
TensorDType TensorDTypes::of_output(const Function& f, const Operand& operand) {
    const std::string_view refers = operand.refers.str();
    const std::size_t dot = refers.find('.');
    if (dot == std::string_view::npos || !is_part_of_output(refers.substr(dot + 1)) || !modules())
        return unknown();
    std::uint32_t at = 0;
    const auto [end, error] = std::from_chars(refers.data() + 1, refers.data() + dot, at);
    if (error != std::errc{} || end != refers.data() + dot) return unknown();
    if (refers.front() == '@' && at < f.calls.size()) return of_result(f, f.calls[at]);
    return refers.front() == '#' ? of_parameter(f, static_cast<std::int32_t>(at)) : unknown();
}

TensorDType TensorDTypes::of_result(const Function& f, const Call& call) {
    if (call.result.dtype != DType::unknown)
        return {.dtype = call.result.dtype, .proven = !call.result.assumed, .chain = {}};
    return once(&call, kNone, [&] {
        if (call.op.known()) return of_op(f, call);
        if (TensorDType asked = of_asked(f, call); asked.dtype != DType::unknown) return asked;
        if (call.callee.empty() && follows_first(f, call)) return of(f, call.args[0]);
        if (const Item item = item_of(call); item.held)
            if (TensorDType found = of_item(f, item); found.dtype != DType::unknown) return found;
        if (indexes(call)) return of(f, call.args[0]);
        if (const Function* callee = context_.program.definition(call.callee))
            return seen_from(context_.program, f, call, *callee, of_returned(*callee));
        TensorDType found = of_forward(f, call);
        return found.dtype == DType::unknown ? of_candidates(f, call) : found;
    });
}

// What all modules of a container return, when each of them may run.
TensorDType TensorDTypes::of_candidates(const Function& f, const Call& call) {
    TensorDType common = unknown();
    if (leaf(call.name.str()) != "__call__" && leaf(call.name.str()) != "forward") return common;
    for (const Symbol usr : call.lambdas) {
        const Function* body = context_.program.definition(usr);
        TensorDType found =
            body ? seen_from(context_.program, f, call, *body, of_returned(*body)) : unknown();
        if (!is_low_precision(found.dtype)) return unknown();
        if (common.dtype != DType::unknown && common.dtype != found.dtype) return unknown();
        common = std::move(found);
        common.proven = false;
    }
    return common;
}

TensorDType TensorDTypes::of_sequential(const Function& f, const Call& call, const Context& region) {
    const Operand& module = call.args[0];
    const Function* maker = &f;
    const Call* made = call_of(f, module);
    if (!made && !f.parent_class.empty() && module.name.str().starts_with("self.")) {
        const auto [init, value] = classes_of(context_).kept(f.parent_class, module.name);
        maker = init;
        made = value ? call_of(*init, *value) : nullptr;
    }
    const Policy* policy = policy_of(context_, region);
    if (!policy || !made || made->name.str() != "torch.nn.Sequential") return unknown();
    const std::optional<TensorDType> cast = last_cast(*maker, *made, region, *policy);
    TensorDType found = cast ? *cast : of(f, call.args[1]);
    found.proven = false;  // layers may be added later
    return found;
}

// A model whose code is not known, outside of regions: there its last op decides.
TensorDType TensorDTypes::of_forward(const Function& f, const Call& call) {
    const Context* const region = context_.program.enabled_context(f, call);
    const bool in_region = region != nullptr;
    const bool is_sequential =
        call.name.str() == "torch.nn.Sequential.forward" && call.args.size() == 2 && call.lambdas.empty();
    if (is_sequential && in_region) return of_sequential(f, call, *region);
    // Layers of torch refuse inputs of another dtype than their weights, and give what they take.
    if (is_sequential) {
        TensorDType given = of(f, call.args[1]);
        given.proven = false;
        return is_low_precision(given.dtype) ? given : unknown();
    }
    const std::string_view method = leaf(call.name.str());
    if ((method != "forward" && method != "__call__") || call.args.empty() || in_region) return unknown();
    if (!modules()) return unknown();
    TensorDType found = modules_->of_module(f, call.args[0], call);
    found.output = found.of_model = true;
    return is_low_precision(found.dtype) ? found : unknown();
}

// The dtype that all floating tensor inputs share; unknown when one is, or when they differ.
TensorDType TensorDTypes::of_inputs(const Function& f, const Call& call, std::vector<DType>* inputs) {
    TensorDType common = unknown();
    bool first = true;
    const auto take = [&](const Operand& operand) {
        if (is_passed_number(f, operand)) return;
        TensorDType input = of(f, operand);
        inputs->push_back(input.dtype);
        if (is_integer(input.dtype) || input.dtype == DType::boolean) return;
        if (first)
            common = std::move(input);
        else if (input.dtype != common.dtype)
            common = unknown();
        else
            common.proven = common.proven && input.proven, common.output = common.output || input.output;
        first = false;
    };
    const bool several = is_python(f) && traits(call.op).takes_several;
    for (std::size_t i = 0; i < call.args.size(); ++i) {
        const Call* made = several ? call_of(f, call.args[i]) : nullptr;
        if (made && is_display(*made)) {
            for (const Operand& item : made->args) take(item);
        } else if (may_be_input(f, call, i, several)) {
            take(call.args[i]);
        }
    }
    // Without autocast a module refuses inputs of another dtype than its parameters'.
    const bool of_module = is_python(f) && !call.args.empty() && call.args[0].shape == Shape::module;
    if (of_module && common.dtype == DType::unknown && inputs->size() <= 1)
        return of_module_operand(f, call.args[0], call);
    return common;
}

// A parameter for which every known caller passes a number, or leaves a default that is one.
bool TensorDTypes::is_passed_number(const Function& f, const Operand& operand) const {
    if (!is_python(f) || operand.param == kNone || operand.shape != Shape::other) return false;
    const auto& callers = context_.program.callers(f.usr);
    const Parameter& own = f.params[static_cast<std::size_t>(operand.param)];
    return !callers.empty() && std::ranges::all_of(callers, [&](const Call* call) {
        const Operand* given = argument_for(*call, f, operand.param);
        return given ? number_of(*given).has_value() : !own.constant.empty() && own.constant.str() != "None";
    });
}

// What the parameters of a module have: from the facts, or, for a part of `self`, from the callers of
// the method on a module cast as a whole.
TensorDType TensorDTypes::of_module_operand(const Function& f, const Operand& module, const Call& at) {
    TensorDType found = of(f, module);
    if (found.dtype == DType::unknown && modules()) found = modules_->of_module(f, module, at);
    if (found.dtype != DType::unknown || !module.name.str().starts_with("self.") || f.params.empty() ||
        f.params[0].name.str() != "self")
        return found;
    Operand self;
    self.param = 0;
    self.shape = Shape::module;
    found = of(f, self);
    found.proven = false;  // the part may have been cast by itself
    return found;
}

TensorDType TensorDTypes::of_op(const Function& f, const Call& call) {
    if (!traits(call.op).is_known) return unknown();
    if (call.in_place && !call.args.empty()) return of(f, call.args[0]);
    std::vector<DType> inputs;
    TensorDType common = of_inputs(f, call, &inputs);
    const Context* region = context_.program.enabled_context(f, call);
    if (!region) return common;
    const Policy* policy = policy_of(context_, *region);
    if (!policy) return unknown();
    const bool always = always_open(context_.program, f, call);
    const Category category = category_of(*policy, call);
    if (std::optional<TensorDType> cast = cast_by(*region, category)) {
        cast->proven = always;
        return *cast;
    }
    if (category != Category::promote) return common;
    const DType dtype = policy->dtype_of(call.op, inputs, false, region->dtype);
    return {.dtype = dtype, .proven = always && common.proven, .chain = {}};
}

// One item of what a function of the program returns, and the values of x.max(dim), topk and split.
TensorDType TensorDTypes::of_item(const Function& f, const Item& item) {
    const Call* made = call_of(f, *item.held);
    if (made && !made->args.empty() && item_has_elements(traits_of(made->op), item.at))
        return of(f, made->args.front());
    const Function* callee = made ? context_.program.definition(made->callee) : nullptr;
    if (!callee) return unknown();
    const TensorDType returned = of_returned(*callee, [&](const Operand& value) {
        const Call* display = call_of(*callee, value);
        const Operand* part = display ? item_of_display(*display, item.at) : nullptr;
        return part ? of(*callee, *part) : unknown();
    });
    return seen_from(context_.program, f, *made, *callee, returned);
}

TensorDType TensorDTypes::of_returned(const Function& callee) {
    return of_returned(callee, [&](const Operand& value) { return of(callee, value); });
}

// What all that it returns agree on.
template <typename Find>
TensorDType TensorDTypes::of_returned(const Function& callee, Find find) {
    TensorDType common = unknown();
    bool first = true;
    for (const Operand& value : callee.returned) {
        TensorDType found = find(value);
        if (first)
            common = std::move(found);
        else if (found.dtype != common.dtype)
            common = {.dtype = common_dtype(found.dtype, common.dtype), .proven = false, .chain = {}};
        first = false;
    }
    return common;
}

// Any known caller that passes half makes it half there; proven only when all agree.
bool TensorDTypes::is_test(Symbol file) const { return code_kind(context_, file) == CodeKind::test; }

TensorDType TensorDTypes::of_parameter(const Function& f, std::int32_t param) {
    return once(&f, param, [&] {
        TensorDType low = unknown();
        bool agree = true, first = true;
        for (const Call* call : callers_by_weight(context_, f)) {
            const Function* caller = context_.program.owner(*call);
            const Operand* argument = argument_for(*call, f, param);
            TensorDType found = caller && argument ? of(*caller, *argument) : unknown();
            if (call->callee.empty()) {  // one of several modules, of which each passes its result on
                if (!is_low_precision(found.dtype)) found = unknown();
                found.proven = false;
            }
            // What only a test passes says little about the program.
            found.proven = found.proven && (!is_test(call->span.file) || is_test(f.span.file));
            agree = agree && (first || found.dtype == low.dtype);
            if (first || (is_low_precision(found.dtype) && !is_low_precision(low.dtype))) {
                low = std::move(found);
                if (low.dtype != DType::unknown)
                    low.chain.push_back({call->span, "passed here as " + std::string(label(low.dtype))});
            }
            first = false;
        }
        if (!agree && !is_low_precision(low.dtype)) low = unknown();
        if (low.dtype == DType::unknown) return of_given(f, param);
        low.proven = low.proven && agree;
        return low;
    });
}

// What code outside the sources passes, by --assume.
TensorDType TensorDTypes::of_given(const Function& f, std::int32_t param) const {
    if (context_.assume == DType::unknown || !may_be_given(f, param)) return unknown();
    const std::string_view name = f.params[static_cast<std::size_t>(param)].name.str();
    std::string text =
        "'" + std::string(name) + "' is taken as " + std::string(label(context_.assume)) + " (--assume)";
    return {.dtype = context_.assume, .proven = true, .chain = {{f.span, std::move(text)}}};
}

}  // namespace mp::lint
