// Stores of a low-precision value that was computed from the value it replaces: weight updates and running
// averages. Also helpers that only round a value into storage.

#include <algorithm>
#include <set>

#include "analyzer/clang/decl_names.hpp"
#include "analyzer/clang/local_flow_impl.hpp"
#include "analyzer/clang/types.hpp"
#include "clang/AST/Attr.h"
#include "clang/AST/StmtCXX.h"

namespace mp::lint {
namespace {

using namespace clang;

// An update of weights has a few summands. Sums that are unrolled by hand open into each other without end.
constexpr unsigned kMostOpened = 64;
constexpr unsigned kDeepest = 6;  // variables and selections that are opened, one in the other

bool is_wide(DType d) { return d == DType::fp32 || d == DType::fp64; }

const Frame* outermost(const Frame* frame) {
    while (frame && frame->outer) frame = frame->outer;
    return frame;
}

// Storage that outlives the function: behind a pointer parameter, or a member.
bool is_outside(const Place& place) {
    return place.base && !place.frame && place.element && (isa<ParmVarDecl>(place.base) || place.of_this);
}

// (float*)&bits and back.
bool is_pun(const Expr& e) {
    const auto* cast = dyn_cast<CastExpr>(&e);
    if (!cast || cast->getCastKind() != CK_BitCast) return false;
    const QualType to = cast->getType()->getPointeeType(),
                   from = cast->getSubExpr()->getType()->getPointeeType();
    if (to.isNull() || from.isNull()) return false;
    const DType a = element_type(to).dtype, b = element_type(from).dtype;
    return (is_integer(a) && is_float(b)) || (is_float(a) && is_integer(b));
}

// The dtype of all numbers in a packed type: half[8], struct { half2 data[4]; }.
DType packed_dtype(QualType type, unsigned depth = 0) {
    const ElementType element = element_type(type.getNonReferenceType());
    if (element.dtype != DType::unknown) return element.dtype;
    if (type->isPointerType()) return packed_dtype(type->getPointeeType(), depth + 1);
    const Type* inner = type->getBaseElementTypeUnsafe();
    const auto* record = inner ? inner->getAsCXXRecordDecl() : nullptr;
    if (!record || !record->hasDefinition() || depth > 2) return DType::unknown;
    DType common = DType::unknown;
    for (const FieldDecl* field : record->fields()) {
        const DType one = packed_dtype(field->getType(), depth + 1);
        if (common != DType::unknown && one != common) return DType::unknown;
        common = one;
    }
    return common;
}

// What a store writes: the dtype of the target, or, when several numbers are moved at once (float4, a
// structure), of the array behind it.
DType stored_dtype(const Step& step) {
    const ElementType target = element_type(step.target.expr->getType());
    if (is_low_precision(target.dtype)) return target.dtype;
    const DType packed = packed_dtype(step.target.expr->getType());
    if (is_low_precision(packed)) return packed;
    const bool moves_bits = target.shape != Shape::scalar || is_integer(target.dtype);
    if (!moves_bits || !step.place.base) return target.dtype;
    const DType array = packed_dtype(step.place.base->getType());
    return is_low_precision(array) ? array : target.dtype;
}

// void update(half& weight, ...)
bool takes_reference(const FunctionDecl& helper) {
    return std::ranges::any_of(helper.parameters(), [](const ParmVarDecl* p) {
        return p->getType()->isLValueReferenceType() &&
               !p->getType().getNonReferenceType().isConstQualified();
    });
}

// Analyses one stored value and everything from which it is computed.
class Updated {
public:
    Updated(const Flow& flow, const Step& step, Term value) : flow_(flow), step_(step), value_(value) {
        if (step.write->kind == WriteKind::add || step.write->kind == WriteKind::subtract)
            summands_.push_back({false, step.target, {}});
        add_summands(value, step.write->kind == WriteKind::subtract, 0);
        if (opened_ > kMostOpened) summands_.clear();
    }

