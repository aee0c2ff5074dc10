// MP202 backward-unscaled
//
// What   A scaler steps the optimizer, but the loss did not go through scaler.scale(): all of it,
//        or one loss of two. In manual optimization of Lightning, under Accelerate and with a
//        DeepSpeed engine in fp16, loss.backward() instead of the engine's own is the same.
// Why    scaler.step divides the gradients by the scale, 65536 at first. Adam hides it, SGD stops
//        moving, and with two losses one weighs 65536 times less than it should.
// Fix    scaler.scale(loss).backward(); self.manual_backward(loss); accelerator.backward(loss);
//        engine.backward(loss).
// Silent Disabled scalers; the branch without a scaler; a loss that comes from elsewhere and may be
//        scaled there; the branch without Accelerate; DeepSpeed in bf16, or with a precision that no
//        configuration file sets.
// Tests  testdata/lint/MP202.md, tests/analyzer/rules/backward_unscaled_test.cpp

#include <algorithm>

#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/engines.hpp"
#include "analyzer/analyses/protocol.hpp"
#include "analyzer/analyses/python_code.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

bool is_method_of_loss(const Call& call) {
    return call.kind == CallKind::method && last_part(call.name.str()) == "backward" && !call.args.empty() &&
           !call.args[0].name.empty();
}

// loss -> scaler.scale(loss)
std::vector<Edit> wrapped(const Operand& loss, const std::string& by) {
    SourceSpan before = loss.span, after = loss.span;
    before.end_line = before.line;
    before.end_column = before.column;
    after.line = after.end_line;
    after.column = after.end_column;
    return {{before, by + "("}, {after, ")"}};
}

struct Owner {
    std::string name;
    std::string method;    // for the user
    std::string callable;  // for the fix, when the object's name is known
    Severity severity = Severity::warning;
    SourceSpan at;
    Symbol runs{};  // only losses that this object computes; empty: all
};

bool calls(const Function& f, std::string_view leaf) {
    return std::ranges::any_of(f.calls, [&](const Call& c) { return last_part(c.name.str()) == leaf; });
}

// What it computes in decides: with fp16 the scale is lost, with bf16 or fp32 there is none.
bool judge(Owner& owner, const Engine* engine) {
    if (engine && engine->dtype != DType::unknown && engine->dtype != DType::fp16) return false;
    if (engine && engine->dtype == DType::fp16 && engine->scales) owner.severity = Severity::error;
    if (engine) owner.at = engine->at;
    return true;
}

constexpr std::string_view kDeepSpeed = "deepspeed.DeepSpeedEngine";

// The engine that steps in this function, when every configuration of the program sets fp16: with
// another precision there is no scale that a loss could miss.
Owner deepspeed_owner(const Protocol& protocol, const std::vector<Engine>& engines, const Function& f) {
    const auto step = std::ranges::find_if(f.calls, [](const Call& c) {
        return owner_of(c.name.str()) == kDeepSpeed && last_part(c.name.str()) == "step";
    });
    const Engine* engine = find_engine(engines, EngineKind::deepspeed);
    if (!engine || step == f.calls.end() || step->args.empty()) return {};
    const bool fp16 = std::ranges::all_of(
        engines, [](const Engine& e) { return e.kind != EngineKind::deepspeed || e.dtype == DType::fp16; });
    if (!fp16 || (protocol.mask(f) & mask_of(EventKind::scale))) return {};
    const std::string callable = std::string(step->args[0].name.str()) + ".backward";
    Owner owner{"DeepSpeed", callable, callable, {}, {}, step->args[0].name};
    owner.severity = Severity::warning;
    return judge(owner, engine) ? owner : Owner{};
}

// The loss comes out of a forward of this object, and nothing has scaled it on the way.
bool is_computed_by(const Function& f, const Operand& loss, Symbol object) {
    const Call* from = origin(f, loss, [&](const Call& call) {
        const std::string_view method = last_part(call.name.str());
        return !call.args.empty() && call.args[0].name == object &&
               (method == "forward" || method == "__call__" || method == "scale");
    });
    return from && last_part(from->name.str()) != "scale";
}

