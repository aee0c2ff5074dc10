// MP108 optimizer-step-in-region
//
// What   An optimizer steps inside an autocast region; after hmp.convert(), a step or a gradient
//        clip that is not under hmp.disable_casts().
// Why    The update p - lr * g is a small difference: in half it rounds to p. HMP casts every op of
//        the program, the optimizer's too, until disable_casts() says otherwise.
// Fix    Step after the region; with HMP, `with hmp.disable_casts():` around clip and step.
// Silent Fused optimizers of Habana; objects that only have a step() (schedulers, profilers,
//        environments); disabled regions.
// Tests  testdata/lint/MP108.md, tests/analyzer/rules/optimizer_step_in_region_test.cpp

#include <algorithm>
#include <array>

#include "analyzer/rules/arguments.hpp"
#include "analyzer/rules/autocast_calls.hpp"
#include "analyzer/rules/regions.hpp"
#include "analyzer/rules/support.hpp"

namespace mp::lint {
namespace {

bool is_own_library(std::string_view name) {
    constexpr std::array<std::string_view, 8> kScopes{
        "torch.optim",        "torch::optim",     "apex.optimizers", "bitsandbytes.optim",
        "deepspeed.ops.adam", "transformers",     "torchao.optim",   "torch_optimizer"};
    return std::ranges::any_of(kScopes,
                               [&](std::string_view scope) { return is_within(name, scope); });
}

bool is_scaler(std::string_view name) { return mentions(name, "GradScaler.step"); }

// `opt.step()` of an object that nobody knows, when gradients are zeroed through the same object:
// no scheduler and no scaler can do that.
bool zeroes_gradients(const Function& f, const Operand& object) {
    return std::ranges::any_of(f.calls, [&](const Call& call) {
        return call.kind == CallKind::method && leaf(call.name.str()) == "zero_grad" &&
               !call.args.empty() && call.args[0].name == object.name;
    });
}

bool is_known_optimizer(const RuleContext& context, const Function& f, const Operand& object) {
    if (object.name.empty()) return false;
    if (zeroes_gradients(f, object)) return true;
    // self.optimizer: any method of the class.
    if (f.parent_class.empty() || object.name.str().find('.') == std::string_view::npos)
        return false;
    return std::ranges::any_of(context.program.functions(), [&](const Function* other) {
        return other->parent_class == f.parent_class && zeroes_gradients(*other, object);
    });
}

bool is_step(const RuleContext& context, const Function& f, const Call& call) {
    const std::string_view name = call.name.str();
    if (leaf(name) != "step" || call.kind != CallKind::method || call.args.empty()) return false;
    if (mentions(name, "lr_scheduler")) return false;
    if (is_own_library(name) || is_scaler(name)) return true;
    return name == "?.step" && is_known_optimizer(context, f, call.args[0]);
}

bool is_clip(const Call& call) {
    const std::string_view name = leaf(call.name.str());
    return is_within(call.name.str(), "torch.nn.utils") && name.starts_with("clip_grad_");
}

const Context* hmp_region(const Program& program, const Function& f, const Call& call) {
    for (const Context& context : program.contexts(f, call))
        if (context.enabled == Switch::on && context.device.str() == "hmp") return &context;
    return nullptr;
}

void report(const RuleContext& context, const Function& f, const Call& call, const Context& region,
            Findings& out) {
    const bool is_hmp = region.device.str() == "hmp";
    const std::string what = is_clip(call) ? "gradients are clipped" : "the optimizer steps";
    emit(context, f,
         {.rule = "MP108",
          .severity = is_hmp && region.proven ? Severity::error : Severity::warning,
          .span = call.span,
          .message = what + (is_hmp ? " under HMP, which casts these ops to bf16 too"
                                    : " inside " + describe(region) +
                                          ": small updates are computed in half"),
          .fix = is_hmp ? "put it under `with hmp.disable_casts():`"
                        : "end the region after the loss; step outside it",
          .notes = notes_of(region),
          .function = {}},
         out);
}

void check(const RuleContext& context, Findings& out) {
    for_each(context, &Function::calls, [&](const Function& f, const Call& call) {
        const bool step = is_step(context, f, call);
        if (!step && !is_clip(call)) return;
        if (const Context* hmp = hmp_region(context.program, f, call))
            report(context, f, call, *hmp, out);
        else if (const Context* region = written_region(context.program, f, call); region && step)
            report(context, f, call, *region, out);
    });
}

}  // namespace

extern constinit const Rule kOptimizerStepInRegion{.id = "MP108",
                                                   .name = "optimizer-step-in-region",
                                                   .severity = Severity::error,
                                                   .on_by_default = true,
                                                   .confirmed_by = "MPT060",
                                                   .check = check};

}  // namespace mp::lint