    bool depends(Term t) const {
        return flow_.terms.any_source(t, [&](Term e) { return reads(e, true); });
    }
    bool depends() const {
        return !summands_.empty() && std::ranges::any_of(summands_, [&](const Summand& s) { return old(s); });
    }

    // old - lr * update: the subtracted value is scaled and comes from elsewhere.
    bool subtracts() const {
        const bool keeps =
            std::ranges::any_of(summands_, [&](const Summand& s) { return !s.negative && keeps_old(s); });
        return keeps && std::ranges::any_of(summands_, [&](const Summand& s) {
                   return s.negative && is_scaled(s) && elsewhere(s) && !turns(s);
               });
    }

    // d * old + (1 - d) * new, old + (1 - d) * (new - old), lerp(old, new, w)
    bool interpolates() const {
        for (const Summand& a : summands_) {
            if (follows_another(a)) continue;
            if (a.factors.empty() && !a.negative && (old(a) ? moves_towards(a) : draws_near(a))) return true;
            for (const Summand& b : summands_)
                if (&a != &b && keeps_old(a) && elsewhere(b) && !old(b) &&
                    (complements(a, b) || complements(b, a)))
                    return true;
        }
        return false;
    }

    // d * old + (1 - d) * g * g: a second moment.
    bool adds_a_square() const {
        return std::ranges::any_of(summands_, [&](const Summand& s) {
            if (old(s)) return false;
            const auto is_square = [&](Term t) {
                const Arith a = flow_.terms.arithmetic(flow_.terms.resolve(t));
                return a.kind == Arithmetic::multiply && are_same(a.args[0], a.args[1]);
            };
            if (s.factors.empty()) return is_square(s.term);
            for (auto f = s.factors.begin(); f != s.factors.end(); ++f)
                if (is_square(*f) ||
                    std::any_of(f + 1, s.factors.end(), [&](Term g) { return are_same(*f, g); }))
                    return true;
            return false;
        });
    }

private:
    // The old value is loaded from another array, which an earlier turn of a loop computed from this one: each step of
    // a simulation has its own element, and none is an average.
    bool follows_another(const Summand& s) const {
        const auto is_other = [&](Term t) {
            const Term loaded = flow_.terms.strip(flow_.terms.resolve(t));
            return depends(t) && reads(loaded, false) && !reads(loaded, true);
        };
        return s.factors.empty() ? is_other(s.term) : std::ranges::any_of(s.factors, is_other);
    }

    // Another element of the array is a factor: x[i] = c * x[i] - s * x[i + 1] turns a pair in place.
    bool turns(const Summand& s) const {
        return std::ranges::any_of(s.factors, [&](Term t) {
            const Term loaded = flow_.terms.strip(flow_.terms.resolve(t));
            return reads(loaded, true) && !flow_.terms.same(loaded, step_.target);
        });
    }

    // A load from the storage that is written (own), or from other storage.
    bool reads(Term e, bool own) const {
        if (!isa<ArraySubscriptExpr, UnaryOperator, CXXOperatorCallExpr, CallExpr>(e.expr)) return false;
        const auto* unary = dyn_cast<UnaryOperator>(e.expr);
        if (unary && unary->getOpcode() != UO_Deref) return false;
        const auto* call = dyn_cast<CallExpr>(e.expr);
        if (call && !isa<CXXOperatorCallExpr>(call)) {  // __ldg(&p[i])
            return std::ranges::any_of(call->arguments(), [&](const Expr* argument) {
                return argument->getType()->isPointerType() &&
                       matches(flow_.terms.pointee({argument, e.frame}), own);
            });
        }
        const QualType type = e.expr->getType();
        if (type->isPointerType() || type->isArrayType()) return false;  // a place, not an element
        return matches(flow_.terms.place(e), own);
    }

    bool matches(const Place& from, bool own) const {
        if (!from.base || from.frame || !(isa<ParmVarDecl>(from.base) || from.of_this)) return false;
        return Terms::in_same_array(from, step_.place) == own;
    }

