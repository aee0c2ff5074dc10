// The default dtype that modules are made in.

#include <algorithm>
#include <array>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/module_dtypes.hpp"
#include "analyzer/analyses/run_order.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/trials.hpp"

namespace mp::lint {
namespace {

constexpr std::array<std::string_view, 2> kSetDefault{"torch.set_default_dtype",
                                                      "torch.set_default_tensor_type"};

ModuleDType unknown() {
    ModuleDType found;
    found.proven = false;
    return found;
}

}  // namespace

// torch.set_default_dtype(torch.bfloat16), before a module is made: the last one here, or in what is called here, or
// in all callers.
ModuleDType ModuleDTypes::by_default(const Function& f, std::size_t before, int left) {
    if (!sets_default_) {
        sets_default_.emplace();
        for_each_call(context_.program, name_in(kSetDefault),
                      [&](const Function& setter, const Call&) { sets_default_->insert(&setter); });
    }
    if (sets_default_->empty() || left <= 0) return unknown();
    const std::uint32_t at = block_before(f, before);
    for (std::size_t i = std::min(before, f.calls.size()); i-- > 0;) {
        const Call& call = f.calls[i];
        const Function* callee = context_.program.definition(call.callee);
        const bool sets = any_of(call.name.str(), kSetDefault) && !call.args.empty();
        if (!sets && (!callee || !sets_default_->contains(callee))) continue;
        if (!can_run_before(f, call.block, at)) continue;
        ModuleDType found = sets ? default_set(f, call) : by_default(*callee, callee->calls.size(), 1);
        found.proven = found.proven && always_runs_before(f, call.block, at);
        return found;
    }
    ModuleDType common = unknown();
    bool first = true;
    for (const Call* call : callers_by_weight(context_, f)) {
        const Function* caller = context_.program.owner(*call);
        if (!caller || caller == &f) continue;
        const ModuleDType found =
            by_default(*caller, static_cast<std::size_t>(index_of(*caller, *call)), left / 2);
        if (!first && found.dtype != common.dtype) return unknown();
        if (first) common = found;
        first = false;
    }
    return common;
}

ModuleDType ModuleDTypes::default_set(const Function& f, const Call& sets) {
    ModuleDType found = unknown();
    static_cast<TensorDType&>(found) = tensors_.of(f, sets.args.front());
    if (!is_low_precision(found.dtype)) return unknown();
    found.chain.push_back({sets.span, std::string(label(found.dtype)) + " becomes the default dtype here"});
    return found;
}

}  // namespace mp::lint
