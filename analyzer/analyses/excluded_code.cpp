#include "analyzer/analyses/excluded_code.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "analyzer/analyses/arguments.hpp"
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

std::optional<bool> truth_of(std::string_view constant) {
    if (constant == "true" || constant == "1") return true;
    if (constant == "false" || constant == "0") return false;
    return std::nullopt;
}

// call_at, in a Python function with branches.
const Call* branched_call_at(const Function& f, const SourceSpan& at) {
    return is_python(f) && f.flow.size() >= 2 ? call_at(f, at) : nullptr;
}

}  // namespace

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

namespace {

// "args.bits in [4, 8]": a field, and the numbers that it may be. Of a truth, 1 and 0 stand for all that are.
struct Listed {
    std::string_view field;
    std::vector<double> numbers;
    bool is_truth = false;

    bool has(double number) const {
        return std::ranges::find(numbers, is_truth ? number != 0 : number) != numbers.end();
    }
};

std::optional<Listed> listed_in(std::string_view condition) {
    const std::size_t in = condition.find(" in [");
    if (in == std::string_view::npos || !condition.ends_with(']')) return std::nullopt;
    const std::string_view of = condition.substr(0, in);
    if (of.find(' ') != std::string_view::npos || of.find('.') == std::string_view::npos) return std::nullopt;
    Listed found{leaf(of), {}, false};
    std::string_view rest = condition.substr(in + 5, condition.size() - in - 6);
    while (!rest.empty()) {
        const std::size_t comma = std::min(rest.find(','), rest.size());
        const std::optional<double> number = number_in(rest.substr(0, comma));
        if (!number) return std::nullopt;
        found.numbers.push_back(*number);
        rest.remove_prefix(std::min(comma + 1, rest.size()));
        while (rest.starts_with(' ')) rest.remove_prefix(1);
    }
    return found;
}

bool names_precision(std::string_view field) {
    constexpr std::array<std::string_view, 5> kWords{"precision", "dtype", "fp16", "bf16", "amp"};
    return std::ranges::any_of(kWords, [&](std::string_view word) { return mentions(field, word); });
}

// 1 of True, 0 of False, 16 of 16.
std::optional<double> figure_of(const Operand& value) {
    if (const std::optional<bool> truth = truth_of(value.constant.str())) return *truth ? 1 : 0;
    return number_of(value);
}

// `bits: int = 16`, `bits: int = field(default=16)` in the body of a class.
std::optional<double> default_number(const Function& body, const Definition& d) {
    if (!d.value.assumed) return std::nullopt;
    if (const std::optional<double> number = figure_of(d.value)) return number;
    if (d.value.call < 0 || static_cast<std::size_t>(d.value.call) >= body.calls.size()) return std::nullopt;
    const Operand* given = keyword_argument(body.calls[static_cast<std::size_t>(d.value.call)], "default");
    return given ? figure_of(*given) : std::nullopt;
}

// Whether a call or an object may give the field another value than its default.
bool may_be_given(const Program& program, std::string_view field, double otherwise) {
    const auto differs = [&](const Operand& value) { return figure_of(value) != otherwise; };
    return std::ranges::any_of(program.functions(), [&](const Function* f) {
        return std::ranges::any_of(
                   f->settings,
                   [&](const Setting& s) { return leaf(s.key.str()) == field && differs(s.value); }) ||
               std::ranges::any_of(f->calls, [&](const Call& call) {
                   const Operand* given = keyword_argument(call, field);
                   const bool by_name =
                       leaf(call.name.str()) == "__setitem__" || leaf(call.name.str()) == "setattr";
                   return (given && differs(*given)) ||
                          (by_name && call.args.size() > 2 && spelled(call.args[1]) == field &&
                           differs(call.args[2]));
               });
    });
}

// The only field of that name in the classes of the program, if its default is none of the numbers.
const Definition* field_that_is_none_of(const Program& program, const Listed& listed) {
    const Definition* found = nullptr;
    std::optional<double> number;
    for (const Function* f : program.functions()) {
        if (leaf(f->name.str()) != "<class>") continue;
        for (const Definition& d : f->definitions) {
            if (leaf(d.name.str()) != listed.field) continue;
            number = default_number(*f, d);
            if (found || !number || listed.has(*number)) return nullptr;
            found = &d;
        }
    }
    return found && !may_be_given(program, listed.field, *number) ? found : nullptr;
}

// The field that a variable holds: `lion = getattr(config, "use_lion", False)`. Empty: none.
std::string_view field_held_by(const Function& f, std::string_view variable) {
    const auto reads = std::ranges::find_if(f.calls, [&](const Call& call) {
        return call.name.str() == "getattr" && call.result.name.str() == variable && call.args.size() > 1;
    });
    return reads == f.calls.end() ? std::string_view() : spelled(reads->args[1]);
}

// What an option has to be where this edge is taken.
std::optional<Listed> required_by(const Function& f, const Edge& edge) {
    const std::string_view condition = edge.condition.str();
    if (std::optional<Listed> listed = edge.when ? listed_in(condition) : std::nullopt) return listed;
    const auto is_in_name = [](char c) { return is_part_of_name(c) || c == '.'; };
    if (condition.empty() || !std::ranges::all_of(condition, is_in_name)) return std::nullopt;
    const bool is_field = condition.find('.') != std::string_view::npos;
    const std::string_view field = is_field ? leaf(condition) : field_held_by(f, condition);
    return field.empty() ? std::nullopt : std::optional(Listed{field, {edge.when ? 1.0 : 0.0}, true});
}

// The field of a dataclass whose default keeps control from what stands here: `bits: int = 16`, and `if args.bits in
// [4, 8]:` around it, or `use_lion: bool = False`. Fields that name a precision are left to the rules.
const Definition* option_that_excludes(const RuleContext& context, const Function& f, const SourceSpan& at) {
    const Call* here = branched_call_at(f, at);
    if (!here) return nullptr;
    for (const Block& block : f.flow)
        for (const Edge& edge : block.to) {
            const std::optional<Listed> listed = required_by(f, edge);
            if (!listed || names_precision(listed->field)) continue;
            if (!runs_only_if(f, here->block, edge.condition, edge.when)) continue;
            if (const Definition* field = field_that_is_none_of(context.program, *listed)) return field;
        }
    return nullptr;
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
    if (const Definition* option = option_that_excludes(context, f, at))
        return Exclusion{option->span, "this option keeps the program from it, unless it is given"};
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

bool is_open_choice(const RuleContext& context, const Function& f, const SourceSpan& at) {
    const auto callers = context.program.callers(f.usr);
    if (callers.empty()) return false;
    return std::ranges::any_of(required_at(f, at), [&](const Required& r) {
        return std::ranges::none_of(
            callers, [&](const Call* call) { return passed(*call, f, r.parameter) == r.value; });
    });
}

}  // namespace mp::lint