    bool old(const Summand& s) const {
        if (s.factors.empty()) return depends(s.term);
        return std::ranges::any_of(s.factors, [&](Term f) { return depends(f); });
    }
    // The old value itself, or scaled by a factor that is the same for every element. An activation
    // function or a rotation in place depends on the old value in another way, often with both factors.
    bool keeps_old(const Summand& s) const {
        const auto plain = [&](Term t) {
            return flow_.terms.arithmetic(t).kind == Arithmetic::none || is_choice_of_loads(t);
        };
        if (s.factors.empty()) return plain(flow_.terms.resolve(s.term)) && depends(s.term);
        const Term* kept = nullptr;
        for (const Term& factor : s.factors) {
            if (!depends(factor) && !reads_elsewhere(factor)) continue;
            if (kept || !depends(factor)) return false;
            kept = &factor;
        }
        return kept && plain(*kept);
    }
    bool is_choice_of_loads(Term t) const {
        const Arith a = flow_.terms.arithmetic(t);
        return a.kind == Arithmetic::select && is_load(a);
    }
    bool reads_elsewhere(Term t) const {
        return flow_.terms.any_source(t, [&](Term e) { return reads(e, false); });
    }
    bool elsewhere(const Summand& s) const {
        if (s.factors.empty()) return reads_elsewhere(s.term);
        return std::ranges::any_of(s.factors, [&](Term t) { return reads_elsewhere(t); });
    }
    bool is_scaled(const Summand& s) const {
        return s.factors.size() >= 2 ||
               flow_.terms.arithmetic(flow_.terms.resolve(s.term)).kind == Arithmetic::divide;
    }

    bool are_same(Term a, Term b) const {
        return flow_.terms.same(flow_.terms.resolve(a), flow_.terms.resolve(b));
    }

    // f is 1 - g
    bool is_complement(Term f, Term g) const {
        const auto x = flow_.terms.number(f), y = flow_.terms.number(g);
        if (x && y) return *x > 0 && *y > 0 && std::abs(*x + *y - 1) < 1e-6;
        const Arith a = flow_.terms.arithmetic(flow_.terms.resolve(f));
        return a.kind == Arithmetic::subtract && flow_.terms.number(a.args[0]) == 1.0 &&
               are_same(a.args[1], g);
    }

    bool complements(const Summand& a, const Summand& b) const {
        if (a.negative != b.negative) {  // w * b - w * a, the rest of a lerp
            return std::ranges::any_of(a.factors,
                                       [&](Term f) {
                                           return std::ranges::any_of(
                                               b.factors, [&](Term g) { return flow_.terms.same(f, g); });
                                       }) &&
                   has_plain(a.negative ? a : b);
        }
        return std::ranges::any_of(a.factors, [&](Term f) {
            return std::ranges::any_of(b.factors, [&](Term g) { return is_complement(f, g); });
        });
    }

    // For -w * x, there is also a summand x without the factor; x may be a product itself.
    bool has_plain(const Summand& product) const {
        const auto occurs = [&](Term t) {
            return std::ranges::any_of(product.factors, [&](Term f) { return are_same(t, f); });
        };
        return std::ranges::any_of(summands_, [&](const Summand& s) {
            if (s.negative) return false;
            if (s.factors.empty()) return occurs(s.term);
            return s.factors.size() + 1 == product.factors.size() && std::ranges::all_of(s.factors, occurs);
        });
    }

    // old + w * (new - old). Towards a constant it is no average: total += alpha * (1 - total) covers a background.
    bool moves_towards(const Summand& kept) const {
        return differs_from(kept, [&](Term other) { return !flow_.terms.number(other); });
    }

    // new + d * (old - new), the same with the weight of the old value
    bool draws_near(const Summand& added) const {
        return elsewhere(added) && differs_from(added, [&](Term other) {
                   return flow_.terms.arithmetic(flow_.terms.resolve(other)).kind == Arithmetic::none &&
                          depends(other);
               });
    }

