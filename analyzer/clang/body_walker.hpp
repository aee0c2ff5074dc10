#pragma once

#include <vector>

#include "analyzer/clang/walk_state.hpp"

namespace mp::lint::walk {

// Walks one concrete body in evaluation order and adds its calls, casts, type uses and returned values to
// the facts. Skips branches that a constant condition never takes, and code after a return.
class BodyWalker {
public:
    BodyWalker(State& state, Coverage& coverage) : state_(state), coverage_(coverage) {}

    void run();

    // Lambdas and local classes found during the walk. Their bodies are extracted separately.
    const std::vector<const clang::LambdaExpr*>& lambdas() const { return lambdas_; }
    const std::vector<const clang::CXXRecordDecl*>& classes() const { return classes_; }

private:
    // Returns false when control never continues after the statement.
    bool statement(const clang::Stmt*);
    bool compound(const clang::CompoundStmt&);
    bool branch(const clang::IfStmt&);
    template <class Then, class Else>
    bool either(Then, Else);
    void loop(const clang::Stmt*);
    void selection(const clang::SwitchStmt&);
    void selected_case(const clang::SwitchStmt&, const llvm::APSInt& value);
    void attempt(const clang::CXXTryStmt&);
    void declaration(const clang::DeclStmt&);
    void variable(const clang::VarDecl&);
    void returned(const clang::Expr*);

    void expression(const clang::Expr*, const Use& = {});
    void expressions(const clang::Stmt&, const Use&);
    void cast(const clang::CastExpr&, const Use&);
    void construction(const clang::CXXConstructExpr&, const Use&);
    void binary(const clang::BinaryOperator&, const Use&);
    void logical(const clang::BinaryOperator&);
    void unary(const clang::UnaryOperator&);
    void conditional(const clang::ConditionalOperator&, const Use&);
    void call(const clang::CallExpr&, const Use&);
    void operator_call(const clang::CXXOperatorCallExpr&);
    void member_call(const clang::CXXMemberCallExpr&, const Use&);
    void arguments(const clang::CallExpr&);
    void assigned(const clang::Expr& target, const clang::Expr* value);

    State& state_;
    Coverage& coverage_;
    std::vector<const clang::LambdaExpr*> lambdas_;
    std::vector<const clang::CXXRecordDecl*> classes_;
    Definitions::Mark switch_ = 0;  // mark at the start of the innermost switch
};

// Walks two branches, one of which runs. A variable that either one wrote is unknown afterwards, unless
// that branch does not come back.
template <class Then, class Else>
bool BodyWalker::either(Then first, Else second) {
    const auto mark = state_.definitions.mark();
    const bool first_back = first();
    const auto written = state_.definitions.undo(mark);
    const bool second_back = second();
    if (!second_back) state_.definitions.undo(mark);
    state_.definitions.forget(mark);
    if (first_back)
        for (const clang::VarDecl* variable : written) state_.definitions.define(*variable, nullptr);
    return first_back || second_back;
}

}  // namespace mp::lint::walk
