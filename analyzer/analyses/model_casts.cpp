#include "analyzer/analyses/model_casts.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/engines.hpp"
#include "analyzer/analyses/python_code.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/region/calls.hpp"
#include "analyzer/region/object_classes.hpp"

namespace mp::lint {
namespace {

// An object is not followed further than this through calls, towards callers and callees together.
constexpr int kFarthest = 3;

// Methods that a module has and a tensor has not.
bool is_module_method(std::string_view method) {
    constexpr std::array<std::string_view, 10> kMethods{
        "parameters", "named_parameters", "modules",   "named_modules", "children", "named_children", "train",
        "eval",       "load_state_dict",  "state_dict"};
    return any_of(method, kMethods);
}

bool is_self(const Function& f, const Operand& value) {
    return value.param == 0 && value.name.str() == "self" && !f.parent_class.empty();
}

bool is_same(const Operand& a, const Operand& b) {
    return (!a.name.empty() && a.name == b.name) || (a.param != kNone && a.param == b.param);
}

constexpr std::array<std::string_view, 4> kCasts{"half", "bfloat16", "to", "type"};

// The dtype that a method of a module casts it to. Where the class comes from another file, only the method's name and
// its arguments show it.
DType cast_dtype(const Call& call) {
    if (call.result.dtype != DType::unknown) return call.result.dtype;
    const std::string_view method = leaf(call.name.str());
    if (method == "half") return DType::fp16;
    if (method == "bfloat16") return DType::bf16;
    for (const Operand& value : call.args)
        if (value.shape == Shape::dtype) return value.dtype;
    return DType::unknown;
}

// The call that returned this module: `model.cuda()` for the value model.cuda(). Calls are in evaluation
// order, so following such calls ends.
const Call* passed_on(const Function& f, const Operand& value, const Call* before = nullptr) {
    const Call* call = call_of(f, value);
    const bool earlier = call && (!before || call < before);
    if (!earlier || call->kind != CallKind::method || call->args.empty()) return nullptr;
    return passes_itself_on(leaf(call->name.str())) ? call : nullptr;
}

// `model` behind `model.cuda().eval()`.
const Operand& object_of(const Function& f, const Operand& value) {
    const Operand* object = &value;
    for (const Call* call = nullptr; object->name.empty(); object = &call->args.front()) {
        call = passed_on(f, *object, call);
        if (!call) break;
    }
    return *object;
}

// The call that made the object, behind methods that return it.
const Call* maker(const Function& f, const Operand& value) {
    const Operand* object = &value;
    for (const Call* call = passed_on(f, value); call; call = passed_on(f, *object, call))
        object = &call->args.front();
    return call_of(f, *object);
}

// A constructor or a library function made it: its class is known, or it is not a model of this program.
bool has_known_maker(const Program& program, const Function& f, const Operand& value) {
    const Call* made = maker(f, value);
    if (!made) return false;
    if (made->kind == CallKind::constructor) return true;
    return !made->name.str().starts_with("?.") && !program.definition(made->callee);
}

bool is_annotated(const Function& f, const Operand& value) {
    return value.param != kNone && static_cast<std::size_t>(value.param) < f.params.size() &&
           f.params[static_cast<std::size_t>(value.param)].shape == Shape::module;
}

// Annotated as torch.nn.Module, not as one of its classes: those name their own forward.
bool is_of_any_class(const Function& f, const Operand& value) {
    return is_annotated(f, value) && std::ranges::any_of(f.calls, [&](const Call& call) {
               return call.name.str() == "torch.nn.Module.forward" && !call.args.empty() &&
                      call.args.front().param == value.param;
           });
}

// The parameter of the callee that takes the argument at this place.
std::int32_t parameter_of(Call call, std::size_t at, const Function& callee) {
    // A function whose name looks like a class's is called like any function.
    if (call.kind == CallKind::constructor && leaf(callee.name.str()) != "__init__")
        call.kind = CallKind::function;
    for (std::size_t p = 0; p < callee.params.size(); ++p)
        if (argument_for(call, callee, static_cast<std::int32_t>(p)) == &call.args[at])
            return static_cast<std::int32_t>(p);
    return kNone;
}

class Finder {
public:
    explicit Finder(const RuleContext& context)
        : context_(context), program_(context.program), classes_(classes_of(context)) {}