    // A summand is scaled by (other - s), where s is this one.
    template <typename Is>
    bool differs_from(const Summand& s, Is is_other) const {
        return std::ranges::any_of(summands_, [&](const Summand& scaled) {
            return std::ranges::any_of(scaled.factors, [&](Term factor) {
                const Arith a = flow_.terms.arithmetic(flow_.terms.resolve(factor));
                return a.kind == Arithmetic::subtract && is_other(a.args[scaled.negative ? 1 : 0]) &&
                       are_same(a.args[scaled.negative ? 0 : 1], s.term);
            });
        });
    }

    void add_summands(Term t, bool negative, unsigned depth) {
        if (!t || depth > kDeepest || opened_ > kMostOpened) return;
        for (Summand s : flow_.terms.summands(t)) {
            if (++opened_ > kMostOpened) return;
            if (negative) s.negative = !s.negative;
            if (!open(s, depth)) summands_.push_back(std::move(s));
        }
    }

    // Expands a summand that is the result of a selection, a limit, a product or an assignment. Returns
    // false when there is nothing to expand.
    bool open(const Summand& s, unsigned depth) {
        const Term t = flow_.terms.resolve(s.term);
        if (s.factors.size() >= 2) {  // (d * old + (1 - d) * new) * correction
            const auto sum = std::ranges::find_if(s.factors, [&](Term f) {
                const Arithmetic kind = flow_.terms.arithmetic(flow_.terms.resolve(f)).kind;
                return (kind == Arithmetic::add || kind == Arithmetic::fma) && depends(f) &&
                       summands_.empty();
            });
            if (sum == s.factors.end() || flow_.terms.summands(value_).size() != 1) return false;
            // y * (g - sum(g * y)), the gradient of a softmax in place, is scaled by other data.
            const bool by_data = std::ranges::any_of(
                s.factors, [&](const Term& f) { return &f != &*sum && reads_elsewhere(f); });
            if (by_data) return false;
            add_summands(*sum, s.negative, depth + 1);
            return true;
        }
        const Arith a = flow_.terms.arithmetic(t);
        if (a.kind == Arithmetic::clamp || a.kind == Arithmetic::max || a.kind == Arithmetic::min ||
            a.kind == Arithmetic::select) {
            const bool first = depends(a.args[0]), second = a.args.size() > 1 && depends(a.args[1]);
            if (!first && !second) return false;
            if (a.kind == Arithmetic::select && is_load(a)) return false;
            if (first) add_summands(a.args[0], s.negative, depth + 1);
            if (second) add_summands(a.args[1], s.negative, depth + 1);
            return true;
        }
        return open_variable(t, s.negative, depth) || open_registers(t, s.negative, depth);
    }

    // master ? master[i] : (float)p[i] counts as one old value
    bool is_load(const Arith& select) const {
        return std::ranges::all_of(select.args, [&](Term t) {
            const Term loaded = flow_.terms.strip(t);
            return reads(loaded, true) || reads(loaded, false);
        });
    }

    // float v = old; v -= lr * u;
    bool open_variable(Term t, bool negative, unsigned depth) {
        const auto* ref = dyn_cast<DeclRefExpr>(t.expr);
        const auto* variable = ref ? dyn_cast<VarDecl>(ref->getDecl()) : nullptr;
        if (!variable || isa<ParmVarDecl>(variable) || !seen_.insert(variable).second) return false;
        const auto writes = flow_.terms.body_of(t.frame).writes_to(variable);
        // A gradient is added, also when it was computed with a subtraction: v = dy - y * s; dx += v.
        const auto gains = [&](const Write* w) {
            return w->value && w->kind < WriteKind::subtract &&
                   std::ranges::any_of(
                       flow_.terms.summands({w->value, t.frame}),
                       [&](const Summand& s) { return !s.negative && elsewhere(s); });
        };
        if (!negative && !depends(t) && std::ranges::any_of(writes, gains)) return false;
        for (const Write* w : writes)
            if (w->value && w->kind <= WriteKind::subtract)
                add_summands({w->value, t.frame}, negative != (w->kind == WriteKind::subtract), depth + 1);
        // step(v, gradient) changes it through a reference or a pointer.
        const auto by_helper = [](const Step& s) { return s.frame != nullptr; };
        if (!t.frame) add_stored(*variable, negative, depth, by_helper);
        return !writes.empty();
    }