// self.optimizers() is what manual optimization of Lightning asks for.
Owner owner_of_backward(const Protocol& protocol, const std::vector<Engine>& engines, const Function& f) {
    const bool is_module =
        std::ranges::any_of(f.bases, [](Symbol b) { return last_part(b.str()) == "LightningModule"; });
    if (is_module && calls(f, "optimizers")) {
        Owner owner{"Lightning", "self.manual_backward", "self.manual_backward", {}, {}, {}};
        owner.severity = Severity::warning;
        return judge(owner, find_engine(engines, EngineKind::lightning)) ? owner : Owner{};
    }
    if (Owner owner = deepspeed_owner(protocol, engines, f); !owner.method.empty()) return owner;
    const Engine* engine = find_engine(engines, EngineKind::accelerate);
    if (!engine || !engine->call || engine->function->span.file != f.span.file) return {};
    if ((protocol.mask(f) & mask_of(EventKind::scale)) || !calls(f, "prepare")) return {};
    const std::string name(engine->call->result.name.str());
    Owner owner{"Accelerate", "accelerator.backward", name.empty() ? "" : name + ".backward", {}, {}, {}};
    owner.severity = Severity::warning;
    return judge(owner, engine) ? owner : Owner{};
}

void check_scalers(const RuleContext& context, Findings& out) {
    for (const Violation& v : violations_of(context, Defect::plain_backward)) {
        const std::string name = shown(protocol_of(context).scaler_in(*v.at.function), "the scaler");
        Finding made{.rule = "MP202",
                     .severity = Severity::error,
                     .span = v.at.call().span,
                     .message = "backward of a loss that " + name + " did not scale, but " + name +
                                " divides its gradients by the loss scale before the step",
                     .fix = "call backward on scale(loss) of the scaler",
                     .notes = {},
                     .function = {}};
        add_note(made.notes, v.before, "the scaler steps here");
        add_note(made.notes, v.after, "this loss is scaled");
        const Call& call = v.at.call();
        const Symbol scaler = protocol_of(context).scaler_in(*v.at.function);
        if (!scaler.empty() && !call.args.empty() && call.args[0].span.known() &&
            v.at.function->kind == FunctionKind::python && is_method_of_loss(call))
            made.edits = wrapped(call.args[0], std::string(scaler.str()) + ".scale");
        emit(context, *v.at.function, std::move(made), out);
    }
}

// `if accelerator: accelerator.backward(loss)`, `else: loss.backward()`: the branch without the engine.
bool is_without_engine(const Function& f, const Call& plain) {
    return is_conditional(f, plain.block) && std::ranges::any_of(f.calls, [&](const Call& call) {
               return &call != &plain && call.block != plain.block && call.args.size() == 2 &&
                      last_part(call.name.str()) == "backward" && call.args[1].name == plain.args[0].name;
           });
}

// An engine that scales by itself has its own backward.
void check_engines(const RuleContext& context, Findings& out) {
    const Protocol& protocol = protocol_of(context);
    const std::vector<Engine>& engines = engines_of(context);
    for (const Function* f : context.program.functions()) {
        if (!(protocol.mask(*f) & mask_of(EventKind::backward))) continue;
        const Owner owner = owner_of_backward(protocol, engines, *f);
        if (owner.method.empty()) continue;
        for (const Call& c : f->calls) {
            const Event e = protocol.roles().event(*f, c);
            if (e.kind != EventKind::backward || !is_method_of_loss(c) || is_without_engine(*f, c)) continue;
            if (!owner.runs.empty() && !is_computed_by(*f, c.args[0], owner.runs)) continue;
            Finding made{.rule = "MP202",
                         .severity = owner.severity,
                         .span = c.span,
                         .message = "loss.backward() past " + owner.name +
                                    ": the loss is not multiplied by its loss scale",
                         .fix = "call " + owner.method + "(loss)",
                         .notes = {},
                         .function = {}};
            if (owner.at.known()) made.notes.push_back({owner.at, owner.name + " is set up here"});
            const Operand& loss = c.args[0];
            if (loss.span.known() && c.args.size() == 1 && !owner.callable.empty())
                made.edits = {{c.span, owner.callable + "(" + std::string(loss.text.str()) + ")"}};
            emit(context, *f, std::move(made), out);
        }
    }
}

void check(const RuleContext& context, Findings& out) {
    check_scalers(context, out);
    check_engines(context, out);
}

}  // namespace

extern constinit const Rule kBackwardUnscaled{.id = "MP202",
                                              .name = "backward-unscaled",
                                              .severity = Severity::error,
                                              .on_by_default = true,
                                              .confirmed_by = "",
                                              .triggers = {kLossScaling, kLowDtypes, kRegions, kEngines},
                                              .check = check};

}  // namespace mp::lint
