#include "analyzer/analyses/native_callers.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "analyzer/analyses/support.hpp"
#include "analyzer/region/classes.hpp"

namespace mp::lint {
namespace {

constexpr std::size_t kMostFunctions = 64;  // on the way from a kernel to what Python calls

bool is_half_instantiation(const Function& f) {
    return std::ranges::any_of(f.template_args,
                               [](const TemplateArgument& arg) { return is_low_precision(arg.dtype); });
}

bool casts_to_fp32(const Function& f) {
    return std::ranges::any_of(f.annotations, [](Symbol annotation) {
        const std::string_view text = annotation.str();
        return leaf(text.substr(0, text.find('('))) == "custom_fwd" &&
               text.find("cast_inputs=torch.float32") != std::string_view::npos;
    });
}

// forward of such a class, or its backward: the gradients of fp32 results are fp32.
bool runs_in_fp32(const RuleContext& context, const Function& f) {
    if (casts_to_fp32(f)) return true;
    if (leaf(f.name.str()) != "backward" || f.parent_class.empty()) return false;
    const Function* forward = classes_of(context).method(f.parent_class, "forward");
    return forward && casts_to_fp32(*forward);
}

// The function in whose body a lambda is written, as a dispatch macro does: its USR is the first part of the lambda's.
Symbol written_in(const Function& f) {
    const std::string_view usr = f.usr.str();
    return f.kind == FunctionKind::lambda ? Symbol(usr.substr(0, usr.find("@lambda@"))) : f.usr;
}

// The calls of Python to a function of this name: a module that is compiled from C++ has no Python body.
std::vector<const Call*> python_calls(const Program& program, std::string_view name) {
    const std::array<std::string_view, 1> names{name};
    std::vector<const Call*> calls;
    for_each_call(program, last_part_in(names), [&](const Function& f, const Call& call) {
        if (is_python(f)) calls.push_back(&call);
    });
    return calls;
}

}  // namespace

std::optional<Note> fp32_caller(const RuleContext& context, const Function& f) {
    if (is_python(f) || !is_half_instantiation(f)) return std::nullopt;
    const Program& program = context.program;
    std::optional<Note> found;
    std::vector<Symbol> open{f.usr};
    for (std::size_t next = 0; next < open.size(); ++next) {
        if (open.size() > kMostFunctions) return std::nullopt;
        const Function* at = program.definition(open[next]);
        if (!at) return std::nullopt;
        const std::vector<const Call*> calls = python_calls(program, leaf(at->name.str()));
        for (const Call* call : calls) {
            const Function* owner = program.owner(*call);
            if (!owner || !runs_in_fp32(context, *owner)) return std::nullopt;
            if (!found) found = Note{call->span, "Python runs this here, after a cast of its inputs to fp32"};
        }
        const std::span<const Call* const> callers = program.callers(at->usr);
        if (calls.empty() && callers.empty()) return std::nullopt;
        for (const Call* caller : callers) {
            const Function* owner = program.owner(*caller);
            if (!owner) return std::nullopt;
            const Symbol from = written_in(*owner);
            if (std::ranges::find(open, from) == open.end()) open.push_back(from);
        }
    }
    return found;
}

}  // namespace mp::lint
