#include "analyzer/analyses/norm_stats.hpp"

#include <array>

#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/support.hpp"

namespace mp::lint {
namespace {

bool is_mean(std::string_view op) { return op == "mean"; }

bool is_root(std::string_view op) { return op == "rsqrt" || op == "sqrt"; }

// Also segment_csr and scatter_mean of torch_scatter.
bool reduces(const Call& call) {
    const std::string_view name = leaf(call.name.str());
    const bool by_index = name.starts_with("segment_") || name.starts_with("scatter_");
    return (by_index || is_mean(call.op.name()) || call.op.name() == "sum") && !call.args.empty();
}

// x + eps, x.clamp(min=eps)
bool adds_epsilon(const Call& call) {
    constexpr std::array<std::string_view, 4> kOps{"add", "clamp", "clamp_min", "clip"};
    return any_of(call.op.name(), kOps);
}

}  // namespace

bool is_square(const Call& call) {
    if (call.op.name() == "square") return true;
    if (call.args.size() < 2) return false;
    if (call.op.name() == "pow") return number_of(call.args[1]) == 2.0;
    return call.op.name() == "mul" && !call.args[0].name.empty() && call.args[0].name == call.args[1].name;
}

bool is_variance(const Call& call) {
    return call.op.name() == "var" || call.op.name() == "std" || call.op.name() == "var_mean" ||
           call.op.name() == "std_mean";
}

bool is_mean_of_squares(const Function& f, const Call& call) {
    if (!is_mean(call.op.name()) || call.args.empty()) return false;
    const Call* squared = producer(f, call.args.front());
    return squared && is_square(*squared);
}

bool is_variance_by_difference(const Function& f, const Call& call) {
    if (call.op.name() != "sub" || call.args.size() < 2) return false;
    const Call* squared = producer(f, call.args[1]);
    if (!squared || !is_square(*squared) || !origin(f, squared->args[0], reduces)) return false;
    const Call* reduced = origin(f, call.args[0], reduces);
    return reduced && origin(f, reduced->args[0], is_square);
}

const Call* variance_under_root(const Function& f, const Call& root) {
    if (!is_root(root.op.name()) || root.args.empty()) return nullptr;
    const Call* below = producer(f, root.args.front());
    if (below && adds_epsilon(*below) && !below->args.empty()) below = producer(f, below->args.front());
    return below && is_variance(*below) ? below : nullptr;
}

std::vector<const Call*> divisions_by(const Function& f, const Call& call) {
    const auto is_this = [&](const Call& c) { return &c == &call; };
    std::vector<const Call*> found;
    for (const Call& c : f.calls)
        if (c.op.name() == "div" && c.args.size() > 1 && origin(f, c.args[1], is_this)) found.push_back(&c);
    return found;
}

bool may_end_statistic(std::string_view op) { return is_mean(op) || is_root(op) || op == "sub"; }

bool is_part_of_norm(const Function& f, const Call& call) {
    if (is_square(call)) return consumer(f, call, [&](const Call& c) { return is_mean_of_squares(f, c); });
    if (!is_variance(call)) return false;
    for (const Call& root : f.calls)
        if (variance_under_root(f, root) == &call) return true;
    return false;
}

}  // namespace mp::lint
