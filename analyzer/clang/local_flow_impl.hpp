#pragma once

// Shared by the files of LocalFlow: the steps in which a body changes storage, read as sums.

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "analyzer/clang/local_flow.hpp"
#include "analyzer/clang/terms.hpp"

namespace mp::lint {

// The intermediate meanings from which a Stat is derived.
enum class Meaning : std::uint8_t {
    none,
    constant,
    square,
    sum,
    sum_of_squares,
    mean,
    variance,
    deviation,
    rstd
};

// One change of storage, by the root body or by a helper it calls.
struct Step {
    const clang::Stmt* site = nullptr;  // the place in the root; for a helper's step, the root's call
    const Write* write = nullptr;
    const Frame* frame = nullptr;           // of the helper that writes; null: the root itself
    const clang::CallExpr* call = nullptr;  // the root's call of the helper
    const Frame* at = nullptr;              // frame whose body contains `site`
    Term target;
    Term value;
    Place place;
    std::pair<std::uint32_t, std::size_t> position{};  // in the text of the root
};

// A step that reads the storage it writes.
struct Accumulate {
    AccumulateOp op = AccumulateOp::other;
    std::vector<Summand> added;
    bool tree = false;
};

struct Flow {
    Flow(const clang::FunctionDecl&, clang::ASTContext&);

    clang::ASTContext& context;
    Terms terms;
    std::vector<Step> steps;           // of the root and its helpers, in text order of the root
    std::vector<Step> library_stores;  // cub::BlockStore and its like; targets are pointers
    std::deque<Write> library_writes;  // of library_stores
    mutable std::optional<std::set<const void*>> adders_;

    // accumulations.cpp
    Step step_of(const Write&, const Frame*, const clang::Stmt* site, const clang::CallExpr*) const;
    void collect_steps();
    void collect_helper_steps(const clang::CallExpr& call, const clang::CallExpr& root_call,
                              const Frame* outer);
    void collect_library_store(const clang::CallExpr&);
    std::optional<Accumulate> accumulate(const Step&) const;
    bool keeps_old(const Summand&, Term place) const;
    std::vector<Summand> summands_through_locals(Term value,
                                                 const std::vector<const clang::Stmt*>& loops) const;
    std::optional<AccumulateOp> extreme(const Step&) const;
    bool is_tree_step(const Step&, const std::vector<Summand>& added) const;
    // Steps of a tree that is written out: s[t] += s[t + 32]; s[t] += s[t + 16]; ...
    std::vector<const Step*> written_out_trees() const;
    std::uint64_t fixed_stride(const Step&, const clang::ValueDecl*& from) const;
    bool is_shuffle_of(Term shuffled, Term place) const;
    // The loops over which the place accumulates: they contain the step, but neither its declaration nor a
    // restart, and they do not select another element.
    std::vector<const clang::Stmt*> gathering_loops(const Step&) const;
    bool restarts(const Step&, const clang::Stmt* loop) const;
    bool is_certain(const Step&, const std::vector<const clang::Stmt*>& loops) const;
    // The writes that accumulate, and the calls of helpers that do; found once.
    const std::set<const void*>& adders() const;
    Storage storage_of(const Place&) const;
    bool is_low_precision_value(Term) const;
    bool refills(const Step&, const Write&) const;
    bool reported_by_helper(const Step&) const;
    bool is_member_sum(const Step&) const;
    bool is_running_product(const Step&) const;
    bool is_blend(const Accumulate&, const clang::Stmt* loop) const;
    Stat stat_of(const Step&, const Accumulate&, const std::vector<const clang::Stmt*>& loops) const;
    Accumulation describe(const Step&, const Accumulate&, const std::vector<const clang::Stmt*>& loops) const;
    std::optional<Accumulation> squared_before(const Step&) const;
    void add_accumulations(Function& out) const;

    // updates.cpp
    bool rounds_by_chance(Term value) const;
    bool keeps_residual(const Step& stored) const;
    void find_master(const Step& stored, Term value, Update&) const;
    std::optional<Update> update_of(const Step&) const;
    // The same for registers: a local array, vector or structure into which elements were loaded, in which
    // they were changed, and from which the step stores them.
    const clang::VarDecl* registers_of(const Step&) const;
    std::optional<Update> update_of_registers(const Step&, const clang::VarDecl& registers) const;
    bool is_kept_wide(const Step& changed, const Step& stored, bool& optional) const;
    std::optional<Update> stored_parameter(const Step&) const;
    void add_updates(Function& out) const;
    // The effect of a step's store on the value it replaces.
    bool averages(const Step&) const;
    bool subtracts(const Step&) const;

    // scalings.cpp
    std::optional<Scaling> scaled_read(Term product) const;
    std::optional<Operand> scale_of(Term factor) const;
    void find_scaled_reads(const Step&, std::vector<Scaling>&) const;
    void find_scaled_stores(const Step&, std::vector<Scaling>&) const;
    void add_scalings(Function& out) const;

    // statistics.cpp
    Meaning meaning(Term) const;
    Meaning meaning_at(Term, unsigned depth) const;
    Meaning of_arithmetic(const Arith&, unsigned depth) const;
    Meaning of_vector(const clang::CallExpr&, const Frame*, unsigned depth) const;
    Meaning of_variable(Term, unsigned depth) const;
    Meaning after(Meaning, const Write&, Term use, unsigned depth) const;
    Meaning of_gathered(Meaning before, const Accumulate&, unsigned depth) const;
    Meaning of_summand(const Summand&, unsigned depth) const;
    bool adds_squares(const Accumulate&, unsigned depth) const;
    Meaning product(Term, Term, unsigned depth) const;
    Meaning quotient(Term, Term, unsigned depth) const;
    Meaning total(Term, Term, unsigned depth) const;
    Meaning difference(Term, Term, unsigned depth) const;
    bool is_count(Term) const;
    bool is_reciprocal_count(Term) const;
    bool shuffles(const Body&, unsigned depth) const;

    // indices.cpp
    bool is_index(Term, unsigned depth) const;
    std::uint64_t bound_of(Term, unsigned depth) const;
    std::uint64_t bound_of_value(Term, unsigned depth) const;

    // constants.cpp
    Role role_of(const Body&, const clang::Expr&, unsigned depth) const;
    Role role_in(const Body&, const clang::Expr& used, const clang::Stmt& parent, unsigned depth) const;
    Role role_of_argument(const Body&, const clang::CallExpr&, const clang::Expr&, unsigned depth) const;
    Role role_of_store(const Body&, const clang::Expr& target, unsigned depth) const;
    Role role_of_variable(const Body&, const clang::VarDecl&, unsigned depth) const;
    bool is_extreme_variable(const Body&, const clang::VarDecl&, unsigned depth) const;
    bool is_extreme_array(const clang::VarDecl&) const;
    // A maximum or minimum of what `is_it` holds for and of other values, also through variables.
    bool is_extreme_in(Term value, llvm::function_ref<bool(Term)> is_it, unsigned depth) const;
    bool is_select_with_constant(const Write&) const;
    bool is_own_shuffle(const Write&, const clang::VarDecl& variable) const;
    bool is_extreme_beside(const Write&, const clang::VarDecl& variable) const;
    bool is_value_passed_on(const clang::CallExpr&) const;
    bool finds_extreme(const clang::FunctionDecl&, unsigned depth) const;

    mutable std::map<std::pair<const clang::Expr*, const Frame*>, Meaning> meanings;
};

struct LocalFlow::Impl {
    Flow flow;
};

Stat stat_for(Meaning);

}  // namespace mp::lint
