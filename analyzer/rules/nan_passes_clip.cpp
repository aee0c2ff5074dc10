// MP214 nan-passes-clip
//
// What   Low-precision gradients are multiplied by `norm > limit ? limit / norm : 1`, and nothing asks whether the norm
//        is finite.
// Why    A comparison with NaN is false: the factor is 1, and the update writes NaN to every weight it reaches.
// Fix    Skip the update unless the norm is finite.
// Silent Another comparison of the norm, finite tests of a norm or in device code, factors that are not followed to
//        such a function.
// Tests  testdata/lint/MP214.md, tests/analyzer/rules/nan_passes_clip_test.cpp

#include <algorithm>

#include "analyzer/analyses/loss_scales.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/rules/rule.hpp"
#include "kernels/numerics/op_traits.hpp"

namespace mp::lint {
namespace {

// The branch of the clip: "(grad_norm>limit)", or "(limit<grad_norm)".
struct Clip {
    Symbol condition;
    std::string_view norm;
};

Clip clip_in(Symbol condition) {
    std::string_view text = condition.str();
    if (text.size() < 2 || text.front() != '(' || text.back() != ')') return {};
    text = text.substr(1, text.size() - 2);
    const std::size_t sign = text.find_first_of("<>");
    if (sign == std::string_view::npos || text.find_first_of("<>=&|", sign + 1) != std::string_view::npos)
        return {};
    const std::string_view norm = text[sign] == '>' ? text.substr(0, sign) : text.substr(sign + 1);
    return mentions(norm, "norm") ? Clip{condition, norm} : Clip{};
}

// The only comparison of a norm in a function; another one may be the guard.
Clip only_clip(const Function& f) {
    Clip found;
    for (const Block& block : f.flow)
        for (const Edge& edge : block.to) {
            if (!mentions(edge.condition.str(), "norm") || edge.condition == found.condition) continue;
            const Clip clip = clip_in(edge.condition);
            if (clip.norm.empty() || !found.norm.empty()) return {};
            found = clip;
        }
    return found;
}

bool tests_norms(const Program& program, std::string_view norm) {
    return std::ranges::any_of(program.functions(), [&](const Function* f) {
        return std::ranges::any_of(f->calls, [&](const Call& call) {
            return spells_finite_test(leaf(call.name.str())) &&
                   std::ranges::any_of(call.args, [&](const Operand& value) {
                       return naming(value) == norm || mentions(value.text.str(), "norm");
                   });
        });
    });
}

void check(const RuleContext& context, Findings& out) {
    if (context.inference || !has_scalings(context.program)) return;
    if (tests_finite(context.program, Code::device)) return;
    const LossScales scales(context.program);
    std::vector<SourceSpan> reported;
    for_each(context, &Function::scalings, [&](const Function& optimizer, const Scaling& scaling) {
        if (scaling.stored || !scaling.averages || scaling.divides) return;
        for (const ScaleValue& factor : scales.of(optimizer, scaling).values) {
            if (factor.value != 1 || !factor.function || std::ranges::count(reported, factor.span)) continue;
            const Clip clip = only_clip(*factor.function);
            if (clip.norm.empty() || tests_norms(context.program, clip.norm)) continue;
            reported.push_back(factor.span);
            emit(context, *factor.function,
                 {.rule = "MP214",
                  .severity = Severity::warning,
                  .span = factor.span,
                  .message = "the factor of the gradients is 1 when" + quoted(clip.norm) +
                             " is NaN, because " + std::string(clip.condition.str()) +
                             " is false then: the update writes NaN to the weights",
                  .fix = "skip the update unless isfinite(" + std::string(clip.norm) + ")",
                  .notes = {{scaling.span, "the optimizer multiplies the gradients here"}},
                  .function = {}},
                 out);
        }
    });
}

}  // namespace

extern constinit const Rule kNanPassesClip{.id = "MP214",
                                           .name = "nan-passes-clip",
                                           .severity = Severity::warning,
                                           .on_by_default = true,
                                           .confirmed_by = "MPT074",
                                           .triggers = Triggers::cpp_only(),
                                           .check = check};

}  // namespace mp::lint
