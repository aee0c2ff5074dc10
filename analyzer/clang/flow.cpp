#include "analyzer/clang/flow.hpp"

#include <algorithm>

#include "analyzer/clang/calls.hpp"
#include "analyzer/clang/operands.hpp"
#include "analyzer/clang/types.hpp"
#include "clang/AST/DeclCXX.h"
#include "clang/AST/ExprCXX.h"
#include "clang/AST/StmtCXX.h"
#include "clang/Analysis/CFG.h"

namespace mp::lint::walk {
namespace {

// Branch conditions as text, for conditions where equal text means equal value. A local of a loop body that
// is written once has a new value in each iteration. Within one iteration, where a region is opened and
// closed, its value does not change.
class Conditions {
public:
    explicit Conditions(const State& state) : state_(state) {}

    Edge edge(const clang::Expr* condition, bool taken) const {
        Edge e{.condition = {}, .when = taken};
        if (!condition) return e;
        condition = condition->IgnoreParenImpCasts();
        while (const auto* negated = llvm::dyn_cast<clang::UnaryOperator>(condition)) {
            if (negated->getOpcode() != clang::UO_LNot) break;
            condition = negated->getSubExpr()->IgnoreParenImpCasts();
            e.when = !e.when;
        }
        std::string text;
        if (write(*condition, text)) e.condition = Symbol(text);
        return e;
    }

private:
    bool write(const clang::Expr& value, std::string& out) const {
        const clang::Expr* e = value.IgnoreParenImpCasts();
        if (llvm::isa<clang::CXXThisExpr>(e)) return out += "this", true;
        if (const auto* ref = llvm::dyn_cast<clang::DeclRefExpr>(e)) return write_name(*ref->getDecl(), out);
        if (const auto* member = llvm::dyn_cast<clang::MemberExpr>(e)) {
            if (!llvm::isa<clang::FieldDecl>(member->getMemberDecl())) return false;
            if (!state_.mutations.is_stable(*member->getMemberDecl()) || !write(*member->getBase(), out))
                return false;
            out += member->isArrow() ? "->" : ".";
            return out += member->getMemberDecl()->getName(), true;
        }
        if (const auto* binary = llvm::dyn_cast<clang::BinaryOperator>(e)) {
            out += "(";
            if (binary->isAssignmentOp() || !write(*binary->getLHS(), out)) return false;
            out += binary->getOpcodeStr();
            if (!write(*binary->getRHS(), out)) return false;
            return out += ")", true;
        }
        if (const auto* unary = llvm::dyn_cast<clang::UnaryOperator>(e)) {
            if (unary->getOpcode() != clang::UO_LNot && unary->getOpcode() != clang::UO_Minus) return false;
            out += clang::UnaryOperator::getOpcodeStr(unary->getOpcode());
            return write(*unary->getSubExpr(), out);
        }
        const std::string constant = constant_of(*e, state_);
        out += constant;
        return !constant.empty();
    }

    bool write_name(const clang::ValueDecl& decl, std::string& out) const {
        if (llvm::isa<clang::EnumConstantDecl, clang::NonTypeTemplateParmDecl>(decl))
            return out += decl.getName(), true;
        const auto* variable = llvm::dyn_cast<clang::VarDecl>(&decl);
        if (!variable || !variable->getIdentifier() || !state_.mutations.is_stable(*variable)) return false;
        // Other code may write a global or thread-local variable in between, unless it is constant.
        if (!variable->hasLocalStorage() && !variable->getType().isConstQualified()) return false;
        if (variable->getType()->isReferenceType() && !llvm::isa<clang::ParmVarDecl>(variable)) return false;
        if (!state_.mutations.is_unique(*variable)) return false;
        return out += variable->getName(), true;
    }

    const State& state_;
};

// A call with its position: the block in our numbering, then the order of elements in the block.
struct Placed {
    std::uint32_t block = 0;
    std::uint32_t position = 0;
    std::size_t sequence = 0;
    std::int32_t before = kNone;  // index before sorting; kNone: a destructor added here
    Call call{};
};

class Blocks {
public:
    Blocks(const clang::CFG& graph, State& state) : state_(state), conditions_(state) { number(graph); }

