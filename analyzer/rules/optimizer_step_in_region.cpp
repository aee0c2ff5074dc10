// MP108 optimizer-step-in-region
//
// What   An optimizer that multiplies matrices in its step (Muon, Shampoo, Adafactor) steps inside an
//        autocast region; after hmp.convert(), any step, a gradient clip or a mask
//        (1 - mask) * torch.finfo(torch.float32).min that is not under hmp.disable_casts().
// Why    Autocast runs matrix products in half, also those of an update. HMP casts every op of the
//        program, the optimizer's too, until disable_casts() ends that: p - lr * g rounds to p. fp32's
//        limits round to inf in bf16, and 0 * inf is NaN where nothing is masked.
// Fix    Step after the region; with HMP, `with hmp.disable_casts():` around clip, step and mask.
// Silent Elementwise optimizers (SGD, Adam) in an autocast region: it casts none of their ops. Fused
//        optimizers of Habana; objects that only have a step() (schedulers, profilers, environments);
//        disabled regions; masks of -1e9 or of another number that bf16 holds.
// Tests  testdata/lint/MP108.md, tests/analyzer/rules/optimizer_step_in_region_test.cpp

#include <algorithm>
#include <array>
#include <cmath>

#include "analyzer/analyses/autocast_calls.hpp"
#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/numbers.hpp"
#include "analyzer/analyses/protocol.hpp"
#include "analyzer/analyses/python_constants.hpp"
#include "analyzer/analyses/regions.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/region/calls.hpp"
#include "analyzer/rules/rule.hpp"
#include "kernels/numerics/op_traits.hpp"

