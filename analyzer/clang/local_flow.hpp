#pragma once

// Data flow inside one function body, derived from definitions: the numerical meaning of values, and the
// loops around a statement with their trip counts. Names are not interpreted.

#include <cstdint>
#include <memory>

#include "analyzer/facts/model.hpp"
#include "clang/AST/ASTContext.h"
#include "clang/AST/Decl.h"

namespace mp::lint {

struct LoopsAround {
    std::uint16_t depth = 0;
    std::uint64_t trips = 0;  // product of constant trip counts, 0 when one is not a constant
    bool halving = false;     // the innermost loop halves or doubles its counter (a tree reduction)
};

class LocalFlow {
public:
    // `function` has a body and no dependent types.
    LocalFlow(const clang::FunctionDecl& function, clang::ASTContext&);
    ~LocalFlow();

    LoopsAround loops_around(const clang::Stmt&) const;
    // sum, mean, variance ...: the meaning of the expression, through local variables, casts and helper
    // calls.
    Stat stat_of(const clang::Expr&) const;
    // A loop counter, threadIdx/blockIdx arithmetic, or an integer computed from them.
    bool is_index(const clang::Expr&) const;
    // Upper bound of |value| of an integer expression (from constants, masks, % n, narrow types, constant
    // loop bounds); 0: not known.
    std::uint64_t bound_of(const clang::Expr&) const;
    // The role of the constant `literal`, from the use of the variable or expression it flows into.
    Role role_of(const clang::Expr& literal) const;

    void add_accumulations(Function& out) const;
    void add_updates(Function& out) const;
    void add_scalings(Function& out) const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace mp::lint