    void write() {
        for (std::uint32_t i = 0; i < order_.size(); ++i) state_.out.flow.push_back(block(*order_[i]));
        if (exit_used_) state_.out.flow.push_back({.span = end_of_body(), .to = {}, .leaves = true});
        for (std::uint32_t i = 0; i < order_.size(); ++i) place(*order_[i], i);
        reorder();
        if (is_straight()) straighten();
    }

private:
    // Numbers the blocks: reverse postorder from the entry, then blocks that are not reachable from it
    // (handlers, code after a return).
    void number(const clang::CFG& graph) {
        std::vector<std::pair<const clang::CFGBlock*, bool>> pending{{&graph.getEntry(), false}};
        llvm::DenseSet<const clang::CFGBlock*> seen;
        std::vector<const clang::CFGBlock*> finished;
        const clang::CFGBlock* exit = &graph.getExit();
        while (!pending.empty()) {
            const auto [at, done] = pending.back();
            pending.pop_back();
            if (done) {
                finished.push_back(at);
                continue;
            }
            if (at == exit || !seen.insert(at).second) continue;
            pending.emplace_back(at, true);
            for (const auto& next : at->succs())
                if (const clang::CFGBlock* reachable = next.getReachableBlock())
                    pending.emplace_back(reachable, false);
        }
        order_.assign(finished.rbegin(), finished.rend());
        for (const clang::CFGBlock* other : graph)
            if (other != exit && !seen.contains(other)) order_.push_back(other);
        for (std::uint32_t i = 0; i < order_.size(); ++i) number_[order_[i]] = i;
        exit_ = exit;
    }

    Block block(const clang::CFGBlock& b) {
        Block out;
        const bool two_ways = b.succ_size() == 2 && b.getTerminatorStmt() &&
                              !llvm::isa<clang::SwitchStmt, clang::CXXTryStmt>(b.getTerminatorStmt());
        const clang::Expr* condition = two_ways ? last_condition(b) : nullptr;
        bool taken = true;
        for (const auto& next : b.succs()) {
            const clang::CFGBlock* to = next.getReachableBlock();
            const bool when = std::exchange(taken, false);
            if (!to) continue;
            // A failed test that ends the function leaves on one edge only, so the end needs a block of its
            // own.
            if (to == exit_ && !two_ways) {
                const clang::Stmt* way = way_out(b);
                out.leaves = !b.hasNoReturnElement() || llvm::isa_and_nonnull<clang::CXXThrowExpr>(way);
                if (out.leaves) out.span = way ? span_of(way->getSourceRange(), state_.ast) : end_of_body();
                continue;
            }
            Edge edge = conditions_.edge(condition, when);
            edge.to = to == exit_ ? static_cast<std::uint32_t>(order_.size()) : number_.lookup(to);
            exit_used_ |= to == exit_;
            out.to.push_back(edge);
        }
        return out;
    }

    // One sequence of blocks from entry to exit: the facts then omit the flow.
    bool is_straight() const {
        const auto& flow = state_.out.flow;
        for (std::uint32_t i = 0; i < flow.size(); ++i) {
            const bool ends = flow[i].to.empty() && flow[i].leaves && i + 1 == flow.size();
            const bool goes_on = flow[i].to.size() == 1 && flow[i].to[0].to == i + 1 && !flow[i].leaves;
            if (!ends && !goes_on) return false;
        }
        return true;
    }

    void straighten() {
        state_.out.flow.clear();
        for (Call& call : state_.out.calls) call.block = 0;
    }

    // For `a && b`, each block tests its own operand.
    static const clang::Expr* last_condition(const clang::CFGBlock& b) {
        if (const auto* logical = llvm::dyn_cast<clang::BinaryOperator>(b.getTerminatorStmt());
            logical && logical->isLogicalOp())
            return logical->getLHS();
        const clang::Expr* last = b.getLastCondition();
        return last ? last : llvm::dyn_cast_or_null<clang::Expr>(b.getTerminatorCondition());
    }

    SourceSpan end_of_body() const { return span_of(state_.decl.getBody()->getEndLoc(), state_.ast); }

    // The return or throw that ends the block; null when control reaches the end of the function.
    static const clang::Stmt* way_out(const clang::CFGBlock& b) {
        const clang::Stmt* found = nullptr;
        for (const clang::CFGElement& element : b)
            if (const auto s = element.getAs<clang::CFGStmt>())
                if (llvm::isa<clang::CXXThrowExpr, clang::ReturnStmt>(s->getStmt())) found = s->getStmt();
        return found;
    }