    // Whether the call casts a module, also one of unknown class.
    bool is_cast(const Function& f, const Call& call) const {
        if (!may_be_cast(f, call)) return false;
        const Operand& model = object_of(f, call.args.front());
        if (is_self(f, model) || model.shape == Shape::tensor) return false;
        // The linker names the methods of objects whose class it knows.
        if (!call.name.str().starts_with("?.")) return is_of_any_class(f, model);
        return !has_known_maker(program_, f, model) && is_module(f, model, kFarthest);
    }

    bool may_be_cast(const Function& f, const Call& call) const {
        if (!is_python(f) || call.kind != CallKind::method || call.args.empty()) return false;
        return is_low_precision(cast_dtype(call)) && code_kind(context_, f.span.file) == CodeKind::product;
    }

    // The class of the module that is cast; empty when it is not one of the program's.
    Symbol class_of_cast(const Function& f, const Call& call) const {
        const std::string_view method = call.name.str();
        const Symbol owner(method.substr(0, method.find_last_of('.')));
        if (classes_.knows(owner)) return owner;
        const Operand& model = object_of(f, call.args.front());
        if (is_self(f, model)) return f.parent_class;
        for (const Symbol found : {class_made(f, model), class_kept(f, model.name)})
            if (!found.empty()) return found;
        return class_passed(f, model.param);
    }

private:
    // By a constructor, or by a function that returns what one made.
    Symbol class_made(const Function& f, const Operand& value, int left = kFarthest) const {
        const Call* made = maker(f, value);
        if (!made) return {};
        if (made->kind == CallKind::constructor && classes_.knows(made->name)) return made->name;
        const Function* factory = left > 0 ? program_.definition(made->callee) : nullptr;
        if (!factory) return {};
        for (const Operand& returned : factory->returned)
            if (const Symbol found = class_made(*factory, returned, left - 1); !found.empty()) return found;
        return {};
    }

    // The class of an attribute that a method of the class sets.
    Symbol class_kept(const Function& f, Symbol attribute) const {
        if (f.parent_class.empty() || !attribute.str().starts_with("self.")) return {};
        for (const Function* method : classes_.methods(f.parent_class))
            for (const Call& call : method->calls)
                if (call.result.name == attribute && call.kind == CallKind::constructor &&
                    classes_.knows(call.name))
                    return call.name;
        const auto kept = classes_.kept(f.parent_class, attribute);
        return kept.init ? class_made(*kept.init, *kept.value) : Symbol();
    }

    Symbol class_passed(const Function& f, std::int32_t param) const {
        if (param == kNone) return {};
        for (const Call* call : program_.callers(f.usr)) {
            const Function* caller = program_.owner(*call);
            const Operand* argument = argument_for(*call, f, param);
            const Symbol found = caller && argument ? class_made(*caller, *argument) : Symbol();
            if (!found.empty()) return found;
        }
        return {};
    }

    bool is_module(const Function& f, const Operand& value, int left) const {
        if (value.shape == Shape::module || is_used_as_module(f, value, left)) return true;
        return is_module_elsewhere(f, value, left) || is_passed_as_module(f, value.param, left);
    }

    // Another method of the class shows that the attribute is a module.
    bool is_module_elsewhere(const Function& f, const Operand& value, int left) const {
        if (f.parent_class.empty() || !value.name.str().starts_with("self.")) return false;
        Operand attribute;
        attribute.name = value.name;
        return std::ranges::any_of(classes_.methods(f.parent_class), [&](const Function* other) {
            return other != &f && is_used_as_module(*other, attribute, left);
        });
    }

    bool is_used_as_module(const Function& f, const Operand& value, int left) const {
        return std::ranges::any_of(f.calls, [&](const Call& call) {
            for (std::size_t i = 0; i < call.args.size(); ++i)
                if (is_same(object_of(f, call.args[i]), value) && shows_module(call, i, left)) return true;
            return false;
        });
    }

    bool shows_module(const Call& call, std::size_t at, int left) const {
        if (at == 0 && call.kind == CallKind::method) return is_module_method(leaf(call.name.str()));
        if (call.name.str() == "isinstance")
            return call.args.size() == 2 && call.args[1].constant.str() == "torch.nn.Module";
        const Function* callee = left > 0 ? program_.definition(call.callee) : nullptr;
        const std::int32_t param = callee ? parameter_of(call, at, *callee) : kNone;
        if (param == kNone) return false;
        Operand inside;
        inside.param = param;
        inside.name = callee->params[static_cast<std::size_t>(param)].name;
        return is_annotated(*callee, inside) || is_used_as_module(*callee, inside, left - 1);
    }

