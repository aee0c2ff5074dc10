#include "analyzer/analyses/model_casts.hpp"

#include <algorithm>
#include <array>

#include "analyzer/analyses/arguments.hpp"
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

bool casts_to_fp16(std::string_view method) { return method == "half" || method == "to" || method == "type"; }

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

// A constructor or a library function made it: its class is known, or it is not a model of this program.
bool has_known_maker(const Program& program, const Function& f, const Operand& value) {
    const Operand* object = &value;
    for (const Call* call = passed_on(f, value); call; call = passed_on(f, *object, call))
        object = &call->args.front();
    const Call* made = call_of(f, *object);
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
    Finder(const Program& program, const Classes& classes) : program_(program), classes_(classes) {}

    bool is_cast(const Function& f, const Call& call) const {
        if (!is_python(f) || call.kind != CallKind::method || call.args.empty()) return false;
        if (call.result.dtype != DType::fp16 || code_kind(f.span.file) != CodeKind::product) return false;
        const Operand& model = object_of(f, call.args.front());
        if (is_self(f, model) || model.shape == Shape::tensor) return false;
        // The linker names the methods of objects whose class it knows.
        if (!call.name.str().starts_with("?.")) return is_of_any_class(f, model);
        return !has_known_maker(program_, f, model) && is_module(f, model, kFarthest);
    }

private:
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

    const Program& program_;
    const Classes& classes_;
};

}  // namespace

std::vector<ModelCast> fp16_model_casts(const Program& program, const Classes& classes) {
    const Finder finder(program, classes);
    std::vector<ModelCast> casts;
    const auto may = [](std::string_view name) { return casts_to_fp16(leaf(name)); };
    for_each_call(program, may, [&](const Function& f, const Call& call) {
        if (finder.is_cast(f, call)) casts.push_back({&f, &call});
    });
    return casts;
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
