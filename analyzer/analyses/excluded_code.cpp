#include "analyzer/analyses/excluded_code.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/program_options.hpp"
#include "analyzer/analyses/python_code.hpp"
#include "analyzer/analyses/run_order.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/trials.hpp"
#include "analyzer/analyses/unused_code.hpp"

namespace mp::lint {
namespace {

// exec(open("configurator.py").read()): the command line can change every name.
bool overwrites_names(const Call& call) { return call.name.str() == "exec"; }

// The definition of the name in the statements of a module; nullptr if there is none, or more than one.
const Definition* only_definition(const Function& module, std::string_view name) {
    const Definition* found = nullptr;
    for (const Definition& d : module.definitions) {
        if (leaf(d.name.str()) != name) continue;
        if (found) return nullptr;
        found = &d;
    }
    return found;
}

// call_at, in a Python function with branches.
const Call* branched_call_at(const Function& f, const SourceSpan& at) {
    return is_python(f) && f.flow.size() >= 2 ? call_at(f, at) : nullptr;
}

constexpr const char* kOption = "this option keeps the program from it, unless it is given";

// The constant of the file that keeps control from what stands here: `DEBUG = False`, and `if DEBUG:` around it.
std::optional<Exclusion> exclusion_by_constant(const RuleContext& context, const Function& f,
                                               const SourceSpan& at) {
    const Call* here = branched_call_at(f, at);
    if (!here) return std::nullopt;
    const auto functions = functions_of(context.program, f.span.file);
    const auto module = std::ranges::find_if(functions, [](const Function* g) { return is_statements(*g); });
    if (module == functions.end() || std::ranges::any_of((*module)->calls, overwrites_names))
        return std::nullopt;
    for (const Block& block : f.flow)
        for (const Edge& edge : block.to) {
            if (edge.condition.empty()) continue;
            const Definition* constant = only_definition(**module, edge.condition.str());
            const auto value = constant ? truth_of(constant->value.constant.str()) : std::nullopt;
            if (value && *value != edge.when && runs_only_if(f, here->block, edge.condition, edge.when))
                return Exclusion{constant->span, "this constant keeps the program from it"};
        }
    return std::nullopt;
}

// What a parameter has to be where control reaches a block: `if not logits:`.
struct Required {
    std::size_t parameter;
    bool value;
};

std::vector<Required> required_at(const Function& f, const SourceSpan& at) {
    std::vector<Required> found;
    const Call* here = branched_call_at(f, at);
    if (!here) return found;
    for (std::size_t p = 0; p < f.params.size(); ++p)
        for (const bool value : {true, false})
            if (runs_only_if(f, here->block, f.params[p].name, value)) found.push_back({p, value});
    return found;
}

// The parameter's value in this call, where it is True or False.
std::optional<bool> passed(const Call& call, const Function& callee, std::size_t parameter) {
    const Parameter& p = callee.params[parameter];
    if (const Operand* value = argument_for(call, callee, static_cast<std::int32_t>(parameter)))
        return truth_of(value->constant.str());
    const bool is_open = has_unpacked(call) || keyword_argument(call, p.name.str());
    return is_open ? std::nullopt : truth_of(p.constant.str());
}

// The first of its calls, each of which passes a constant that keeps control from what stands here: `f(x, logits=True)`
// and `if not logits:` around it.
const Call* call_that_excludes(const RuleContext& context, const Function& f, const SourceSpan& at) {
    const auto callers = context.program.callers(f.usr);
    const std::vector<Required> required = required_at(f, at);
    if (callers.empty() || required.empty()) return nullptr;
    const auto is_kept_out = [&](const Call* call) {
        return std::ranges::any_of(
            required, [&](const Required& r) { return passed(*call, f, r.parameter) == !r.value; });
    };
    if (!std::ranges::all_of(callers, is_kept_out)) return nullptr;
    // partial(criterion, logits=False): a call that is not seen.
    return is_taken(context.program, f) ? nullptr : callers.front();
}

// Ways of calls that are followed back.
constexpr int kMostCalls = 4;

std::optional<Exclusion> exclusion_within(const RuleContext& context, const Function& f, const SourceSpan& at,
                                          int calls) {
    if (const std::optional<Exclusion> constant = exclusion_by_constant(context, f, at)) return constant;
    if (const std::optional<SourceSpan> option = option_that_excludes(context, f, at))
        return Exclusion{*option, kOption};
    if (const Call* call = call_that_excludes(context, f, at))
        return Exclusion{call->span, "what this call passes keeps it from running"};
    if (is_never_called(context, f)) return Exclusion{f.span, "nothing in this program calls this function"};
    const auto callers = context.program.callers(f.usr);
    if (callers.empty() || calls == kMostCalls || is_taken(context.program, f)) return std::nullopt;
    std::optional<Exclusion> first;
    for (const Call* call : callers) {
        const Function* caller = context.program.owner(*call);
        const auto excluded =
            caller && caller != &f ? exclusion_within(context, *caller, call->span, calls + 1) : std::nullopt;
        if (!excluded) return std::nullopt;
        if (!first) first = excluded;
    }
    return first;
}

}  // namespace

std::optional<Exclusion> exclusion_of(const RuleContext& context, const Function& f, const SourceSpan& at) {
    return exclusion_within(context, f, at, 0);
}

std::optional<Exclusion> exclusion_of_cast(const RuleContext& context, const Function& f,
                                           const SourceSpan& at) {
    if (const auto constant = exclusion_by_constant(context, f, at)) return constant;
    const auto option = context.project.is_given ? option_that_excludes(context, f, at) : std::nullopt;
    return option ? std::optional(Exclusion{*option, kOption}) : std::nullopt;
}

std::optional<Exclusion> exclusion_of_region(const RuleContext& context, const Function& f,
                                             const SourceSpan& opened) {
    if (const auto option = option_that_excludes(context, f, opened)) return Exclusion{*option, kOption};
    for (const Call& call : f.calls) {
        const Operand* enabled = call.span == opened ? keyword_argument(call, "enabled") : nullptr;
        if (!enabled) continue;
        if (const auto option = default_that_keeps_off(context, f, *enabled))
            return Exclusion{*option, kOption};
    }
    return std::nullopt;
}

bool is_open_choice(const RuleContext& context, const Function& f, const SourceSpan& at) {
    const auto callers = context.program.callers(f.usr);
    if (callers.empty()) return false;
    return std::ranges::any_of(required_at(f, at), [&](const Required& r) {
        return std::ranges::none_of(
            callers, [&](const Call* call) { return passed(*call, f, r.parameter) == r.value; });
    });
}

}  // namespace mp::lint
