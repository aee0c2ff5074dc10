// MP501 half-optimizer-update-without-master
//
// What   A kernel or host loop stores `weight - step` back into fp16 or bf16 memory, and no fp32
//        copy of the weight, stochastic rounding or compensation keeps what the rounding loses. In
//        Python: an optimizer of torch over parameters that are half, or an engine that is told to
//        keep them so ("bf16-true").
// Why    A step smaller than half a unit in the last place changes nothing: in bf16 that is any
//        step below 0.2 % of the weight, and a typical lr times gradient is smaller.
// Fix    Keep fp32 master weights, or round stochastically, or keep the rounding error (Kahan).
// Silent An fp32 master stored beside it; stochastic rounding, here or in the helper that stores;
//        helpers whose body is not seen; in-place normalisation, which has statistics or no second
//        array to read a gradient from; averages (EMA). Python: engines that keep fp32 masters
//        (DeepSpeed, apex, Accelerate), frozen models and adapters (peft), tests. All of it in the inference
//        profile.
// Tests  testdata/lint/MP501.md, tests/analyzer/rules/half_optimizer_update_without_master_test.cpp

#include <algorithm>
#include <cmath>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/engines.hpp"
#include "analyzer/analyses/numbers.hpp"
#include "analyzer/analyses/python_code.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/tensor_dtypes.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

// What a rounding store does; a helper is judged by the stores in its own body.
enum class Rounding { nearest, compensated, unknown };

struct Store {
    Rounding rounding = Rounding::nearest;
    const Update* in_helper = nullptr;
};

Store rounding_of(const Program& program, const Update& u) {
    if (u.compensated) return {.rounding = Rounding::compensated};
    if (u.through.empty() && u.through_usr.empty()) return {};
    const Function* helper = program.definition(u.through_usr);
    if (!helper) return {.rounding = Rounding::unknown};
    Store store{.rounding = Rounding::unknown};
    for (const Update& inner : helper->updates) {
        if (!is_low_precision(inner.dtype)) continue;
        if (inner.compensated) return {.rounding = Rounding::compensated, .in_helper = &inner};
        store = {.rounding = Rounding::nearest, .in_helper = &inner};
    }
    return store;
}

bool is_float_array(const Parameter& p) {
    return (p.shape == Shape::pointer || p.shape == Shape::array) && is_float(p.dtype);
}

// The shape of an optimizer step: weights and at least one other float array (the gradient).
// They may come in a structure: a table of tensor lists, a parameter block.
bool reads_a_gradient(const Function& f) {
    return std::ranges::count_if(f.params, is_float_array) >= 2 ||
           std::ranges::any_of(f.params, [](const Parameter& p) { return p.shape == Shape::object; });
}

// ... and a scalar (the rate), or a structure that can hold one.
bool has_a_rate(const Function& f) {
    return std::ranges::any_of(f.params, [](const Parameter& p) {
        return (p.shape == Shape::scalar && is_float(p.dtype)) || p.shape == Shape::object;
    });
}

// Steps below this part of a weight are always lost: a quarter of the spacing at 1.
std::string lost_below(DType d) { return shown(100 * std::exp2(-significant_bits(d) - 1), 2) + " %"; }

Severity severity_of(const Function& f, const Update& u) {
    if (u.master_optional || !has_a_rate(f)) return Severity::warning;
    return error_if_proven(u.dtype);
}

std::string message_of(const Update& u) {
    std::string text = "update of" + (u.target.empty() ? " a weight" : quoted(u.target.str())) +
                       " is stored in " + std::string(label(u.dtype));
    if (u.master_optional) text += " alone when the fp32 master pointer is null";
    return text + ": a step below " + lost_below(u.dtype) + " of the weight rounds away";
}

// torch.optim.X(model.parameters(), lr=...), where the parameters are half.
constexpr double kLargeRate = 1e-2;  // its steps survive for a while

const Operand* half_module(const Function& f, const Operand& parameters) {
    const Call* call = call_of(f, parameters);
    if (parameters.shape == Shape::parameters && parameters.dtype != DType::unknown) return &parameters;
    const bool gives_all = call && leaf(call->name.str()) == "parameters" && !call->args.empty();
    return gives_all ? &call->args[0] : nullptr;
}

