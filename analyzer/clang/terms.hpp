#pragma once

// Expressions as arithmetic. Conversions are skipped, and small helper functions are replaced by their body
// if it is visible: a call of `hadd2(a, b)` is the `__hadd2(a, b)` that it returns.

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "analyzer/clang/body.hpp"
#include "analyzer/clang/library.hpp"
#include "kernels/numerics/dtype.hpp"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace mp::lint {

// A call that has been entered. Parameters of `callee` are replaced by arguments of `call`.
struct Frame {
    const Frame* outer = nullptr;
    const clang::CallExpr* call = nullptr;
    const clang::FunctionDecl* callee = nullptr;
    const Body* body = nullptr;
    unsigned depth = 0;
};

struct Term {
    const clang::Expr* expr = nullptr;
    const Frame* frame = nullptr;

    explicit operator bool() const { return expr != nullptr; }
};

// a < b or a > b (or equal).
struct Comparison {
    Term less;
    Term more;
};

struct Arith {
    Arithmetic kind = Arithmetic::none;
    llvm::SmallVector<Term, 3> args;
};

// One summand: a product of factors, with its sign.
struct Summand {
    bool negative = false;
    Term term;  // the whole summand; for the product inside an fma, its first factor
    llvm::SmallVector<Term, 4> factors;
    bool is_factor = false;  // `term` is
};

// The storage that an lvalue names, from the point of view of the root function.
struct Place {
    const clang::ValueDecl* base = nullptr;
    const Frame* frame = nullptr;  // frame of the function that declares `base`
    // Tells apart the arrays that one base holds: the member `args.p` or `args.sizes`, or the local pointer that
    // was loaded from a table of pointers.
    const clang::ValueDecl* part = nullptr;
    const clang::FieldDecl* field = nullptr;  // the member of `base` itself: `x` of v.x
    bool through_pointer = false;        // `base` is a pointer or reference parameter, or an unknown pointer
    bool of_this = false;                // `base` is a member of *this
    bool element = false;                // not the variable as a whole
    llvm::SmallVector<Term, 4> address;  // indices and pointers that select the element
};

// Bodies of one unit, each read at most once. Shared by all LocalFlows of an ASTContext.
class UnitBodies {
public:
    static UnitBodies& of(clang::ASTContext&);
    const Body& body(const clang::FunctionDecl&, clang::ASTContext&);

private:
    std::map<const clang::FunctionDecl*, std::unique_ptr<Body>> bodies_;
};

class Terms {
public:
    Terms(const clang::FunctionDecl&, clang::ASTContext&);

    const Body& root() const { return root_; }
    const Body& body_of(const Frame* frame) const { return frame ? *frame->body : root_; }

    // Its index among the parameters of the root; kNone for a parameter of another function, such as one that a
    // lambda captures.
    std::int32_t index_in_root(const clang::ParmVarDecl&) const;

    const Body& body_for(const clang::FunctionDecl& f) const { return bodies_.body(f, context_); }

    // Null when the callee is unknown, virtual, a library function, recursive, large or nested too deep.
    const Frame* enter(const clang::CallExpr&, const Frame* outer) const;

    // Removes conversions, parentheses and temporaries; replaces parameters by arguments and calls by the
    // returned expression.
    Term strip(Term) const;
    // The same, and replaces local variables by their only definition.
    Term resolve(Term) const;
    Arith arithmetic(Term) const;
    std::optional<Comparison> comparison(Term condition) const;
    std::vector<Summand> summands(Term) const;
    void factors(Term, llvm::SmallVectorImpl<Term>& out) const;
    bool is_square(const Summand&) const;

    // Whether both are the same variable, element or value.
    bool same(Term, Term) const;
    Place place(Term lvalue) const;
    Place pointee(Term pointer) const;
    // `a` of a[i]; where a helper's parameter names the array, the argument. Null for other expressions.
    const clang::VarDecl* array_of(Term element) const;
    // Whether both are elements of one array, as far as it is known.
    static bool in_same_array(const Place& a, const Place& b) {
        return a.base == b.base && (a.part == b.part || !a.part || !b.part);
    }
    // The part of a vector that is built here: v.y of make_float2(x, y) is y.
    Term part_of(Term whole, const clang::FieldDecl& field) const;
    // The dtype of the element in storage.
    DType dtype(Term) const;
    // A constant, also a floating one.
    std::optional<double> number(Term) const;

    // Whether the value may differ between two iterations of the loop (of the body of `frame`).
    bool varies(Term, const clang::Stmt* loop, const Frame* frame) const;

    // Calls `visit` for every expression from which the value is computed, through local variables (all
    // their writes) and parameters of entered calls. Stops and returns true when `visit` returns true.
    using Visit = llvm::function_ref<bool(Term)>;
    bool any_source(Term, Visit visit) const;

private:
    bool is_beside(const Write&, const clang::FieldDecl* read, const Frame*) const;
    void add_filled(const clang::CallExpr&, Term variable, std::vector<Term>& sources) const;
    Term strip_once(Term) const;
    Term argument_for(const clang::ParmVarDecl&, const Frame&) const;
    Arith of_call(const clang::CallExpr&, const Frame*) const;
    void add_summands(Term, bool negative, unsigned depth, std::vector<Summand>& out) const;
    bool same_at(Term, Term, unsigned depth) const;
    void place_of(Term, Place&, unsigned depth) const;
    void pointer_of(Term, Place&, unsigned depth) const;
    bool varies_at(Term, const clang::Stmt*, const Frame*, unsigned depth) const;
    bool moves(const clang::VarDecl&, const clang::Stmt* loop, const Frame*, unsigned depth) const;

    clang::ASTContext& context_;
    UnitBodies& bodies_;
    const Body& root_;
    mutable std::deque<Frame> frames_;
    mutable std::map<std::pair<const clang::CallExpr*, const Frame*>, const Frame*> entered_;
};

// Calls `visit` for the expression and all its subexpressions.
void for_each_expr(const clang::Stmt*, llvm::function_ref<void(const clang::Expr&)> visit);

}  // namespace mp::lint
