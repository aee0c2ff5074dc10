// MP201 missing-grad-scaler
//
// What   A loss from an fp16 region, or of a model with fp16 parameters, is differentiated and
//        stepped, and nothing scales it, or a GradScaler that a constant switches off.
// Why    Gradients below 6e-8 are zero in fp16: part of the model does not train.
// Fix    torch.amp.GradScaler around backward and step, or bf16.
// Silent bf16 and fp32; programs with a scaler or an engine that has one (Lightning, Accelerate,
//        DeepSpeed, the Trainers); a loss that is multiplied by hand; inference. A warning where
//        fp16 is one choice of several (a note where bf16 and fp32 are others), and for optimizer kernels,
//        where the factor of every fp16 gradient is followed to 1 and nothing in device code tests for infinities.
// Tests  testdata/lint/MP201.md, tests/analyzer/rules/missing_grad_scaler_test.cpp

#include <algorithm>
#include <array>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/engines.hpp"
#include "analyzer/analyses/loss_scales.hpp"
#include "analyzer/analyses/optimizer_parameters.hpp"
#include "analyzer/analyses/program_options.hpp"
#include "analyzer/analyses/protocol.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/region/calls.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

// scaler = GradScaler(), scaler.state_dict(): by themselves they scale nothing.
bool only_keeps_scaler(const Protocol& protocol, const Call& call) {
    return protocol.roles().makes_scaler(call) ||
           (call.kind == CallKind::method && reads_scaler_state(leaf(call.name.str())));
}

bool names_a_scaler(const Protocol& protocol, const Function& f) {
    const auto named = [&](const Operand& o) {
        const Call* made = call_of(f, o);
        if (made && only_keeps_scaler(protocol, *made)) return false;
        return mentions(o.name.str(), "scaler") || mentions(o.text.str(), "scaler");
    };
    for (const Parameter& p : f.params)
        if (mentions(p.name.str(), "scaler")) return true;
    return std::ranges::any_of(f.calls, [&](const Call& c) {
        if (only_keeps_scaler(protocol, c)) return false;
        return mentions(c.name.str(), "scaler") || std::ranges::any_of(c.args, named);
    });
}

bool may_be_scaled(const Protocol& protocol, const Violation& v) {
    return protocol.has_scaler_near(*v.at.function) || names_a_scaler(protocol, *v.at.function) ||
           names_a_scaler(protocol, *v.after.function);
}

// An engine of the same program scales for it.
bool has_engine(const Protocol& protocol, const std::vector<Engine>& engines, const Function& f) {
    const std::vector<Symbol>& files = protocol.files_near(f);
    return std::ranges::any_of(engines, [&](const Engine& e) {
        const bool scales = e.scales || e.kind == EngineKind::deepspeed || e.kind == EngineKind::apex ||
                            e.kind == EngineKind::hf_trainer;
        return scales && (!e.function || std::ranges::find(files, e.function->span.file) != files.end());
    });
}

struct Cause {
    Severity severity = Severity::warning;
    std::string message;
    Site region;
    std::vector<Note> chain;  // how the parameters became fp16
};

// bf16 if torch.cuda.is_bf16_supported() else fp16, on the devices that the project names.
bool is_bf16_on_its_devices(const RuleContext& context, const Function& opens) {
    return context.project.devices == Devices::with_bf16 &&
           std::ranges::any_of(opens.calls, [](const Call& call) {
               return last_part(call.name.str()) == "is_bf16_supported";
           });
}

// {"bfloat16": torch.bfloat16, "float16": torch.float16}[args.dtype], where nothing gives the option "float16".
bool is_never_chosen(const RuleContext& context, const Site& region) {
    const Function& f = *region.function;
    const Operand* const dtype = keyword_argument(region.call(), "dtype");
    const Call* const read = dtype ? call_of(f, *dtype) : nullptr;
    if (!read || !reads_entry(*read)) return false;
    constexpr std::array<std::string_view, 3> kSpellings{"float16", "fp16", "half"};
    return std::ranges::all_of(kSpellings, [&](std::string_view name) {
        return default_other_than(context, f, read->args[1], name).has_value();
    });
}

