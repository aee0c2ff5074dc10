#pragma once

// One function body, walked once: parents, order, loops and their extents, and the writes to each variable.
// Branches that a constant condition never takes are omitted.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "clang/AST/ASTContext.h"
#include "clang/AST/Decl.h"
#include "clang/AST/ExprCXX.h"
#include "llvm/ADT/DenseMap.h"

namespace mp::lint {

enum class WriteKind : std::uint8_t {
    init,  // at the declaration
    assign,
    add,
    subtract,
    multiply,
    divide,
    step,    // ++ --
    other,   // |= <<= ...
    escape,  // its address or a mutable reference is passed on, so later changes are unknown
};

struct Write {
    const clang::Stmt* site = nullptr;       // DeclStmt, assignment or call
    const clang::Expr* target = nullptr;     // null for an initialiser
    const clang::Expr* value = nullptr;      // assigned or added; null when there is none
    const clang::ValueDecl* base = nullptr;  // the variable or member named in the target
    WriteKind kind = WriteKind::other;
    bool whole = false;  // the variable itself; not an element, a member or the object it points to
};

struct Loop {
    const clang::Stmt* stmt = nullptr;
    const clang::VarDecl* counter = nullptr;
    std::uint64_t trips = 0;    // 0: not a constant
    std::uint64_t largest = 0;  // upper bound of |counter|; 0: not known
    bool halving = false;       // the counter is halved or doubled
    bool never = false;         // its condition is false from the start
    bool shared = false;        // its counter starts at the thread's place and steps over the other threads
};

class Body {
public:
    Body(const clang::FunctionDecl&, clang::ASTContext&);

    const clang::FunctionDecl& function() const { return function_; }
    clang::ASTContext& context() const { return context_; }
    std::size_t size() const { return nodes_.size(); }

    bool has(const clang::Stmt* s) const { return nodes_.count(s) != 0; }
    const clang::Stmt* parent(const clang::Stmt*) const;
    std::uint32_t order(const clang::Stmt*) const;  // position in the order of the text
    bool contains(const clang::Stmt* outer, const clang::Stmt* inner) const;

    // Loops that contain the statement, innermost first. `do {} while (0)` does not count as a loop.
    std::vector<const clang::Stmt*> loops_around(const clang::Stmt*) const;
    Loop describe(const clang::Stmt* loop) const;
    // The loop whose counter the variable is; null when there is none.
    const clang::Stmt* loop_of_counter(const clang::VarDecl*) const;
    // Whether a round of the loop can end before its end: break, continue, return or goto.
    bool ends_early(const clang::Stmt* loop) const;
    // True when no `if`, `switch` or `?:` is between the two: whenever `outer` runs, so does `inner`.
    bool always_runs(const clang::Stmt* inner, const clang::Stmt* outer) const;

    std::span<const Write> writes() const { return writes_; }
    std::vector<const Write*> writes_to(const clang::ValueDecl*) const;  // in text order
    const clang::Stmt* declared_at(const clang::ValueDecl*) const;
    const std::vector<const clang::DeclRefExpr*>& uses_of(const clang::ValueDecl*) const;
    const std::vector<const clang::Expr*>& calls() const { return calls_; }  // CallExpr, by text order
    const std::vector<const clang::Expr*>& returned() const { return returned_; }

    // The only expression ever assigned to a local variable; null when it is assigned twice, in a branch,
    // or through its address.
    const clang::Expr* definition(const clang::VarDecl*) const;
    // The value at the declaration of a local pointer that is afterwards only moved (p += n, ++p), so that it
    // stays in one array; null otherwise.
    const clang::Expr* origin(const clang::VarDecl*) const;
    // A compile-time integer, also through such locals.
    std::optional<std::int64_t> constant(const clang::Expr*) const;

private:
    struct Node {
        const clang::Stmt* parent = nullptr;
        std::uint32_t begin = 0;
        std::uint32_t end = 0;
    };

    void walk(const clang::Stmt* root);
    void children_of(const clang::Stmt*, std::vector<const clang::Stmt*>&) const;
    void enter(const clang::Stmt*);
    void note_declarations(const clang::DeclStmt&);
    void note_binary(const clang::BinaryOperator&);
    void note_operator(const clang::CXXOperatorCallExpr&);
    void note_arguments(const clang::CallExpr&);
    void note_captures(const clang::LambdaExpr&);
    void add_write(const clang::Stmt& site, const clang::Expr* target, const clang::Expr* value, WriteKind);
    std::optional<std::int64_t> step_of(const clang::Expr* inc, const clang::VarDecl*& counter,
                                        char& op) const;
    void count_trips(Loop&, const clang::Expr* condition, const clang::Expr* start,
                     std::optional<std::int64_t> step, char op) const;
    Loop describe_for(const clang::ForStmt&) const;
    bool is_placed(const clang::Expr*, unsigned depth = 0) const;
    bool is_shared(const Loop&, std::optional<std::int64_t> step, char op) const;
    bool is_shared_by_condition(const Loop&, const clang::Expr* condition) const;
    Loop describe_while(const clang::Stmt&, const clang::Expr* condition) const;

    const clang::FunctionDecl& function_;
    clang::ASTContext& context_;
    std::uint32_t clock_ = 0;
    llvm::DenseMap<const clang::Stmt*, Node> nodes_;
    llvm::DenseMap<const clang::ValueDecl*, std::vector<std::uint32_t>> by_variable_;
    llvm::DenseMap<const clang::ValueDecl*, const clang::Stmt*> declared_;
    llvm::DenseMap<const clang::ValueDecl*, std::vector<const clang::DeclRefExpr*>> uses_;
    std::vector<Write> writes_;
    std::vector<const clang::Stmt*> loops_;
    std::vector<const clang::Expr*> calls_;
    std::vector<const clang::Expr*> returned_;
};

// The variable, parameter or member of `this` that an lvalue names, through elements, members, dereferences
// and pointer arithmetic; null when there is none. `whole`: the lvalue is the variable itself.
const clang::ValueDecl* named_in(const clang::Expr* lvalue, bool& whole);

// Whether clang's constant evaluator may be called: it asserts on broken code.
bool can_evaluate(const clang::Expr*);
// A condition that is always true or always false.
std::optional<bool> constant_condition(const clang::Expr*, const clang::ASTContext&);

}  // namespace mp::lint