    // w[j], after w[j] = old - lr * u for a local array
    bool open_registers(Term t, bool negative, unsigned depth) {
        if (!isa<ArraySubscriptExpr>(t.expr)) return false;
        const Place from = flow_.terms.place(t);
        const auto* array = dyn_cast_or_null<VarDecl>(from.base);
        if (!array || from.frame || isa<ParmVarDecl>(array) || !array->hasLocalStorage()) return false;
        if (!array->getType()->isArrayType() || !seen_.insert(array).second) return false;
        return add_stored(*array, negative, depth, [](const Step&) { return true; });
    }

    // What the steps store in a local variable.
    template <typename Counts>
    bool add_stored(const VarDecl& local, bool negative, unsigned depth, Counts counts) {
        bool any = false;
        for (const Step& filled : flow_.steps) {
            if (filled.place.base != &local || !filled.value || filled.write->kind > WriteKind::subtract)
                continue;
            if (!counts(filled)) continue;
            add_summands(filled.value, negative != (filled.write->kind == WriteKind::subtract), depth + 1);
            any = true;
        }
        return any;
    }

    const Flow& flow_;
    const Step& step_;
    Term value_;
    std::vector<Summand> summands_;
    unsigned opened_ = 0;
    std::set<const VarDecl*> seen_;
};

}  // namespace

// Stochastic rounding: random numbers, or bits that depend on more than the value.
bool Flow::rounds_by_chance(Term value) const {
    bool bits = false, chance = false, random = false;
    terms.any_source(value, [&](Term e) {
        if (const auto* call = dyn_cast<CallExpr>(e.expr); call && call->getDirectCallee()) {
            bits = bits || is_bit_cast(*call->getDirectCallee());
            random = random || is_random(*call->getDirectCallee());
        }
        bits = bits || is_pun(*e.expr);
        const auto* ref = dyn_cast<DeclRefExpr>(e.expr);
        const auto* parameter = ref ? dyn_cast<ParmVarDecl>(ref->getDecl()) : nullptr;
        chance = chance || (parameter && parameter->getType()->isIntegerType());
        return random || (bits && chance);
    });
    return random || (bits && chance);
}

// residual[i] = value - stored: the rounding error is kept for the next step.
bool Flow::keeps_residual(const Step& stored) const {
    return std::ranges::any_of(steps, [&](const Step& other) {
        if (other.frame || !is_outside(other.place) || other.place.base == stored.place.base || !other.value)
            return false;
        const auto parts = terms.summands(other.value);
        const auto is_stored = [&](const Summand& s) {
            return terms.same(s.term, stored.target) || terms.same(s.term, stored.value) ||
                   terms.same(terms.resolve(s.term), terms.resolve(stored.value));
        };
        const auto taken = std::ranges::find_if(parts, is_stored);
        return taken != parts.end() && parts.size() >= 2 &&
               std::ranges::any_of(parts, [&](const Summand& s) { return s.negative != taken->negative; });
    });
}

// Finds wide storage that receives the same value; optional when the store is in a branch.
void Flow::find_master(const Step& stored, Term value, Update& update) const {
    const Body& root = terms.root();
    for (const Step& other : steps) {
        if (other.place.base == stored.place.base || !is_outside(other.place) ||
            !is_wide(terms.dtype(other.target)))
            continue;
        const bool same =
            terms.same(other.value, value) || terms.same(terms.resolve(other.value), terms.resolve(value));
        if (other.write->kind != WriteKind::assign || !same) continue;
        const Stmt* branch = other.site;
        while (branch && !root.contains(branch, stored.site)) branch = root.parent(branch);
        update.has_master = true;
        update.master_optional = !root.always_runs(other.site, branch);
    }
}

// The master may pass through registers of its own: r_m[j] = w; r_p[j] = (half)w; store(master, r_m).
bool Flow::is_kept_wide(const Step& changed, const Step& stored, bool& optional) const {
    const auto same = [&](const Step& other) {
        return terms.same(other.value, changed.value) ||
               terms.same(terms.resolve(other.value), terms.resolve(changed.value)) ||
               terms.same(other.value, stored.value);
    };
    const auto is_wide_store = [&](const Step& other) {
        return is_outside(other.place) && !Terms::in_same_array(other.place, stored.place) &&
               is_wide(stored_dtype(other));
    };
    bool found = false;
    optional = true;
    for (const std::vector<Step>* all : {&steps, &library_stores})
        for (const Step& other : *all) {
            if (!other.value || !is_wide_store(other)) continue;
            const VarDecl* held = registers_of(other);
            const bool keeps = same(other) || (held && std::ranges::any_of(steps, [&](const Step& s) {
                                                   return s.place.base == held && s.value && same(s);
                                               }));
            if (!keeps) continue;
            const Stmt* branch = other.site;
            while (branch && !terms.root().contains(branch, stored.site))
                branch = terms.root().parent(branch);
            found = true;
            optional = optional && !terms.root().always_runs(other.site, branch);
        }
    return found;
}

const VarDecl* Flow::registers_of(const Step& step) const {
    const Term value = terms.strip(step.value);
    if (!value) return nullptr;
    const Place from = terms.place(value);
    const auto* variable = dyn_cast_or_null<VarDecl>(from.base);
    if (!variable || from.frame || isa<ParmVarDecl>(variable) || !variable->hasLocalStorage()) return nullptr;
    const QualType type = variable->getType();
    return type->isArrayType() || type->isRecordType() ? variable : nullptr;
}

std::optional<Update> Flow::update_of_registers(const Step& step, const VarDecl& registers) const {
    for (const Step& changed : steps) {
        if (changed.place.base != &registers || !changed.value || changed.write->kind > WriteKind::subtract)
            continue;
        // A helper that changes registers of low precision has the update among its own facts.
        if (changed.frame && is_low_precision_value(changed.target)) continue;
        Step in_place = changed;
        in_place.place = step.place;
        const Updated updated(*this, in_place, changed.value);
        if (!updated.depends()) continue;
        Update update;
        update.subtracts = updated.subtracts();
        update.interpolates = updated.interpolates();
        if (!update.subtracts && !update.interpolates) continue;
        update.adds_a_square = update.interpolates && updated.adds_a_square();
        update.computed = terms.dtype(terms.resolve(changed.value));
        update.compensated = rounds_by_chance(changed.value) || rounds_by_chance(step.value);
        update.has_master = is_kept_wide(changed, step, update.master_optional);
        update.master_optional = update.has_master && update.master_optional;
        return update;
    }
    return std::nullopt;
}

std::optional<Update> Flow::update_of(const Step& step) const {
    if (!is_outside(step.place) || !step.value || step.write->kind > WriteKind::subtract) return std::nullopt;
    const DType stored = stored_dtype(step);
    if (!is_low_precision(stored)) return std::nullopt;
    const VarDecl* registers = registers_of(step);
    if (!registers && !is_low_precision_value(step.target)) return std::nullopt;
    if (!registers && !step.frame && accumulate(step) && !gathering_loops(step).empty()) return std::nullopt;
    Update update;
    if (registers) {
        auto found = update_of_registers(step, *registers);
        if (!found && !is_low_precision_value(step.target)) return std::nullopt;
        if (found) update = *found;
    }
    update.span = span_of(step.site->getSourceRange(), context);
    if (const auto* parameter = dyn_cast<ParmVarDecl>(step.place.base))
        update.param = terms.index_in_root(*parameter);
    update.dtype = stored;
    if (update.subtracts || update.interpolates) {
        const bool named = step.write->target->isLValue() && !step.frame;
        update.target =
            named ? spelling(*step.write->target, context)
                  : Symbol((step.place.part ? step.place.part : step.place.base)->getNameAsString());
        return update;
    }
    Term value = step.value;
    if (step.frame) {
        const Frame* helper = outermost(step.frame);
        const auto arguments = step.call->arguments();
        const auto changed = std::ranges::find_if(arguments, [&](const Expr* e) {
            return is_float(element_type(e->getType()).dtype) && !e->getType()->isPointerType() &&
                   !e->isGLValue() &&  // the stored element itself
                   Updated(*this, step, {e, nullptr}).depends();
        });
        update.target = Symbol(step.place.base->getNameAsString());
        if (step.write->kind == WriteKind::assign && changed != arguments.end()) {
            value = {*changed, nullptr};
            update.through = Symbol(qualified_name(*helper->callee));
            update.through_usr = Usrs().of(*helper->callee);
        } else if (!takes_reference(*helper->callee)) {
            return std::nullopt;  // a helper that is given a pointer has the update among its own facts
        }
    } else {
        update.target = spelling(*step.write->target, context);
    }
    const Updated updated(*this, step, value);
    if (!updated.depends()) return std::nullopt;
    update.subtracts = updated.subtracts();
    update.interpolates = updated.interpolates();
    if (!update.subtracts && !update.interpolates) return std::nullopt;  // a gradient or residual is added
    update.adds_a_square = update.interpolates && updated.adds_a_square();
    const Term computed = terms.resolve(value);
    update.computed = terms.dtype(computed);
    update.compensated = !step.frame && (rounds_by_chance(value) || keeps_residual(step));
    find_master(step, value, update);
    return update;
}

// void store(float value, half* out, ...) { *out = round(value); }
std::optional<Update> Flow::stored_parameter(const Step& step) const {
    if (step.frame || terms.root().function().hasAttr<CUDAGlobalAttr>() ||
        step.write->kind != WriteKind::assign)
        return std::nullopt;
    if (!is_outside(step.place) || !isa<ParmVarDecl>(step.place.base) || !is_low_precision_value(step.target))
        return std::nullopt;
    const auto is_given = [](Term t) {
        const auto* ref = dyn_cast<DeclRefExpr>(t.expr);
        const auto* parameter = ref ? dyn_cast<ParmVarDecl>(ref->getDecl()) : nullptr;
        return parameter && is_wide(element_type(parameter->getType()).dtype) &&
               !parameter->getType()->isPointerType();
    };
    const Term value = terms.resolve(step.value);
    const bool by_chance = rounds_by_chance(step.value) && terms.any_source(step.value, is_given);
    if (!is_given(value) && !by_chance) return std::nullopt;
    Update update;
    update.span = span_of(step.site->getSourceRange(), context);
    update.target = spelling(*step.write->target, context);
    update.param = terms.index_in_root(*cast<ParmVarDecl>(step.place.base));
    update.dtype = terms.dtype(step.target);
    update.computed = terms.dtype(value);
    update.compensated = by_chance;
    return update;
}

bool Flow::averages(const Step& step) const {
    return step.value && Updated(*this, step, step.value).interpolates();
}

bool Flow::subtracts(const Step& step) const {
    return step.value && Updated(*this, step, step.value).subtracts();
}

void Flow::add_updates(Function& out) const {
    for (const Step& step : steps) {
        auto update = update_of(step);
        if (!update) update = stored_parameter(step);
        if (update) out.updates.push_back(*update);
    }
    for (const Step& step : library_stores)
        if (const auto update = update_of(step)) out.updates.push_back(*update);
}

}  // namespace mp::lint
