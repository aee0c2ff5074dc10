#pragma once

// Steps of a scaler that raise: it does not unscale the gradients of half parameters.

#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "analyzer/analyses/optimizer_parameters.hpp"

namespace mp::lint {

class Protocol;
struct MadeScaler;

struct Refusal {
    const Function* function = nullptr;
    const Call* call = nullptr;  // step() or unscale_(), the first of the function for this optimizer
    Symbol optimizer;
    DType parameters = DType::unknown;
    bool is_certain = true;   // false: a flag decides the dtype or the scaler, or the device is not known
    std::vector<Note> chain;  // how the parameters became half
};

class Refusals {
public:
    explicit Refusals(const RuleContext&);

    const std::vector<Refusal>& all() const { return refusals_; }
    // Whether the call makes an optimizer that a scaler refuses.
    bool has(const Call& optimizer) const { return refused_.contains(&optimizer); }

private:
    void look_at(const Function&);
    std::optional<Refusal> refusal_of(const Function&, const Call& step, Symbol optimizer);
    std::vector<const MadeScaler*> scalers_near(const Function&) const;
    Switch scales_on_cuda(const Function&) const;
    bool are_off(const Function&) const;

    const Protocol& protocol_;
    OptimizerParameters parameters_;
    std::vector<Refusal> refusals_;
    std::unordered_set<const Call*> refused_;
};

// Found at the first call for a context and kept with it.
const Refusals& refusals_of(const RuleContext&);

}  // namespace mp::lint