    void place(const clang::CFGBlock& b, std::uint32_t index) {
        std::uint32_t position = 0;
        for (const clang::CFGElement& element : b) {
            ++position;
            if (const auto s = element.getAs<clang::CFGStmt>())
                position_[s->getStmt()] = {index, position};
            else if (const auto dies = element.getAs<clang::CFGAutomaticObjDtor>())
                add_destructor(*dies, index, position);
            else if (const auto member = element.getAs<clang::CFGMemberDtor>())
                add_destructors(member->getFieldDecl()->getType(), member->getFieldDecl()->getNameAsString(),
                                member->getFieldDecl()->getSourceRange(), index, position);
            else if (const auto base = element.getAs<clang::CFGBaseDtor>())
                add_destructors(base->getBaseSpecifier()->getType(), {},
                                base->getBaseSpecifier()->getSourceRange(), index, position);
        }
    }

    // The place of the destructor is the end of the scope, where the object dies, not the declaration.
    void add_destructor(const clang::CFGAutomaticObjDtor& dies, std::uint32_t index, std::uint32_t position) {
        const clang::VarDecl& variable = *dies.getVarDecl();
        clang::SourceRange at = variable.getSourceRange();
        if (const clang::Stmt* trigger = dies.getTriggerStmt()) {
            at = trigger->getSourceRange();
            if (llvm::isa<clang::CompoundStmt>(trigger)) at = trigger->getEndLoc();
        }
        add_destructors(variable.getType(), variable.getNameAsString(), at, index, position);
    }

    void add_destructors(clang::QualType type, const std::string& name, clang::SourceRange at,
                         std::uint32_t index, std::uint32_t position) {
        const auto* record = type->getBaseElementTypeUnsafe()->getAsCXXRecordDecl();
        if (!record) return;
        Operand object;
        object.shape = Shape::object;
        object.name = object.text = Symbol(name);
        for (Call& call : destructor_calls(*record, object, span_of(at, state_.ast), state_))
            placed_.push_back({index, position, placed_.size(), kNone, std::move(call)});
    }

    void reorder() {
        std::vector<Call>& calls = state_.out.calls;
        std::pair<std::uint32_t, std::uint32_t> last{0, 0};
        std::vector<Placed> all;
        for (std::size_t i = 0; i < calls.size(); ++i) {
            // A call that is not in the graph (a default member initialiser) stays with its neighbour.
            const auto found = position_.find(state_.made_by[i]);
            if (found != position_.end()) last = found->second;
            all.push_back({last.first, last.second, i, static_cast<std::int32_t>(i), std::move(calls[i])});
        }
        const std::size_t walked = all.size();
        for (Placed& p : placed_) {
            p.sequence += walked;
            all.push_back(std::move(p));
        }
        std::ranges::sort(all, [](const Placed& a, const Placed& b) {
            return std::tie(a.block, a.position, a.sequence) < std::tie(b.block, b.position, b.sequence);
        });
        std::vector<std::int32_t> now(walked, kNone);
        calls.clear();
        for (Placed& p : all) {
            if (p.before != kNone)
                now[static_cast<std::size_t>(p.before)] = static_cast<std::int32_t>(calls.size());
            p.call.block = p.block;
            calls.push_back(std::move(p.call));
        }
        renumber(now);
    }

    void renumber(const std::vector<std::int32_t>& now) {
        const auto fix = [&](Operand& o) {
            if (o.call != kNone) o.call = now[static_cast<std::size_t>(o.call)];
        };
        for (Call& call : state_.out.calls) std::ranges::for_each(call.args, fix);
        for (Cast& cast : state_.out.casts) fix(cast.source);
        std::ranges::for_each(state_.out.returned, fix);
        for (auto& [statement, index] : state_.call_of) index = now[static_cast<std::size_t>(index)];
    }

    State& state_;
    Conditions conditions_;
    const clang::CFGBlock* exit_ = nullptr;
    bool exit_used_ = false;
    std::vector<const clang::CFGBlock*> order_;
    llvm::DenseMap<const clang::CFGBlock*, std::uint32_t> number_;
    llvm::DenseMap<const clang::Stmt*, std::pair<std::uint32_t, std::uint32_t>> position_;
    std::vector<Placed> placed_;
};

}  // namespace

void add_flow(State& state) {
    if (state.out.calls.empty()) return;
    clang::CFG::BuildOptions options;
    options.AddImplicitDtors = true;
    options.AddInitializers = true;
    const auto graph = clang::CFG::buildCFG(&state.decl, state.decl.getBody(), &state.ast, options);
    if (graph) Blocks(*graph, state).write();
}

}  // namespace mp::lint::walk
