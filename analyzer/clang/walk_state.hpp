#pragma once

// What the makers of facts share while one function body is walked: who changes which variable, and
// which expression a local variable holds at this point of the walk.

#include <optional>
#include <vector>

#include "analyzer/clang/decl_names.hpp"
#include "analyzer/clang/local_flow.hpp"
#include "clang/AST/ExprCXX.h"
#include "llvm/ADT/DenseSet.h"

namespace mp::lint::walk {

// Writes to variables and fields anywhere in a body, nested lambdas included. One pass.
class Mutations {
public:
    explicit Mutations(const clang::FunctionDecl&);

    // Never written after its initialisation, and nobody else could.
    bool is_stable(const clang::ValueDecl& decl) const { return !written_.contains(&decl); }
    // Its address is out, or a lambda writes it: the walk cannot know its value.
    bool escapes(const clang::ValueDecl& decl) const { return escaped_.contains(&decl); }
    unsigned uses(const clang::VarDecl& decl) const { return uses_.lookup(&decl); }
    // Two variables of one name cannot be told apart in a text.
    bool is_unique(const clang::VarDecl& decl) const { return names_.lookup(decl.getDeclName()) <= 1; }

private:
    void scan(const clang::Stmt*);
    void scan_call(const clang::CallExpr&);
    void scan_declarations(const clang::DeclStmt&);
    void write(const clang::Expr& target);
    void escape(const clang::Expr& target);

    bool in_lambda_ = false;
    llvm::DenseSet<const clang::ValueDecl*> written_;
    llvm::DenseSet<const clang::ValueDecl*> escaped_;
    llvm::DenseMap<const clang::VarDecl*, unsigned> uses_;
    llvm::DenseMap<clang::DeclarationName, unsigned> names_;
};

// Definitions that reach this point of a walk in evaluation order. The walker opens a branch or
// loop, walks it, and closes it: what it wrote is unknown afterwards, unless the branch does not
// come back.
class Definitions {
public:
    using Mark = std::size_t;

    // Null: written, but not known with what.
    void define(const clang::VarDecl& variable, const clang::Expr* value);
    const clang::Expr* value_of(const clang::VarDecl& variable) const { return values_.lookup(&variable); }

    Mark mark() const { return journal_.size(); }
    // Back to the state at the mark; gives the variables written since.
    std::vector<const clang::VarDecl*> undo(Mark);
    // Written since the mark: unknown from here on.
    void forget(Mark);
    // Before a loop: what the function writes anywhere may come back around with another value.
    void forget_written(const Mutations&);

private:
    struct Entry {
        const clang::VarDecl* variable = nullptr;
        const clang::Expr* before = nullptr;
    };
    llvm::DenseMap<const clang::VarDecl*, const clang::Expr*> values_;
    std::vector<Entry> journal_;
};

// Where the value of an expression goes, as its surroundings know it.
struct Use {
    Purpose purpose = Purpose::none;
    CastForm form = CastForm::explicit_;         // of a conversion written right below
    const clang::Expr* target = nullptr;         // lvalue that receives it
    const clang::ValueDecl* variable = nullptr;  // ... or the variable or field it initialises
    Symbol function{};                           // callee, for Purpose::argument
};

class Callees;

struct State {
    clang::ASTContext& ast;
    const clang::FunctionDecl& decl;
    Usrs& usrs;
    Callees& callees;
    const LocalFlow& flow;
    Function& out;
    Mutations mutations;
    Definitions definitions{};
    std::uint16_t loop_depth = 0;
    llvm::DenseMap<const clang::Stmt*, std::int32_t> call_of{};  // the last call an expression makes
    llvm::DenseMap<const clang::Expr*, std::int32_t> cast_of{};
    std::vector<const clang::Stmt*> made_by{};  // expression of each call in out.calls
};

// Through parentheses, temporaries, implicit casts, copies and std::move: the same value.
const clang::Expr* same_value(const clang::Expr*);
// ... and through a local whose definition reaches this point.
const clang::Expr* resolved(const clang::Expr*, const State&);

// The variable an lvalue is, when it is one.
const clang::VarDecl* variable_of(const clang::Expr*);
// The pointer or reference parameter that an lvalue stores through ("out[i]", "*o" with o = out +
// i).
const clang::ParmVarDecl* stored_through(const clang::Expr*);

// The outermost macro whose body writes this place; empty for plain text and for macro arguments.
Symbol macro_at(clang::SourceLocation, const clang::ASTContext&);

}  // namespace mp::lint::walk
