#include "analyzer/analyses/module_dtypes.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <type_traits>
#include <utility>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/module_operands.hpp"
#include "analyzer/analyses/program_options.hpp"
#include "analyzer/analyses/run_order.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/trials.hpp"
#include "analyzer/region/calls.hpp"
#include "analyzer/region/object_classes.hpp"

namespace mp::lint {
namespace {

ModuleDType make(DType dtype, bool proven = false, std::vector<Note> chain = {}) {
    ModuleDType made;
    made.dtype = dtype;
    made.proven = proven;
    made.chain = std::move(chain);
    return made;
}

ModuleDType unknown() { return make(DType::unknown); }

// What the callee of this call made low.
ModuleDType called_at(const Call& call, ModuleDType found) {
    if (is_low_precision(found.dtype)) found.chain.push_back({call.span, "called here"});
    return found;
}

bool is_cast_method(std::string_view method) {
    constexpr std::array<std::string_view, 6> kCasts{"to", "type", "half", "float", "bfloat16", "double"};
    return any_of(method, kCasts);
}

DType named_by(std::string_view method) {
    if (method == "half") return DType::fp16;
    if (method == "bfloat16") return DType::bf16;
    if (method == "float") return DType::fp32;
    return method == "double" ? DType::fp64 : DType::unknown;
}

// Loaded in 8 or 4 bits: only adapters are trained.
bool is_quantized(const Call& call) {
    return keyword_argument(call, "quantization_config") || keyword_argument(call, "load_in_8bit") ||
           keyword_argument(call, "load_in_4bit");
}

// from_pretrained(name), or with dtype="auto": not from_pretrained(name, dtype=x).
bool is_load(const Call& call) {
    if (!call.name.str().starts_with("transformers.") || leaf(call.name.str()) != "from_pretrained")
        return false;
    if (call.result.dtype != DType::unknown || has_unpacked(call)) return false;
    const Operand* dtype = dtype_of_load(call);
    return !dtype || spelled(*dtype) == "auto";
}

// load(torch.float32), where other callers of load() ask for half
const Operand* wide_argument(const Call& call) {
    const auto found = std::ranges::find_if(
        call.args, [](const Operand& o) { return o.shape == Shape::dtype && is_wide(o.dtype); });
    return found == call.args.end() ? nullptr : &*found;
}

// AutoModelForCausalLMWithValueHead.from_pretrained(model)
bool wraps_module(const Call& call) {
    return leaf(call.name.str()) == "from_pretrained" && !call.args.empty() &&
           call.args.front().shape == Shape::module;
}

// model.to(args.dtype): a dtype that is not known.
bool names_dtype(const Call& call) {
    return std::any_of(call.args.begin() + 1, call.args.end(), [](const Operand& o) {
        return mentions(o.keyword.str(), "dtype") || mentions(o.text.str(), "dtype") ||
               mentions(o.text.str(), "precision");
    });
}

bool is_self(const Operand& o) { return o.param == 0 && o.name.str() == "self"; }

// A low dtype if any has one; proven when all have the same.
void merge(ModuleDType& common, ModuleDType found, bool first) {
    if (first) {
        common = std::move(found);
        return;
    }
    const bool agree = found.dtype == common.dtype;
    if (is_low_precision(found.dtype) && !is_low_precision(common.dtype)) common = std::move(found);
    common.proven = common.proven && agree;
}

}  // namespace

ModuleDTypes::ModuleDTypes(const RuleContext& context, DTypeOf of)
    : context_(context), of_(of), tensors_(context), classes_(classes_of(context)) {
    tensors_.ask(*this);
}

// Functions that cast what is trained to fp32, or add fp32 parameters and freeze the others.
bool ModuleDTypes::upcasts_trained(std::string_view name) const {
    if (of_ == DTypeOf::output) return false;
    return is_within(name, "peft") || leaf(name).find("peft_model") != std::string_view::npos ||
           any_of(leaf(name), std::array<std::string_view, 3>{"cast_training_params", "add_adapter",
                                                              "prepare_model_for_kbit_training"});
}

ModuleDType ModuleDTypes::of_module(const Function& f, const Operand& module, const Call& at) {
    return state(f, module, static_cast<std::size_t>(index_of(f, at)), kFarthest);
}

// Gives `take` what each caller passes for a parameter, the program's own callers first, until it returns true.
// `of` says what one argument is.
template <typename Of, typename Take>
void ModuleDTypes::for_each_passed(const Function& f, std::int32_t param, const Of& of, Take take) {
    for (const Call* call : callers_by_weight(context_, f)) {
        const Function* caller = context_.program.owner(*call);
        const Operand* argument = caller ? argument_for(*call, f, param) : nullptr;
        std::invoke_result_t<Of, const Function&, const Operand&, const Call&> found;
        found.proven = false;
        if (argument) found = of(*caller, *argument, *call);
        if (is_low_precision(found.dtype)) found.chain.push_back({call->span, "passed here"});
        if (take(std::move(found))) return;
    }
}

TensorDType ModuleDTypes::first_low_passed(const Function& f, std::int32_t param, const PassedDType& of) {
    TensorDType low = unknown();
    for_each_passed(f, param, of, [&](TensorDType found) {
        if (is_low_precision(found.dtype)) low = std::move(found);
        return is_low_precision(low.dtype);
    });
    return low;
}

ModuleDType ModuleDTypes::state(const Function& f, const Operand& module, std::size_t before, int left) {
    if (left <= 0) return unknown();
    const Call* origin = call_of(f, module);
    if (origin && static_cast<std::size_t>(origin - f.calls.data()) >= before) origin = nullptr;
    const std::size_t first = origin ? static_cast<std::size_t>(origin - f.calls.data()) + 1 : 0;
    ModuleDType found = last_event(f, module, first, before, left);
    if (found.known()) return found;
    const auto list = list_of(f, module);
    if (list)
        found = state(f, *list, before, left - 1);
    else if (origin)
        found = made_by(f, *origin, left - 1);
    else if (module.param != kNone)
        found = once(outside_, f, module, [&] { return of_parameter(f, module.param, left - 1); });
    else if (is_attribute_of_self(module))
        found = once(outside_, f, module, [&] { return of_attribute(f, module, left - 1); });
    else if (!module.name.empty())
        found = of_branches(f, module.name, before, left - 1);
    // A part of a module follows a cast of the whole, unless it was cast by itself.
    if (const auto owner = found.known() ? std::nullopt : owner_of(f, module, before)) {
        found = of_part_made(f, *owner, module, left - 1);
        if (!found.known()) found = state(f, *owner, before, left - 1);
        found.proven = false;
    }
    if (!found.known() && (module.shape == Shape::module || module.dtype != DType::unknown))
        static_cast<TensorDType&>(found) = tensors_.of(f, module);
    return found;
}

// `net` of net.actor, and the object of self.actor in a method of a module.
std::optional<Operand> ModuleDTypes::owner_of(const Function& f, const Operand& part,
                                              std::size_t before) const {
    const std::string_view name = part.name.str();
    const std::size_t dot = name.rfind('.');
    if (part.param != kNone || dot == std::string_view::npos) return std::nullopt;
    const Symbol whole(name.substr(0, dot));
    if (whole.str() == "self") {
        const bool is_module = !f.params.empty() && !classes_.library_base(f.parent_class, "Module").empty();
        return is_module ? std::optional(parameter(f, 0)) : std::nullopt;
    }
    for (std::size_t p = 0; p < f.params.size(); ++p)
        if (f.params[p].name == whole) return parameter(f, p);
    Operand owner = attribute(whole);
    if (is_attribute_of_self(owner)) return owner;
    for (std::size_t i = std::min(before, f.calls.size()); i-- > 0 && owner.call == kNone;)
        if (f.calls[i].result.name == whole) owner.call = static_cast<std::int32_t>(i);
    return owner.call == kNone ? std::nullopt : std::optional(owner);
}

// `net.encoder`, where the constructor of net's class cast self.encoder.
ModuleDType ModuleDTypes::of_part_made(const Function& f, const Operand& owner, const Operand& part,
                                       int left) {
    const Call* made = call_of(f, owner);
    const Function* init =
        made && made->kind == CallKind::constructor ? context_.program.definition(made->callee) : nullptr;
    if (!init) return unknown();
    return after(*init, attribute(Symbol("self." + std::string(leaf(part.name.str())))), left);
}

// if sharded: net = shard(net)
// else: net = net.to(device): what the calls give that can have made it.
ModuleDType ModuleDTypes::of_branches(const Function& f, Symbol name, std::size_t before, int left) {
    const std::uint32_t at = block_before(f, before);
    ModuleDType common = unknown();
    bool first = true;
    for (std::size_t i = std::min(before, f.calls.size()); i-- > 0;) {
        const Call& call = f.calls[i];
        if (call.result.name != name || call.in_place || !can_run_before(f, call.block, at)) continue;
        merge(common, made_by(f, call, left), std::exchange(first, false));
        if (always_runs_before(f, call.block, at)) break;  // what was before is overwritten
    }
    common.proven = false;
    return common;
}

// The last call of [first, before) that casts the module.
ModuleDType ModuleDTypes::last_event(const Function& f, const Operand& module, std::size_t first,
                                     std::size_t before, int left) {
    const std::uint32_t at = block_before(f, before);
    for (std::size_t i = std::min(before, f.calls.size()); i-- > first;) {
        const Call& call = f.calls[i];
        ModuleDType found = event(f, call, module, left);
        if (!found.known() || !can_run_before(f, call.block, at)) continue;
        found.proven = found.proven && always_runs_before(f, call.block, at);
        return found;
    }
    return unknown();
}

ModuleDType ModuleDTypes::event(const Function& f, const Call& call, const Operand& module, int left) {
    if (call.args.empty()) return unknown();
    const std::string_view method = leaf(call.name.str());
    if (call.kind == CallKind::method && is_cast_method(method)) {
        const Operand& object = receiver_of(f, call.args.front());
        if (is_same(object, module) || is_wrapped(object, module) || is_item_of(f, object, module))
            return cast_by(f, call);
        if (is_part_in_loop(f, object, module)) {
            ModuleDType found = cast_by(f, call);
            found.proven = false;
            if (is_low_precision(found.dtype)) return found;
        }
    }
    // p.data = p.data.float(), for p of the module's parameters
    if (call.kind == CallKind::method && is_cast_method(method) &&
        call.result.name.str().ends_with(".data")) {
        const Call* listing = listing_of(f, call.args.front());
        if (listing && !listing->args.empty() && is_same(listing->args.front(), module))
            return cast_by(f, call);
    }
    if (method == "apply" && is_same(receiver_of(f, call.args.front()), module)) return cast_in_apply(call);
    const bool passed = std::ranges::any_of(call.args, [&](const Operand& o) { return is_same(o, module); });
    // if args.lora: get_peft_model(model), where the default is not to: the model itself is trained.
    if (passed && upcasts_trained(call.name.str()))
        return option_off_by_default(context_, f, call.span) ? unknown() : make(DType::fp32);
    const bool of_self = is_attribute_of_self(module) && is_self(call.args.front());
    const Function* callee = passed || of_self ? context_.program.definition(call.callee) : nullptr;
    if (!callee || left <= 1) return unknown();
    for (std::size_t p = 0; p < callee->params.size(); ++p) {
        const Operand* argument = argument_for(call, *callee, static_cast<std::int32_t>(p));
        if (!argument) continue;
        ModuleDType found = unknown();
        if (is_same(*argument, module))
            found = after(*callee, parameter(*callee, p), left - 1);
        else if (of_self && p == 0)
            found = after(*callee, attribute(module.name), left - 1);
        if (found.known()) return called_at(call, std::move(found));
    }
    return unknown();
}

ModuleDType ModuleDTypes::cast_by(const Function& f, const Call& call) {
    ModuleDType found = unknown();
    // Extraction does not know whether a class of another file is a module.
    const DType named =
        context_.program.definition(call.callee) ? DType::unknown : named_by(leaf(call.name.str()));
    if (is_float(call.result.dtype) || is_float(named)) {
        found = make(is_float(named) ? named : call.result.dtype, true);
    } else {
        for (std::size_t i = 1; i < call.args.size() && !is_float(found.dtype); ++i)
            static_cast<TensorDType&>(found) = tensors_.of(f, call.args[i]);
    }
    for (std::size_t i = 1; i < call.args.size() && !is_float(found.dtype); ++i)
        if (call.args[i].keyword.empty() || call.args[i].keyword.str() == "dtype")
            static_cast<TensorDType&>(found) = by_setting(f, call.args[i], kFarthest);
    if (!is_float(found.dtype)) return names_dtype(call) ? make(DType::fp32) : unknown();
    const Operand* dtype = keyword_argument(call, "dtype");
    if (dtype && dtype->param != kNone && found.chain.empty()) {
        const auto of = [&](const Function& caller, const Operand& argument, const Call&) {
            const TensorDType set = by_setting(caller, argument, kFarthest);
            return is_low_precision(set.dtype) ? set : tensors_.of(caller, argument);
        };
        found.chain = first_low_passed(f, dtype->param, of).chain;
    }
    found.chain.push_back({call.span, "cast to " + std::string(label(found.dtype)) + " here"});
    return found;
}

// model.apply(convert), where convert() casts a tensor of the module that it is given, or the module.
ModuleDType ModuleDTypes::cast_in_apply(const Call& applies) const {
    for (const Symbol usr : applies.lambdas) {
        const Function* body = context_.program.definition(usr);
        if (!body || body->params.empty()) continue;
        const std::string given(body->params.front().name.str());
        for (const Call& call : body->calls) {
            if (!is_cast_method(leaf(call.name.str())) || !is_low_precision(call.result.dtype)) continue;
            const std::string_view target = call.result.name.str();
            const bool data = target.starts_with(given + ".") && target.ends_with(".data");
            if (data || (!call.args.empty() && call.args.front().param == 0))
                return make(call.result.dtype, false,
                            {{call.span, "cast to " + std::string(label(call.result.dtype)) + " here"},
                             {applies.span, "applied here"}});
        }
    }
    return unknown();
}

// A low dtype that the value has on one branch, or by a default: torch.bfloat16 if bf16 else torch.float32.
TensorDType ModuleDTypes::by_setting(const Function& f, const Operand& o, int left) {
    const auto named = dtype_from_name(leaf(o.alternative.str()));
    if (named && is_low_precision(*named)) return make(*named);
    if (left <= 0) return unknown();
    if (o.param == kNone) {
        if (!is_attribute_of_self(o) || f.parent_class.empty()) return unknown();
        const auto [init, value] = classes_.kept(f.parent_class, o.name);
        return value ? by_setting(*init, *value, left - 1) : unknown();
    }
    return first_low_passed(f, o.param, [&](const Function& caller, const Operand& argument, const Call&) {
        return by_setting(caller, argument, left / 2);
    });
}

// Each answer is kept. One that is being looked for is unknown, which ends the recursion.
template <typename Find>
ModuleDType ModuleDTypes::once(Answers& answers, const Function& f, const Operand& module, Find find) {
    const bool by_name = module.param == kNone;
    const auto [entry, is_new] =
        answers.try_emplace({&f, by_name ? module.name : Symbol(), module.param}, unknown());
    if (is_new) entry->second = find();
    return entry->second;
}

// What a function leaves of a module that it is given, or of an attribute of its object.
ModuleDType ModuleDTypes::after(const Function& callee, const Operand& module, int left) {
    return once(after_, callee, module, [&] {
        ModuleDType found = last_event(callee, module, 0, callee.calls.size(), left);
        // The constructor keeps it under another name: self.model = model
        for (const Setting& setting : callee.settings) {
            if (found.known()) break;
            if (module.param != kNone && setting.value.param == module.param &&
                setting.key.str().starts_with("self."))
                found = last_event(callee, attribute(setting.key), 0, callee.calls.size(), left);
        }
        return found;
    });
}

ModuleDType ModuleDTypes::made_by(const Function& f, const Call& origin, int left) {
    const auto at = static_cast<std::size_t>(&origin - f.calls.data());
    const std::string_view name = origin.name.str();
    if (origin.kind == CallKind::method && is_cast_method(leaf(name))) {
        ModuleDType cast = cast_by(f, origin);
        if (cast.known()) return cast;
    }
    const bool method = origin.kind == CallKind::method && passes_itself_on(leaf(name));
    // intel_extension_for_pytorch.optimize(model, dtype=torch.bfloat16) casts what it wraps.
    const bool keeps = !upcasts_trained(name) && !keyword_argument(origin, "dtype");
    const bool wraps =
        (returns_first_argument(name) && keeps) || (of_ == DTypeOf::output && leaf(name) == "get_peft_model");
    const bool lists = origin.kind == CallKind::method && lists_parts(leaf(name));
    if (!origin.args.empty() && (method || lists || (origin.callee.empty() && wraps)))
        return state(f, origin.args.front(), at, left);
    if (origin.callee.empty() && upcasts_trained(name)) return make(DType::fp32);
    if (origin.kind == CallKind::constructor && is_display_of_modules(name)) return items_of(f, origin, left);
    if (const Item item = item_of(origin); item.held) {
        const Call* made = call_of(f, *item.held);
        const Function* callee = made ? context_.program.definition(made->callee) : nullptr;
        if (!callee) return unknown();
        return returned_by(*callee, left, [&, callee](const Operand& value) -> const Operand* {
            const Call* display = call_of(*callee, value);
            return display ? item_of_display(*display, item.at) : nullptr;
        });
    }
    if (const Function* callee = context_.program.definition(origin.callee)) {
        if (origin.kind == CallKind::constructor) {
            if (callee->params.empty()) return unknown();
            ModuleDType found = after(*callee, parameter(*callee, 0), left);
            if (!found.known()) found = of_parts(*callee, left);
            return found.known() ? found : by_default(f, at, left);
        }
        ModuleDType found =
            called_at(origin, returned_by(*callee, left, [](const Operand& value) { return &value; }));
        if (const Operand* wide = wide_argument(origin);
            wide && is_low_precision(found.dtype) && !found.proven)
            return make(wide->dtype);
        if (found.known() || !wraps_module(origin)) return found;
    }
    if (wraps_module(origin)) return state(f, origin.args[0], at, left);
    if (of_ == DTypeOf::trained && is_quantized(origin)) return make(DType::fp32);
    if (is_load(origin)) {
        ModuleDType found = unknown();
        found.loaded = &origin;
        return found;
    }
    if (origin.kind == CallKind::constructor && origin.result.shape == Shape::module &&
        !is_low_precision(origin.result.dtype) && !keyword_argument(origin, "dtype")) {
        ModuleDType found = by_default(f, at, left);
        if (found.known()) return found;
    }
    if (origin.result.dtype == DType::unknown) return loaded_as(f, origin);
    return make(origin.result.dtype, true,
                {{origin.span, "made in " + std::string(label(origin.result.dtype)) + " here"}});
}

// What the constructor of a class makes its parameters and layers of, if all of those are low whose dtype is known.
ModuleDType ModuleDTypes::of_parts(const Function& init, int left) {
    ModuleDType common = unknown();
    if (left <= 0) return common;
    for (const Call& call : init.calls) {
        if (!call.result.name.str().starts_with("self.") || call.kind != CallKind::constructor) continue;
        const bool is_weight = leaf(call.name.str()) == "Parameter" || call.result.shape == Shape::module;
        if (!is_weight || !is_float(call.result.dtype)) continue;
        if (!is_low_precision(call.result.dtype)) return unknown();
        if (!common.known())
            common = make(call.result.dtype, false,
                          {{call.span, "made in " + std::string(label(call.result.dtype)) + " here"}});
    }
    return common;
}

// [part.half() for part in parts]: what is said of a list is true of each of its modules.
ModuleDType ModuleDTypes::items_of(const Function& f, const Call& display, int left) {
    ModuleDType common = unknown();
    bool first = true;
    for (const Operand& item : display.args) {
        merge(common, state(f, item, static_cast<std::size_t>(index_of(f, display)), left), first);
        first = false;
    }
    return common;
}

bool ModuleDType::is_auto() const { return loaded && dtype_of_load(*loaded); }

const Operand* dtype_of_load(const Call& load) {
    const Operand* dtype = keyword_argument(load, "dtype");
    return dtype ? dtype : keyword_argument(load, "torch_dtype");
}

// from_pretrained(name, dtype=dtype), where another function decides the dtype.
ModuleDType ModuleDTypes::loaded_as(const Function& f, const Call& call) {
    const Operand* dtype = dtype_of_load(call);
    ModuleDType found = unknown();
    if (!dtype || leaf(call.name.str()) != "from_pretrained") return found;
    static_cast<TensorDType&>(found) = tensors_.of(f, *dtype);
    if (!is_float(found.dtype)) static_cast<TensorDType&>(found) = by_setting(f, *dtype, kFarthest);
    if (!is_float(found.dtype)) return unknown();
    found.chain.push_back({call.span, "loaded in " + std::string(label(found.dtype)) + " here"});
    return found;
}

ModuleDType ModuleDTypes::returned_by(const Function& callee, int left,
                                      const std::function<const Operand*(const Operand&)>& part) {
    ModuleDType common = unknown();
    bool first = true;
    for (const Operand& value : callee.returned) {
        const Operand* module = part(value);
        merge(common, module ? state(callee, *module, callee.calls.size(), left) : unknown(), first);
        first = false;
    }
    return common;
}

ModuleDType ModuleDTypes::of_parameter(const Function& f, std::int32_t param, int left) {
    ModuleDType common = unknown();
    bool first = true;
    const auto of = [&](const Function& caller, const Operand& argument, const Call& call) {
        return state(caller, argument, static_cast<std::size_t>(index_of(caller, call)), left);
    };
    for_each_passed(f, param, of, [&](ModuleDType found) {
        merge(common, std::move(found), std::exchange(first, false));
        return false;
    });
    return common;
}

// What the methods that call this one did to the attribute before; else what __init__ left.
ModuleDType ModuleDTypes::of_attribute(const Function& f, const Operand& module, int left) {
    if (f.parent_class.empty() || left <= 0) return unknown();
    const Operand object = attribute(module.name);
    const Function* init = classes_.method(f.parent_class, "__init__");
    bool is_called = init == nullptr || init == &f;
    for (const Call* call : callers_by_weight(context_, f)) {
        const Function* caller = context_.program.owner(*call);
        if (!caller || caller == &f || call->args.empty() || !is_self(call->args.front())) continue;
        is_called = true;
        ModuleDType found =
            last_event(*caller, object, 0, static_cast<std::size_t>(index_of(*caller, *call)), left);
        if (!found.known() && caller != init)
            found = once(outside_, *caller, object, [&] { return of_attribute(*caller, object, left - 1); });
        if (found.known()) return found;
    }
    if (!is_called) {
        ModuleDType found = last_event(*init, object, 0, init->calls.size(), left);
        if (found.known()) return found;
    }
    const auto [maker, value] = classes_.kept(f.parent_class, module.name);
    return value ? state(*maker, *value, maker->calls.size(), left) : assigned_in_class(f, module, left);
}

// self.model = AutoModel.from_pretrained(...), if the class assigns it once.
ModuleDType ModuleDTypes::assigned_in_class(const Function& f, const Operand& module, int left) {
    const Function* in = nullptr;
    Operand made = attribute(module.name);
    for (const Function* method : classes_.methods(f.parent_class))
        for (const Call& call : method->calls) {
            if (call.result.name != module.name || call.in_place) continue;
            const bool again = in == method && !call.args.empty() && is_same(call.args.front(), module);
            if (in && !again) return unknown();
            in = method;
            made.call = index_of(*method, call);
        }
    if (!in || left <= 0) return unknown();
    // What is made in fp32 follows a later cast of the whole.
    ModuleDType found = state(*in, made, in->calls.size(), left - 1);
    return is_low_precision(found.dtype) || found.loaded ? found : unknown();
}

}  // namespace mp::lint
