#pragma once

// State shared by the code that extracts facts while one function body is walked: the writes to each
// variable, and the expression that a local variable holds at this point of the walk.

#include <optional>
#include <vector>

#include "analyzer/clang/decl_names.hpp"
#include "analyzer/clang/local_flow.hpp"
#include "clang/AST/ExprCXX.h"
#include "llvm/ADT/DenseSet.h"

namespace mp::lint::walk {

// Writes to variables and fields anywhere in a body, including nested lambdas. Collected in one pass.
class Mutations {
public:
    explicit Mutations(const clang::FunctionDecl&);

    // Never written after its initialisation, and its address is not taken.
    bool is_stable(const clang::ValueDecl& decl) const { return !written_.contains(&decl); }
    // Its address is taken, or a lambda writes it: the walk cannot know its value.
    bool escapes(const clang::ValueDecl& decl) const { return escaped_.contains(&decl); }
    unsigned uses(const clang::VarDecl& decl) const { return uses_.lookup(&decl); }
    // Whether no other variable has this name, so that its text identifies it.
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

// Definitions that reach this point of a walk in evaluation order. The walker opens a branch or loop, walks
// it, and closes it. Variables written inside are unknown afterwards, unless the branch does not come back.
class Definitions {
public:
    using Mark = std::size_t;

    // `value` null: written with an unknown value.
    void define(const clang::VarDecl& variable, const clang::Expr* value);
    const clang::Expr* value_of(const clang::VarDecl& variable) const { return values_.lookup(&variable); }

    Mark mark() const { return journal_.size(); }
    // Restores the state at the mark; returns the variables written since.
    std::vector<const clang::VarDecl*> undo(Mark);
    // Makes the variables written since the mark unknown.
    void forget(Mark);
    // Before a loop: makes every variable that the function writes unknown, because a later iteration may
    // see another value.
    void forget_written(const Mutations&);

private:
    struct Entry {
        const clang::VarDecl* variable = nullptr;
        const clang::Expr* before = nullptr;
    };
    llvm::DenseMap<const clang::VarDecl*, const clang::Expr*> values_;
    std::vector<Entry> journal_;
};

// The destination of an expression's value.
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

// The same value below parentheses, temporaries, implicit casts, copies and std::move.
const clang::Expr* same_value(const clang::Expr*);
// The same, and through a local variable whose definition reaches this point.
const clang::Expr* resolved(const clang::Expr*, const State&);

// The variable that the lvalue names; null when it is not a variable.
const clang::VarDecl* variable_of(const clang::Expr*);
// The pointer or reference parameter through which an lvalue stores ("out[i]", "*o" with o = out + i).
const clang::ParmVarDecl* stored_through(const clang::Expr*);

// The outermost macro whose body contains this place; empty for plain text and for macro arguments.
Symbol macro_at(clang::SourceLocation, const clang::ASTContext&);

}  // namespace mp::lint::walk
