#include "analyzer/analyses/optimizers.hpp"

#include <algorithm>
#include <array>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/engines.hpp"
#include "analyzer/analyses/support.hpp"

namespace mp::lint {
namespace {

bool writes_in_place(const Call& call) {
    constexpr std::array<std::string_view, 6> kOps{"add", "sub", "addcdiv", "addcmul", "copy", "lerp"};
    return call.in_place && any_of(call.op.name(), kOps);
}

// A cast to fp32 begins a copy: state["master"] = p.float(). Where parameters are written in place, one that is
// only computed with keeps nothing.
bool is_kept(const Function& method, const Call& cast) {
    constexpr std::array<std::string_view, 3> kStores{"__setitem__", "append", "setdefault"};
    const auto is_cast = [&](const Call& call) { return &call == &cast; };
    return std::ranges::none_of(method.calls, writes_in_place) ||
           std::ranges::any_of(method.calls, [&](const Call& call) {
               const bool stores = any_of(leaf(call.name.str()), kStores) && !call.args.empty();
               return call.result.name.str().starts_with("self.") ||
                      (stores && origin(method, call.args.back(), is_cast));
           });
}

bool may_keep_rest(const Function& method, const Call& call) {
    constexpr std::array<std::string_view, 7> kWords{"master", "stochastic", "kahan", "compens",
                                                     "rand",   "round",      "step"};
    const std::string_view name = leaf(call.name.str());
    if (name == "float" || (name == "to" && call.result.dtype == DType::fp32)) return is_kept(method, call);
    // A call of another step() delegates.
    return std::ranges::any_of(kWords, [&](std::string_view word) { return mentions(name, word); });
}

}  // namespace

bool is_library_optimizer(std::string_view name) {
    constexpr std::array<std::string_view, 9> kHomes{
        "bitsandbytes.optim.", "apex.optimizers.", "torch_optimizer.", "lion_pytorch.",     "schedulefree.",
        "prodigyopt.",         "dadaptation.",     "torchao.optim.",   "pytorch_optimizer."};
    constexpr std::array<std::string_view, 2> kNames{"transformers.AdamW", "transformers.Adafactor"};
    const std::string_view last = leaf(name);
    const bool is_class = !last.empty() && last.front() >= 'A' && last.front() <= 'Z';
    return any_of(name, kNames) || (is_class && std::ranges::any_of(kHomes, [&](std::string_view home) {
                                        return name.starts_with(home);
                                    }));
}

bool may_make_optimizer(std::string_view name) {
    return (name.starts_with("torch.optim.") && !is_within(name, "torch.optim.lr_scheduler")) ||
           is_library_optimizer(name);
}

bool keeps_rest(const Call& call) {
    return std::ranges::any_of(call.args, [](const Operand& o) {
        const std::string_view keyword = o.keyword.str();
        return keyword == "master_weights" || keyword == "bf16_stochastic_round" ||
               (mentions(keyword, "kahan") && !is_false(&o));
    });
}

bool may_keep_rest(const Function& method) {
    return std::ranges::any_of(method.calls, [&](const Call& call) { return may_keep_rest(method, call); });
}

OwnOptimizers::OwnOptimizers(const Classes& classes) {
    for (const Symbol name : classes.all()) {
        if (is_hf_trainer(classes.library_base(name).str())) trainers_.insert(name.str());
        if (classes.library_base(name, "Optimizer").empty()) continue;
        bool writes = false, may_keep = false;
        for (const Function* method : classes.methods(name)) {
            writes = writes || std::ranges::any_of(method->calls, writes_in_place);
            may_keep = may_keep || may_keep_rest(*method);
        }
        if (writes && !may_keep) optimizers_.insert(name.str());
    }
}

}  // namespace mp::lint