    // Some caller passes a module for the parameter.
    bool is_passed_as_module(const Function& f, std::int32_t param, int left) const {
        if (param == kNone || left == 0) return false;
        return std::ranges::any_of(program_.callers(f.usr), [&](const Call* call) {
            const Function* caller = program_.owner(*call);
            const Operand* argument = argument_for(*call, f, param);
            return caller && argument && is_module(*caller, *argument, left - 1);
        });
    }

    const RuleContext& context_;
    const Program& program_;
    const Classes& classes_;
};

}  // namespace

std::vector<ModelCast> fp16_model_casts(const RuleContext& context) {
    const Finder finder(context);
    std::vector<ModelCast> casts;
    for_each_call(context.program, last_part_in(kCasts), [&](const Function& f, const Call& call) {
        if (cast_dtype(call) == DType::fp16 && finder.is_cast(f, call)) casts.push_back({&f, &call});
    });
    return casts;
}

HalfModels::HalfModels(const RuleContext& context) : classes_(classes_of(context)) {
    const Finder finder(context);
    for_each_call(context.program, last_part_in(kCasts), [&](const Function& f, const Call& call) {
        if (!finder.may_be_cast(f, call)) return;
        const Symbol of_class = finder.class_of_cast(f, call);
        if (of_class.empty()) return;
        casts_.push_back({&f, call.span, cast_dtype(call), of_class});
        if (!parts_.contains(of_class)) parts_.emplace(of_class, parts_of(of_class));
    });
    for (const Engine& engine : engines_of(context)) {
        const DType dtype = engine.weights ? engine.dtype : engine.buffer;
        if (engine.function && is_low_precision(dtype))
            casts_.push_back({engine.function, engine.at, dtype, {}});
    }
}

std::unordered_set<Symbol> HalfModels::parts_of(Symbol whole) const {
    std::vector<Symbol> open{whole};
    std::unordered_set<Symbol> seen{whole};
    const auto look_at = [&](Symbol name) {
        if (classes_.knows(name) && seen.insert(name).second) open.push_back(name);
    };
    while (!open.empty()) {
        const Symbol name = open.back();
        open.pop_back();
        for (const Function* method : classes_.methods(name)) {
            for (const Symbol base : method->bases) look_at(base);
            for (const Call& call : method->calls)
                if (call.kind == CallKind::constructor) look_at(call.name);
        }
    }
    return seen;
}

std::vector<Note> HalfModels::of(const Function& method) const {
    for (const Cast& cast : casts_) {
        // An engine that may get any module says nothing about this one.
        if (cast.of_class.empty() || !parts_.at(cast.of_class).contains(method.parent_class)) continue;
        return {{cast.at, "a module that contains it becomes " + std::string(label(cast.dtype)) + " here"}};
    }
    return {};
}

TensorDType HalfModels::dtype_of(const Function& method) const {
    for (const Cast& cast : casts_)
        if (!cast.of_class.empty() && parts_.at(cast.of_class).contains(method.parent_class))
            return {.dtype = cast.dtype,
                    .proven = false,
                    .chain = {{cast.at, "a module that contains it becomes " +
                                            std::string(label(cast.dtype)) + " here"}}};
    return {.dtype = DType::unknown, .proven = false, .chain = {}};
}

const HalfModels& half_models_of(const RuleContext& context) {
    return context.half_models.get([&] { return std::make_shared<const HalfModels>(context); });
}

std::string_view package_root(const Function& f) {
    const std::string_view name = f.name.str();
    const std::string_view file = f.span.file.str();
    const std::string_view package = name.substr(0, name.find('.'));
    for (auto at = file.rfind(package); at != std::string_view::npos && !package.empty();
         at = at == 0 ? std::string_view::npos : file.rfind(package, at - 1)) {
        const auto end = at + package.size();
        if ((at == 0 || file[at - 1] == '/') && end < file.size() && file[end] == '/')
            return file.substr(0, end);
    }
    return file;
}

}  // namespace mp::lint