namespace mp::lint {
namespace {

bool is_own_library(std::string_view name) {
    constexpr std::array<std::string_view, 11> kScopes{
        "torch.optim",        "torch::optim",      "apex.optimizers",    "bitsandbytes.optim",
        "deepspeed.ops.adam", "transformers",      "torchao.optim",      "torch_optimizer",
        "galore_torch",       "pytorch_optimizer", "distributed_shampoo"};
    return std::ranges::any_of(kScopes, [&](std::string_view scope) { return is_within(name, scope); });
}

bool is_scaler(std::string_view name) { return mentions(name, "GradScaler.step"); }

// `opt.step()` of an object of unknown class, when gradients are zeroed through the same object:
// no scheduler and no scaler can do that.
bool zeroes_gradients(const Function& f, const Operand& object) {
    return std::ranges::any_of(f.calls, [&](const Call& call) {
        return call.kind == CallKind::method && leaf(call.name.str()) == "zero_grad" && !call.args.empty() &&
               call.args[0].name == object.name;
    });
}

bool is_known_optimizer(const RuleContext& context, const Function& f, const Operand& object) {
    if (object.name.empty()) return false;
    if (zeroes_gradients(f, object)) return true;
    // self.optimizer: any method of the class.
    if (f.parent_class.empty() || object.name.str().find('.') == std::string_view::npos) return false;
    return std::ranges::any_of(context.program.functions(), [&](const Function* other) {
        return other->parent_class == f.parent_class && zeroes_gradients(*other, object);
    });
}

// Optimizers of libraries, by a part of their class's name.
bool names_matrix_optimizer(std::string_view name) {
    constexpr std::array<std::string_view, 9> kNames{"muon", "shampoo", "soap",  "kfac",     "psgd",
                                                     "kron", "galore",  "scion", "adafactor"};
    const std::string_view of_class = name.substr(0, name.rfind('.'));
    return std::ranges::any_of(kNames, [&](std::string_view part) { return mentions(leaf(of_class), part); });
}

// The step of one of the program's own optimizers, or a function that it calls, multiplies matrices.
bool multiplies_matrices(const Program& program, const Function& step, int left) {
    return std::ranges::any_of(step.calls, [&](const Call& call) {
        if (traits_of(call.op).has(Trait::product)) return true;
        const Function* callee = left > 0 ? program.definition(call.callee) : nullptr;
        return callee && multiplies_matrices(program, *callee, left - 1);
    });
}

bool names_step(std::string_view name) { return leaf(name) == "step"; }

bool is_step(const RuleContext& context, const Function& f, const Call& call) {
    const std::string_view name = call.name.str();
    if (!names_step(name) || call.kind != CallKind::method || call.args.empty()) return false;
    if (mentions(name, "lr_scheduler")) return false;
    if (is_own_library(name) || is_scaler(name)) return true;
    return name == "?.step" && is_known_optimizer(context, f, call.args[0]);
}

bool is_matrix_step(const RuleContext& context, const Call& call) {
    constexpr int kFarthest = 3;
    const std::string_view name = call.name.str();
    if (!names_step(name) || call.kind != CallKind::method) return false;
    if (is_own_library(name) && names_matrix_optimizer(name)) return true;
    const Function* step = context.program.definition(call.callee);
    const auto is_optimizer = [](Symbol base) { return is_within(base.str(), "torch.optim"); };
    return step && std::ranges::any_of(step->bases, is_optimizer) &&
           multiplies_matrices(context.program, *step, kFarthest);
}

bool is_clip(std::string_view name) {
    return is_within(name, "torch.nn.utils") && leaf(name).starts_with("clip_grad_");
}

const Context* hmp_region(const Program& program, const Function& f, const Call& call) {
    for (const Context& context : program.contexts(f, call))
        if (context.enabled == Switch::on && context.device.str() == "hmp") return &context;
    return nullptr;
}

// What the module of the function calls the library: "hmp"; empty when it is not imported there.
std::string_view hmp_of(const RuleContext& context, const Function& f) {
    for (const Function* other : context.program.functions()) {
        if (other->span.file != f.span.file) continue;
        for (const TypeUse& imported : other->types)
            if (imported.name.str().ends_with(".hpex.hmp")) return leaf(imported.alias.str());
    }
    return {};
}

// `with hmp.disable_casts():` over the statement, which moves to the right. What follows of it
// stands in parentheses and may stay where it is.
std::vector<Edit> disabled_casts(const RuleContext& context, const Function& f, const Call& call) {
    const std::string_view hmp = hmp_of(context, f);
    if (hmp.empty()) return {};
    auto edits = line_before({&f, index_of(f, call)}, std::string(hmp) + ".disable_casts():");
    for (Edit& edit : edits) edit.text = "with " + edit.text + "    ";
    return edits;
}

void report(const RuleContext& context, const Function& f, const Call& call, const Context& region,
            Findings& out) {
    const bool is_hmp = region.device.str() == "hmp";
    const bool clips = is_clip(call.name.str());
    const std::string what = clips ? "gradients are clipped" : "the optimizer steps";
    auto edits = is_hmp ? disabled_casts(context, f, call) : std::vector<Edit>{};
    const bool has_edits = !edits.empty();
    emit(context, f,
         {.rule = "MP108",
          .severity = is_hmp && region.proven ? Severity::error : Severity::warning,
          .span = call.span,
          .message = what + (is_hmp ? " under HMP, which casts these ops to bf16 too"
                                    : " inside " + describe(region) +
                                          ", which runs the matrix products of its update in half"),
          .fix = is_hmp ? "put it under `with hmp.disable_casts():`"
                        : "end the region after the loss; step outside it",
          .notes = notes_of(region),
          .function = {},
          .edits = std::move(edits),
          .safe_edits = has_edits},
         out);
}

// A limit of fp32, which bf16 cannot hold: by finfo, or as a number. `proven` when it is fp32's.
bool is_wide_limit(const Function& f, const Operand& value, bool& proven) {
    const auto number = number_of(value);
    proven = true;
    if (number) return std::abs(*number) >= overflows_from(DType::bf16);
    const Limit limit = limit_of(f, value);
    if (!limit.finfo || (limit.which != "min" && limit.which != "max")) return false;
    const DType dtype = limit.finfo->args.empty() ? DType::unknown : limit.finfo->args[0].dtype;
    proven = (dtype == DType::fp32 || dtype == DType::fp64);
    return proven || dtype == DType::unknown;
}

// (1 - mask) * limit: where nothing is masked the first factor is 0.
bool is_inverted_mask(const Function& f, const Operand& value) {
    const Call* call = producer(f, value);
    if (!call || (call->op.name() != "sub" && call->op.name() != "rsub")) return false;
    return std::ranges::any_of(call->args, [](const Operand& o) { return number_of(o) == 1.0; });
}

// A product: (1 - mask) * limit.
void check_mask(const RuleContext& context, const Function& f, const Call& call, Findings& out) {
    if (call.args.size() < 2) return;
    bool proven = false;
    const bool right = is_wide_limit(f, call.args[1], proven) && is_inverted_mask(f, call.args[0]);
    const bool left = !right && is_wide_limit(f, call.args[0], proven) && is_inverted_mask(f, call.args[1]);
    if (!right && !left) return;
    const Context* region = hmp_region(context.program, f, call);
    if (!region) return;
    emit(context, f,
         {.rule = "MP108",
          .severity = proven && region->proven ? Severity::error : Severity::warning,
          .span = call.span,
          .message = std::string("a mask is multiplied by a limit of fp32 under HMP, which casts it "
                                 "to bf16: ") +
                     (proven ? "it is inf there" : "fp32's is inf there") +
                     ", and where nothing is masked 0 * inf is nan",
          .fix = "put it under `with hmp.disable_casts():`, or use masked_fill",
          .notes = notes_of(*region),
          .function = {}},
         out);
}

void check(const RuleContext& context, Findings& out) {
    const auto is_product = [](std::string_view op) { return op == "mul"; };
    for_each_op(context.program, is_product,
                [&](const Function& f, const Call& call) { check_mask(context, f, call, out); });
    const auto may_update = [](std::string_view name) { return names_step(name) || is_clip(name); };
    for_each_call(context.program, may_update, [&](const Function& f, const Call& call) {
        if (const Context* hmp = hmp_region(context.program, f, call)) {
            if (is_clip(call.name.str()) || is_step(context, f, call)) report(context, f, call, *hmp, out);
        } else if (is_matrix_step(context, call)) {
            if (const Context* region = written_region(context.program, f, call))
                report(context, f, call, *region, out);
        }
    });
}

}  // namespace

extern constinit const Rule kOptimizerStepInRegion{.id = "MP108",
                                                   .name = "optimizer-step-in-region",
                                                   .severity = Severity::error,
                                                   .on_by_default = true,
                                                   .confirmed_by = "MPT060",
                                                   .triggers = {kRegions, kEngines},
                                                   .check = check};

}  // namespace mp::lint
