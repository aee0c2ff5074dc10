#include "analyzer/analyses/trials.hpp"

#include <algorithm>
#include <span>

#include "analyzer/analyses/python_code.hpp"
#include "analyzer/analyses/support.hpp"

namespace mp::lint {
namespace {

// The functions of a file stand together, ordered by their lines.
std::span<const Function* const> functions_of(const Program& program, Symbol file) {
    const auto found = std::ranges::equal_range(program.functions(), file.str(), {},
                                                [](const Function* f) { return f->span.file.str(); });
    return {found.begin(), found.end()};
}

bool is_run_elsewhere(const RuleContext& context, Symbol file) {
    return std::ranges::any_of(functions_of(context.program, file), [&](const Function* f) {
        return std::ranges::any_of(context.program.callers(f->usr), [&](const Call* call) {
            return call->span.file != file && code_kind(context, call->span.file) == CodeKind::product;
        });
    });
}

// `if __name__ == "__main__":` of a module. What runs when the module is imported is behind no branch.
bool is_in_main_block(const Function& f, const Call& call) {
    return leaf(f.name.str()) == "<module>" && is_behind_branch(f, call.block);
}

bool measures(CodeKind kind) { return kind == CodeKind::test || kind == CodeKind::benchmark; }

bool covers(const SourceSpan& whole, const SourceSpan& part) {
    return whole.line <= part.line && part.line <= std::max(whole.line, whole.end_line);
}

}  // namespace

bool is_trial(const RuleContext& context, const Function& f, const Call& call) {
    if (measures(code_kind(context, f.span.file))) return true;
    if (!is_python(f)) return false;
    return measures(kind_by_name(f)) || (is_in_main_block(f, call) && is_run_elsewhere(context, f.span.file));
}

bool is_trial(const RuleContext& context, const SourceSpan& at) {
    if (measures(code_kind(context, at.file))) return true;
    return std::ranges::any_of(functions_of(context.program, at.file), [&](const Function* f) {
        const auto here = std::ranges::find_if(f->calls, [&](const Call& c) { return covers(c.span, at); });
        return here != f->calls.end() && is_trial(context, *f, *here);
    });
}

std::vector<const Call*> callers_by_weight(const RuleContext& context, const Function& f) {
    std::vector<const Call*> callers, trials;
    for (const Call* call : context.program.callers(f.usr)) {
        const Function* caller = context.program.owner(*call);
        (caller && is_trial(context, *caller, *call) ? trials : callers).push_back(call);
    }
    callers.insert(callers.end(), trials.begin(), trials.end());
    return callers;
}

}  // namespace mp::lint
