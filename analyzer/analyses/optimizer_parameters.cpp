#include "analyzer/analyses/optimizer_parameters.hpp"

#include <algorithm>
#include <utility>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/module_operands.hpp"
#include "analyzer/analyses/protocol.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/trials.hpp"
#include "analyzer/region/calls.hpp"

namespace mp::lint {
namespace {

// Functions between an optimizer and its use, and optimizers that one name can be.
constexpr int kLongest = 6;
constexpr std::size_t kMost = 16;

// Agree on a known dtype, or nothing is known.
void merge(TensorDType& common, TensorDType found, bool is_first) {
    if (is_first) {
        common = std::move(found);
        return;
    }
    if (found.dtype != common.dtype) common = {};
    common.proven = common.proven && found.proven;
}

}  // namespace

OptimizerParameters::OptimizerParameters(const RuleContext& context)
    : context_(context), roles_(protocol_of(context).roles()), modules_(context) {}

std::vector<MadeOptimizer> OptimizerParameters::makers_of(const Function& user, Symbol optimizer) const {
    std::vector<MadeOptimizer> found;
    if (!optimizer.empty()) find_named(user, optimizer, kLongest, found);
    return found;
}

void OptimizerParameters::find(const Function& f, const Operand& value, int left,
                               std::vector<MadeOptimizer>& found) const {
    if (const Call* call = call_of(f, value))
        find_of_call(f, *call, left, found);
    else if (value.param != kNone)
        find_passed(f, value.param, left, found);
    else
        find_named(f, value.name, left, found);
}

void OptimizerParameters::find_passed(const Function& f, std::int32_t param, int left,
                                      std::vector<MadeOptimizer>& found) const {
    if (left <= 0) return;
    for (const Call* passed : callers_by_weight(context_, f)) {
        const Function* caller = context_.program.owner(*passed);
        const Operand* argument = caller ? argument_for(*passed, f, param) : nullptr;
        if (argument && found.size() < kMost)
            find(*caller, *argument, std::min(left - 1, left / 2 + 1), found);
    }
}

void OptimizerParameters::find_named(const Function& f, Symbol name, int left,
                                     std::vector<MadeOptimizer>& found) const {
    if (left <= 0 || name.empty()) return;
    const std::size_t before = found.size();
    for (const Call& call : f.calls)
        if (call.result.name == name && !call.in_place) find_of_call(f, call, left, found);
    if (found.size() > before) return;
    const auto param = std::ranges::find(f.params, name, &Parameter::name);
    if (param != f.params.end())
        return find_passed(f, static_cast<std::int32_t>(param - f.params.begin()), left, found);
    if (name.str().starts_with("self.")) return find_in_class(f, name, left, found);
    for (const Function* head : functions_of(context_.program, f.span.file))
        if (head != &f && head->name.str().ends_with(".<module>"))
            for (const Call& call : head->calls)
                if (call.result.name == name) find_of_call(*head, call, left, found);
}

// `optimizer = make(model)`, `model, optimizer = make()`
void OptimizerParameters::find_of_call(const Function& f, const Call& call, int left,
                                       std::vector<MadeOptimizer>& found) const {
    if (roles_.makes_optimizer(call)) {
        const MadeOptimizer made{.function = &f, .call = &call};
        if (std::ranges::find(found, made) == found.end()) found.push_back(made);
        return;
    }
    const Item item = item_of(call);
    const Call* from = item.held ? call_of(f, *item.held) : &call;
    const Function* callee =
        from && from->kind != CallKind::constructor ? context_.program.definition(from->callee) : nullptr;
    if (!callee || left <= 0) return;
    for (const Operand& value : callee->returned) {
        const Call* display = item.held ? call_of(*callee, value) : nullptr;
        const Operand* part = display ? item_of_display(*display, item.at) : nullptr;
        if (!item.held) part = &value;
        if (part) find(*callee, *part, left - 1, found);
    }
}

void OptimizerParameters::find_in_class(const Function& f, Symbol attribute, int left,
                                        std::vector<MadeOptimizer>& found) const {
    if (f.parent_class.empty()) return;
    const Classes& classes = classes_of(context_);
    for (const Function* method : classes.methods(f.parent_class)) {
        if (method == &f) continue;
        for (const Call& call : method->calls)
            if (call.result.name == attribute && !call.in_place) find_of_call(*method, call, left, found);
    }
    const auto [init, value] = classes.kept(f.parent_class, attribute);
    if (value && found.empty()) find(*init, *value, left - 1, found);
}

TensorDType OptimizerParameters::of(const Function& user, Symbol optimizer) {
    TensorDType common;
    bool is_first = true;
    for (const MadeOptimizer& made : makers_of(user, optimizer))
        merge(common, of(made), std::exchange(is_first, false));
    return common;
}

// `AdamW(model.parameters())`, `SGD(params=model.parameters())`.
TensorDType OptimizerParameters::of(const MadeOptimizer& made) {
    const Function& f = *made.function;
    const Operand* params = argument(*made.call, 0, "params");
    if (!params || are_of_adapters(f, *params)) return {};
    TensorDType common;
    bool is_first = true;
    const std::vector<ListedModule> sources = modules_in(context_, f, *params);
    for (const auto& [function, module, at] : sources)
        merge(common, of_module(*function, *module, *at), std::exchange(is_first, false));
    if (!sources.empty() || params->shape == Shape::tensor) return common;
    common.dtype = context_.program.dtype_of(f, *params).dtype;
    common.proven = true;
    return common;
}

TensorDType OptimizerParameters::of_module(const Function& f, const Operand& module, const Call& at) {
    ModuleDType found = modules_.of_module(f, module, at);
    if (found.known()) return found;
    return {.dtype = context_.program.dtype_of(f, module).dtype, .proven = true, .chain = {}};
}

}  // namespace mp::lint
