#pragma once

// What rules share: names, severities, and the one way a finding is finished.

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "analyzer/analyses/context.hpp"
#include "analyzer/region/calls.hpp"

namespace mp::lint {

// "cub" is the outermost scope of "cub::BlockReduce::Sum", also as "::cub::..."; "torch.nn" one of
// "torch.nn.Linear.forward".
bool is_within(std::string_view qualified, std::string_view scope);
// Letter case ignored. Only for library vocabulary and for lowering a severity, never as evidence.
bool mentions(std::string_view text, std::string_view part);
bool any_of(std::string_view text, std::span<const std::string_view> names);

// "fp16", "bf16"; "fp16 or bf16" when it is not known which.
std::string_view label(DType);
// A low-precision dtype that is known exactly: what an error needs.
bool is_proven_low(DType);
Severity error_if_proven(DType);

// A scalar or packed floating value with more bits than any half.
bool is_wide(DType);

// The constant as a number; nothing when it is not one ("nullptr", "CUDA_R_16F", "inf").
std::optional<double> number_of(const Operand&);
std::optional<double> number_in(std::string_view text);  // finite, and all of the text

// How an operand is named to the user: its name, else its text; empty when it has neither.
std::string_view naming(const Operand&);
// A letter, a digit or an underscore of a name in ASCII.
bool is_part_of_name(char);
// " 'acc'" or "" : for messages that read well with and without a name.
std::string quoted(std::string_view name);

// The folder of a file; empty without one.
std::string_view folder_of(Symbol file);

// The function in whose body a lambda of C++ is written, as a dispatch macro does (its USR is the first part of the
// lambda's); of other functions their own.
Symbol written_in(const Function&);

// Whether Python hands on something of which the test holds, without calling it: {"a": ext.run}.
template <typename Test>
bool is_handed_on(const Program& program, Test test) {
    return std::ranges::any_of(program.units(),
                               [&](const Unit& unit) { return std::ranges::any_of(unit.taken, test); });
}

// These functions, and all that `next(function, add)` adds for one of them.
template <typename Next>
std::unordered_set<const Function*> closure(std::unordered_set<const Function*> found, Next next) {
    std::vector<const Function*> open(found.begin(), found.end());
    while (!open.empty()) {
        const Function* const at = open.back();
        open.pop_back();
        next(*at, [&](const Function* other) {
            if (other && found.insert(other).second) open.push_back(other);
        });
    }
    return found;
}

// These functions, and all that runs from them.
std::unordered_set<const Function*> functions_run_by(const Program&, std::unordered_set<const Function*>);

// The Python classes of the program, found at the first call for a context and kept with it.
const Classes& classes_of(const RuleContext&);

// A variance, a mean, a sum of squares or an inverse root appears in this function.
bool computes_statistics(const Function&);

// A function that only describes shapes has no findings. Findings in tests and benchmarks have a lower severity
// (severity_in). Adds the enclosing function and, after the finding's own notes, the reasons for its dtypes.
void emit(const RuleContext&, const Function&, Finding, Findings& out);

// The same for a sum in half: a note where the program offers the function with fp32 sums too, so who calls it chooses.
void emit_sum(const RuleContext&, const Function&, Finding, Findings& out);

// For a rule that judges calls of certain names or ops: `name` is called once per name, `op` once per op,
// and only the calls that one of them accepts are visited.
template <typename Judge>
void for_each_call_or_op(const Program& program, const NameQuestion& name, const NameQuestion& op,
                         Judge judge) {
    const std::span<const Function* const> functions = program.functions();
    for (const CallAt& at : program.calls().select(name, op)) {
        const Function& f = *functions[at.function];
        judge(f, f.calls[at.call]);
    }
}

template <typename Judge>
void for_each_call(const Program& program, const NameQuestion& name, Judge judge) {
    for_each_call_or_op(program, name, {}, judge);
}

template <typename Judge>
void for_each_op(const Program& program, const NameQuestion& op, Judge judge) {
    for_each_call_or_op(program, {}, op, judge);
}

// A rule that looks at one kind of fact of every function.
template <typename Facts, typename Judge>
void for_each(const RuleContext& context, Facts Function::* facts, Judge judge) {
    for (const Function* function : context.program.functions())
        for (const auto& fact : function->*facts) judge(*function, fact);
}

}  // namespace mp::lint
