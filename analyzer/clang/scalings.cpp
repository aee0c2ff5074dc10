// Products of a value in fp16 or bf16 memory and a factor that is the same for every element: a loss scale
// that is applied to a gradient, and the place where an optimizer removes it again.

#include <algorithm>
#include <charconv>

#include "analyzer/clang/decl_names.hpp"
#include "analyzer/clang/local_flow_impl.hpp"
#include "analyzer/clang/types.hpp"

namespace mp::lint {
namespace {

using namespace clang;

constexpr unsigned kMostFactors = 8;

// The pointer parameter of the root behind this memory; kNone when there is none.
std::int32_t array_of(const Terms& terms, const Place& place) {
    const auto* parameter = dyn_cast_or_null<ParmVarDecl>(place.base);
    return parameter && !place.frame && place.element ? terms.index_in_root(*parameter) : kNone;
}

const ParmVarDecl* scalar_parameter(const Terms& terms, Term t) {
    const auto* ref = t && !t.frame ? dyn_cast<DeclRefExpr>(t.expr) : nullptr;
    const auto* parameter = ref ? dyn_cast<ParmVarDecl>(ref->getDecl()) : nullptr;
    const bool is_scalar = parameter && parameter->getType()->isRealFloatingType();
    return is_scalar && terms.index_in_root(*parameter) != kNone ? parameter : nullptr;
}

std::string shortest(double value) {
    char text[32];
    return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

struct Factor {
    Term term;
    bool divides = false;
};

// a * b / c -> a, b and 1 / c
void add_factors(const Terms& terms, Term t, bool divides, llvm::SmallVectorImpl<Factor>& out) {
    if (out.size() >= kMostFactors) return;
    const Term resolved = terms.resolve(t);
    const Arith a = terms.arithmetic(resolved);
    if (a.kind != Arithmetic::multiply && a.kind != Arithmetic::divide)
        return out.push_back({resolved, divides});
    add_factors(terms, a.args[0], divides, out);
    add_factors(terms, a.args[1], divides != (a.kind == Arithmetic::divide), out);
}

bool is_kept_in_memory(const Terms& terms, const Step& step) {
    return !step.frame && step.value && array_of(terms, step.place) != kNone &&
           step.write->kind <= WriteKind::subtract;
}

}  // namespace

// An unchanged scalar parameter, or a number.
std::optional<Operand> Flow::scale_of(Term factor) const {
    Operand out;
    const auto value = terms.number(factor);
    const ParmVarDecl* parameter = scalar_parameter(terms, factor);
    if (!value && (!parameter || !terms.root().writes_to(parameter).empty())) return std::nullopt;
    if (parameter)
        out.param = terms.index_in_root(*parameter), out.name = Symbol(parameter->getNameAsString());
    if (value) out.constant = Symbol(shortest(*value));
    out.dtype = terms.dtype(factor);
    out.text = spelling(*factor.expr, context);
    return out;
}

// scale * (float)g[i], (float)g[i] / scale: only `product` itself, not an expression that contains it.
std::optional<Scaling> Flow::scaled_read(Term product) const {
    product = terms.strip(product);
    if (!product) return std::nullopt;
    const Arith a = terms.arithmetic(product);
    if (product.frame || (a.kind != Arithmetic::multiply && a.kind != Arithmetic::divide))
        return std::nullopt;
    for (std::size_t i = 0; i < (a.kind == Arithmetic::divide ? 1U : 2U); ++i) {
        const Term read = terms.resolve(a.args[i]);
        if (read.frame || !is_low_precision_value(read)) continue;
        const std::int32_t array = array_of(terms, terms.place(read));
        const auto factor = array != kNone ? scale_of(terms.resolve(a.args[1 - i])) : std::nullopt;
        if (!factor) continue;
        Scaling out;
        out.span = span_of(product.expr->getSourceRange(), context);
        out.target = spelling(*read.expr, context);
        out.param = array;
        out.dtype = terms.dtype(read);
        out.factor = *factor;
        out.divides = a.kind == Arithmetic::divide;
        return out;
    }
    return std::nullopt;
}

void Flow::find_scaled_reads(const Step& step, std::vector<Scaling>& out) const {
    const bool average = averages(step), step_down = !average && subtracts(step);
    if (!average && !step_down) return;
    terms.any_source(step.value, [&](Term e) {
        auto found = scaled_read(e);
        if (!found) return false;
        const auto known = std::ranges::find(out, found->span, &Scaling::span);
        Scaling& into = known == out.end() ? out.emplace_back(*std::move(found)) : *known;
        into.averages = into.averages || average;
        into.subtracts = into.subtracts || step_down;
        return false;
    });
}

// g[i] = (half)(scale * d / n)
void Flow::find_scaled_stores(const Step& step, std::vector<Scaling>& out) const {
    if (step.write->kind != WriteKind::assign || !is_low_precision_value(step.target)) return;
    llvm::SmallVector<Factor, kMostFactors> factors;
    add_factors(terms, step.value, false, factors);
    if (factors.size() < 2) return;
    for (const Factor& f : factors) {
        const auto factor = scale_of(f.term);
        if (!factor) continue;
        Scaling stored;
        stored.span = span_of(step.site->getSourceRange(), context);
        stored.target = spelling(*step.write->target, context);
        stored.param = array_of(terms, step.place);
        stored.dtype = terms.dtype(step.target);
        stored.factor = *factor;
        stored.divides = f.divides;
        stored.stored = true;
        out.push_back(std::move(stored));
    }
}

void Flow::add_scalings(Function& out) const {
    for (const Step& step : steps) {
        if (!is_kept_in_memory(terms, step)) continue;
        find_scaled_reads(step, out.scalings);
        find_scaled_stores(step, out.scalings);
    }
}

}  // namespace mp::lint
