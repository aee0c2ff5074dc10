#include "analyzer/clang/local_flow.hpp"

#include "analyzer/clang/local_flow_impl.hpp"
#include "analyzer/clang/types.hpp"

namespace mp::lint {
Stat stat_for(Meaning meaning) {
    switch (meaning) {
        case Meaning::sum:
            return Stat::sum;
        case Meaning::sum_of_squares:
            return Stat::sum_of_squares;
        case Meaning::mean:
            return Stat::mean;
        case Meaning::variance:
            return Stat::variance;
        case Meaning::rstd:
            return Stat::rstd;
        default:
            return Stat::none;
    }
}

Flow::Flow(const clang::FunctionDecl& function, clang::ASTContext& c) : context(c), terms(function, c) {
    collect_steps();
}

LocalFlow::LocalFlow(const clang::FunctionDecl& function, clang::ASTContext& context)
    : impl_(new Impl{Flow(function, context)}) {}

LocalFlow::~LocalFlow() = default;

LoopsAround LocalFlow::loops_around(const clang::Stmt& s) const {
    const Body& body = impl_->flow.terms.root();
    const auto loops = body.loops_around(&s);
    LoopsAround around;
    around.depth = static_cast<std::uint16_t>(loops.size());
    if (loops.empty()) return around;
    around.halving = body.describe(loops.front()).halving;
    around.trips = 1;
    for (const clang::Stmt* loop : loops)
        if (__builtin_mul_overflow(around.trips, body.describe(loop).trips, &around.trips)) around.trips = 0;
    return around;
}

Stat LocalFlow::stat_of(const clang::Expr& e) const {
    const ElementType type = element_type(e.getType());
    // Only numbers are statistics. Most operands of host code return here.
    if (!is_float(type.dtype) || (type.shape != Shape::scalar && type.shape != Shape::vec)) return Stat::none;
    return stat_for(impl_->flow.meaning({&e, nullptr}));
}

bool LocalFlow::is_index(const clang::Expr& e) const { return impl_->flow.is_index({&e, nullptr}, 0); }

std::uint64_t LocalFlow::bound_of(const clang::Expr& e) const {
    return impl_->flow.bound_of({&e, nullptr}, 0);
}

Role LocalFlow::role_of(const clang::Expr& literal) const {
    return impl_->flow.role_of(impl_->flow.terms.root(), literal, 0);
}

void LocalFlow::add_accumulations(Function& out) const { impl_->flow.add_accumulations(out); }

void LocalFlow::add_updates(Function& out) const { impl_->flow.add_updates(out); }

void LocalFlow::add_scalings(Function& out) const { impl_->flow.add_scalings(out); }

}  // namespace mp::lint