// Engines that keep fp32 master weights themselves, and adapters that train few parameters of many.
bool keeps_masters(const Program& program, const std::vector<Engine>& engines, Symbol file) {
    for (const Engine& e : engines) {
        // Accelerate makes the parameters fp32 before it shards them.
        const bool masters =
            e.kind == EngineKind::deepspeed || e.kind == EngineKind::apex || e.kind == EngineKind::accelerate;
        if (masters && e.at.file == file) return true;
    }
    for (const Function* f : program.functions()) {
        if (f->span.file != file) continue;
        for (const Call& c : f->calls)
            if (is_within(c.name.str(), "peft") || leaf(c.name.str()) == "requires_grad_") return true;
    }
    return false;
}

bool may_make_optimizer(std::string_view name) {
    return name.starts_with("torch.optim.") && !is_within(name, "torch.optim.lr_scheduler");
}

void check_optimizer(const RuleContext& context, TensorDTypes& dtypes, const std::vector<Engine>& engines,
                     const Function& f, const Call& call, Findings& out) {
    const Operand* parameters = argument(call, 0, "params");
    const Operand* module = parameters ? half_module(f, *parameters) : nullptr;
    if (!module) return;
    const TensorDType found = module->dtype != DType::unknown
                                  ? TensorDType{.dtype = module->dtype, .proven = true, .chain = {}}
                                  : dtypes.of(f, *module);
    if (!is_low_precision(found.dtype) || keeps_masters(context.program, engines, f.span.file)) return;
    const Operand* rate = argument(call, 1, "lr");
    const bool large = rate && number_of(*rate).value_or(0) >= kLargeRate;
    const bool certain = found.proven && !large && code_kind(f.span.file) == CodeKind::product;
    emit(context, f,
         {.rule = "MP501",
          .severity = certain ? error_if_proven(found.dtype) : Severity::warning,
          .span = call.span,
          .message = std::string(leaf(call.name.str())) + " updates " + std::string(label(found.dtype)) +
                     " parameters without fp32 master weights: a step below " + lost_below(found.dtype) +
                     " of a weight rounds away",
          .fix = "keep the parameters in fp32 and compute under autocast",
          .notes = found.chain,
          .function = {}},
         out);
}

// Trainer(precision="bf16-true"): the weights themselves are half, and so are their updates.
void check_engine(const RuleContext& context, const Engine& e, Findings& out) {
    const bool direct = e.kind == EngineKind::lightning || e.kind == EngineKind::fabric;
    if (!direct || !e.weights || !is_low_precision(e.dtype) || !e.function) return;
    emit(context, *e.function,
         {.rule = "MP501",
          .severity = Severity::warning,
          .span = e.at,
          .message = std::string(name_of(e.kind)) + " keeps the weights in " + std::string(label(e.dtype)) +
                     " and no fp32 copy: a step below " + lost_below(e.dtype) + " of a weight rounds away",
          .fix = "use the mixed precision of this dtype, which keeps fp32 weights",
          .notes = {},
          .function = {}},
         out);
}

void check_optimizers(const RuleContext& context, Findings& out) {
    const std::vector<Engine>& engines = engines_of(context);
    TensorDTypes dtypes(context);
    for_each_call(context.program, may_make_optimizer, [&](const Function& f, const Call& call) {
        if (code_kind(f.span.file) != CodeKind::test) check_optimizer(context, dtypes, engines, f, call, out);
    });
    for (const Engine& engine : engines) check_engine(context, engine, out);
}

void check(const RuleContext& context, Findings& out) {
    if (context.inference) return;
    check_optimizers(context, out);
    for_each(context, &Function::updates, [&](const Function& f, const Update& u) {
        if (!is_low_precision(u.dtype) || !u.subtracts || u.interpolates) return;
        if (u.has_master && !u.master_optional) return;
        if (!reads_a_gradient(f) || computes_statistics(f)) return;
        const Store store = rounding_of(context.program, u);
        if (store.rounding != Rounding::nearest) return;
        std::vector<Note> notes;
        if (store.in_helper)
            notes.push_back(
                {store.in_helper->span, std::string(u.through.str()) + " only rounds to nearest here"});
        emit(context, f,
             {.rule = "MP501",
              .severity = severity_of(f, u),
              .span = u.span,
              .message = message_of(u),
              .fix = "keep fp32 master weights, or round stochastically",
              .notes = std::move(notes),
              .function = {}},
             out);
    });
}

}  // namespace

extern constinit const Rule kHalfOptimizerUpdateWithoutMaster{.id = "MP501",
                                                              .name = "half-optimizer-update-without-master",
                                                              .severity = Severity::error,
                                                              .on_by_default = true,
                                                              .confirmed_by = "MPT040",
                                                              .triggers = {kLowDtypes, kRegions, kEngines},
                                                              .check = check};

}  // namespace mp::lint