// Why the gradients are fp16; an empty message when that is not known.
Cause cause_of(const RuleContext& context, OptimizerParameters& parameters, const Violation& v) {
    const Protocol& protocol = protocol_of(context);
    if (v.before.known()) {
        const Event region = protocol.roles().event(*v.before.function, v.before.call());
        const bool is_note = region.by_option || is_bf16_on_its_devices(context, *v.before.function) ||
                             is_never_chosen(context, v.before);
        return {region.certain ? Severity::error
                : is_note      ? Severity::note
                               : Severity::warning,
                region.certain ? "backward of a loss from an fp16 autocast region without a loss scale: "
                                 "small gradients are zero"
                               : "backward without a loss scale of a loss whose autocast region can be "
                                 "fp16: small gradients are zero then",
                v.before,
                {}};
    }
    TensorDType is = parameters.of(*v.after.function, v.optimizer);
    if (is.dtype != DType::fp16) return {};
    // MP501 warns of parameters that a flag makes fp16.
    return {is.proven ? Severity::error : Severity::note,
            "backward of a model with fp16 parameters without a loss scale: small gradients "
            "are zero",
            {},
            std::move(is.chain)};
}

// Some kernel stores fp16 values times a number as large as loss scales are.
bool scales_what_it_stores(const RuleContext& context, const LossScales& scales) {
    constexpr double kSmallestScale = 8;
    bool found = false;
    for_each(context, &Function::scalings, [&](const Function& f, const Scaling& s) {
        if (found || !s.stored || s.dtype != DType::fp16) return;
        found = std::ranges::any_of(scales.of(f, s).values,
                                    [](const ScaleValue& v) { return v.value >= kSmallestScale; });
    });
    return found;
}

// An optimizer kernel whose factor for the gradients is 1 wherever it comes from: no scale is taken out,
// so none was put in.
void check_kernels(const RuleContext& context, Findings& out) {
    if (!has_scalings(context.program)) return;
    const LossScales scales(context.program);
    for_each(context, &Function::scalings, [&](const Function& f, const Scaling& s) {
        if (s.stored || !s.averages || s.dtype != DType::fp16) return;
        const ScaleValues factor = scales.of(f, s);
        if (!factor.is_one() || tests_finite(context.program, Code::device)) return;
        if (scales_what_it_stores(context, scales)) return;
        const auto one = std::ranges::find(factor.values, 1.0, &ScaleValue::value);
        emit(context, f,
             {.rule = "MP201",
              .severity = Severity::warning,
              .span = s.span,
              .message = "the optimizer reads fp16 gradients and takes no loss scale out of them: "
                         "gradients below 6e-8 are zero",
              .fix = "multiply the loss by a scale and the gradients here by its inverse, or keep "
                     "gradients in bf16",
              .notes = {{one->span, "the factor is 1 here"}},
              .function = {}},
             out);
    });
}

// Where the dtype of the region is written, when that is not the line of the region: ctx = autocast(..., dtype=...)
void add_dtype(std::vector<Note>& notes, const Site& region) {
    if (!region.known()) return;
    for (const Operand& o : region.call().args) {
        const bool elsewhere =
            o.span.line != region.call().span.line || o.span.file != region.call().span.file;
        if (o.keyword.str() == "dtype" && o.span.line != 0 && elsewhere)
            notes.push_back({o.span, "its dtype is given here"});
    }
}

void check(const RuleContext& context, Findings& out) {
    if (context.inference) return;
    check_kernels(context, out);
    const Protocol& protocol = protocol_of(context);
    const std::vector<Engine>& engines = engines_of(context);
    OptimizerParameters parameters(context);
    for (const Violation& v : violations_of(context, Defect::unscaled_training)) {
        Cause cause = cause_of(context, parameters, v);
        const Function& f = *v.at.function;
        if (cause.message.empty() || has_engine(protocol, engines, f)) continue;
        const bool is_off = !v.scaler.empty();
        // What switches the scaler off may close the region too.
        if (is_off ? cause.severity != Severity::error : may_be_scaled(protocol, v)) continue;
        Finding made{.rule = "MP201",
                     .severity = cause.severity,
                     .span = v.at.call().span,
                     .message = std::move(cause.message),
                     .fix = is_off ? "enable the GradScaler, or compute in bf16"
                                   : "scale the loss and let a GradScaler step, or compute in bf16",
                     .notes = std::move(cause.chain),
                     .function = {}};
        add_note(made.notes, cause.region, "the fp16 region opens here");
        add_dtype(made.notes, cause.region);
        add_note(made.notes, v.after,
                 is_off ? "the optimizer steps here, and the scaler is switched off where it is made"
                        : "the optimizer steps here");
        emit(context, f, std::move(made), out);
    }
}

}  // namespace

extern constinit const Rule kMissingGradScaler{.id = "MP201",
                                               .name = "missing-grad-scaler",
                                               .severity = Severity::error,
                                               .on_by_default = true,
                                               .confirmed_by = "",
                                               .triggers = {kLossScaling, kLowDtypes, kRegions, kEngines},
                                               .check = check};

}  // namespace mp::lint
