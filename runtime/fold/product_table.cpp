#include "runtime/fold/product_table.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mp::trace {
namespace {

double quotient(double a, double b) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (!(b > 0) && !std::isnan(b)) return a > 0 || std::isnan(a) ? kInfinity : 0;
    const double value = a / b;
    return std::isnan(value) ? kInfinity : value;
}

// The larger, the worse; a NaN is the worst. All fields take part, so that equal ones are the same.
auto badness(const ProductRecord& r, Place at) {
    const LocalExcess excess = local_excess(r);
    const auto order = [](double x) { return std::pair(std::isnan(x), std::isnan(x) ? 0.0 : x); };
    return std::tuple(order(std::min(excess.rounding, excess.others)), order(r.block_error_squares),
                      -at.step.value, -at.rank.value, ~r.first_row, ~r.device, ~r.rows, ~r.sketched_rows,
                      order(r.error_squares), order(r.squares), order(r.rounding_squares),
                      order(r.block_squares), order(r.block_rounding_squares));
}

}  // namespace

LocalExcess local_excess(const ProductRecord& r) {
    const double other_errors = larger(0, r.error_squares - r.block_error_squares);
    const double other_roundings = larger(0, r.rounding_squares - r.block_rounding_squares);
    const double excess = quotient(r.block_error_squares, r.block_rounding_squares);
    return {excess, quotient(excess, quotient(other_errors, other_roundings))};
}

void ProductTable::add(const ProductRecord& r, Place at) {
    State one{
        .worst = r, .at = at, .products = 1, .error_squares = {}, .squares = {}, .rounding_squares = {}};
    one.error_squares.add(r.error_squares);
    one.squares.add(r.squares);
    one.rounding_squares.add(r.rounding_squares);
    merge({r.layer, r.op, r.phase, r.dtype}, one);
}

void ProductTable::merge(const ProductTable& other) {
    for (const auto& [key, state] : other.states_) merge(key, state);
}

// The first by name: what is left out here is not among the first of the whole run either.
void ProductTable::merge(const Key& key, const State& from) {
    const auto [at, fresh] = states_.try_emplace(key, from);
    if (fresh) {
        if (states_.size() > kMost) states_.erase(std::prev(states_.end()));
        return;
    }
    State& into = at->second;
    if (badness(into.worst, into.at) < badness(from.worst, from.at)) {
        into.worst = from.worst;
        into.at = from.at;
    }
    into.products += from.products;
    into.error_squares.add(from.error_squares);
    into.squares.add(from.squares);
    into.rounding_squares.add(from.rounding_squares);
}

void ProductTable::put(RunModel& model) const {
    for (const auto& [key, s] : states_)
        model.products.push_back({s.worst, s.at, s.products, s.error_squares.value(), s.squares.value(),
                                  s.rounding_squares.value()});
}

}  // namespace mp::trace
