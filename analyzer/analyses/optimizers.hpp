#pragma once

// Optimizers and trainers of a program in Python that keep no fp32 copy of the weights they are given.

#include <string_view>
#include <unordered_set>

#include "analyzer/facts/model.hpp"
#include "analyzer/region/classes.hpp"

namespace mp::lint {

// Of another library than torch: it writes what it is given and keeps no fp32 copy of it.
bool is_library_optimizer(std::string_view name);

// Or of torch itself.
bool may_make_optimizer(std::string_view name);

// FusedAdam(..., master_weights=True), AdamW8bit(..., bf16_stochastic_round=True), AnyPrecisionAdamW(...,
// use_kahan_summation=True)
bool keeps_rest(const Call&);

// Whether a call of the function may keep what rounding loses: an fp32 copy, random bits, a compensation.
bool may_keep_rest(const Function&);

// The program's own trainers, and its optimizers that write the parameters in place and do nothing that would keep
// what the rounding loses: no fp32 copy, no random bits, no compensation.
class OwnOptimizers {
public:
    explicit OwnOptimizers(const Classes&);

    bool is_optimizer(std::string_view name) const { return optimizers_.contains(name); }
    bool is_trainer(std::string_view name) const { return trainers_.contains(name); }

private:
    std::unordered_set<std::string_view> optimizers_, trainers_;
};

}  // namespace mp::lint
