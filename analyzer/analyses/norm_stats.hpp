#pragma once

// The statistics of a normalisation that is written in tensor ops, and which calls belong to it.

#include <string_view>
#include <vector>

#include "analyzer/facts/model.hpp"

namespace mp::lint {

// x * x, x.pow(2), x.square()
bool is_square(const Call&);

// mean(x * x), x.pow(2).mean()
bool is_mean_of_squares(const Function&, const Call&);

// mean(x * x) - mean(x) ** 2: a variance that cancels.
bool is_variance_by_difference(const Function&, const Call&);

// var, std, var_mean, std_mean
bool is_variance(const Call&);

// The var or std whose result, perhaps with an epsilon, this square root or inverse root takes; nullptr
// when the call is not such a root.
const Call* variance_under_root(const Function&, const Call& root);

// The divisions of the function that have the result, or what is computed from it, below the line.
std::vector<const Call*> divisions_by(const Function&, const Call&);

// Whether calls of this op can be such a mean, such a difference or such a root.
bool may_end_statistic(std::string_view op);

// A square below such a mean, or a variance below such a root: MP405 judges it together with that.
bool is_part_of_norm(const Function&, const Call&);

}  // namespace mp::lint
