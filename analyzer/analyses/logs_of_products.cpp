#include "analyzer/analyses/logs_of_products.hpp"

#include <algorithm>
#include <array>

#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/region/calls.hpp"
#include "kernels/numerics/op_traits.hpp"

namespace mp::lint {
namespace {

constexpr std::size_t kMostValues = 64;  // followed from one logarithm

bool is_log(std::string_view op) {
    constexpr std::array<std::string_view, 4> kLogs{"log", "log2", "log10", "log1p"};
    return any_of(op, kLogs);
}

bool is_product(const Call& call) {
    constexpr std::array<std::string_view, 5> kProducts{"matmul", "__matmul__", "mm", "bmm", "einsum"};
    return any_of(call.op.name(), kProducts);
}

// The result has the size of the first operand, or nearly: nothing here normalises.
bool keeps_size(const Call& call) {
    constexpr std::array<std::string_view, 8> kKeeping{"clamp", "clamp_min", "clip", "mul",
                                                       "add",   "maximum",   "abs",  "to"};
    const std::string_view name = leaf(call.name.str());
    return any_of(call.op.name(), kKeeping) || traits_of(call.op).has(Trait::moves) || name == "float" ||
           traits_of(name).has(Trait::moves);
}

// A probability or a gate: its products stay in range.
bool is_bounded(const Function& f, const Operand& operand) {
    return origin(f, operand, [](const Call& c) { return traits_of(c.op).has(Trait::bounded); }) != nullptr;
}

struct Value {
    const Function* function = nullptr;
    const Operand* operand = nullptr;
};

class Search {
public:
    Search(const Program& program, std::vector<LogOfProduct>& out) : program_(program), out_(out) {}

    void from(const Function& f, const Call& log) {
        if (log.args.empty()) return;
        pending_ = {{&f, &log.args[0]}};
        for (std::size_t next = 0; next < pending_.size() && next < kMostValues; ++next)
            visit(pending_[next], log);
    }

private:
    void visit(Value at, const Call& log) {
        const auto& [f, operand] = at;
        if (const Call* call = call_of(*f, *operand))
            through_call(*f, *call, log);
        else if (operand->param != kNone)
            through_callers(*f, operand->param);
    }

    void through_call(const Function& f, const Call& call, const Call& log) {
        if (is_product(call)) return found(f, call, log);
        if (keeps_size(call) && !call.args.empty()) return push(f, call.args[0]);
        const Function* callee = program_.definition(call.callee);
        if (!callee) return;
        for (const Operand& returned : callee->returned) push(*callee, returned);
    }

    void through_callers(const Function& f, std::int32_t param) {
        for (const Call* call : program_.callers(f.usr)) {
            const Operand* given = argument_for(*call, f, param);
            const Function* caller = program_.owner(*call);
            if (given && caller) push(*caller, *given);
        }
    }

    void push(const Function& f, const Operand& operand) {
        const auto same = [&](const Value& v) { return v.operand == &operand; };
        if (std::ranges::none_of(pending_, same)) pending_.push_back({&f, &operand});
    }

    void found(const Function& f, const Call& product, const Call& log) {
        const auto bounded = [&](const Operand& a) { return is_bounded(f, a); };
        if (std::ranges::any_of(product.args, bounded)) return;
        const auto same = [&](const LogOfProduct& l) { return l.product == &product; };
        if (std::ranges::none_of(out_, same)) out_.push_back({&f, &product, &log});
    }

    const Program& program_;
    std::vector<LogOfProduct>& out_;
    std::vector<Value> pending_;
};

}  // namespace

std::vector<LogOfProduct> logs_of_products(const Program& program) {
    std::vector<LogOfProduct> out;
    Search search(program, out);
    for_each_op(program, is_log, [&](const Function& f, const Call& log) { search.from(f, log); });
    return out;
}

}  // namespace mp::lint
