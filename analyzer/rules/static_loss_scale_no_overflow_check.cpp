// MP213 static-loss-scale-no-overflow-check
//
// What   The loss is multiplied by a constant and the gradients are divided by it, and nothing
//        looks whether they are finite.
// Why    One infinite gradient makes every weight it reaches NaN: a dynamic scaler would have
//        skipped the step and lowered the scale.
// Fix    A dynamic scaler, or a finite test before the step.
// Silent Functions that test for infinities, losses that are weighted and never divided back, code
//        without fp16. Kernels: any finite test in the program; a scale that is not followed to one number
//        both where an fp16 gradient is stored and where an optimizer divides it back.
// Tests  testdata/lint/MP213.md, tests/analyzer/rules/static_loss_scale_no_overflow_check_test.cpp

#include <algorithm>
#include <cmath>

#include "analyzer/analyses/loss_scales.hpp"
#include "analyzer/analyses/numbers.hpp"
#include "analyzer/analyses/optimizer_parameters.hpp"
#include "analyzer/analyses/protocol.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/region/calls.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

// The constant factor of a product.
std::optional<double> factor_of(const Call& call) {
    const std::string_view leaf = last_part(call.name.str());
    if (leaf != "__mul__" && leaf != "mul" && leaf != "__rmul__" && leaf != "operator*") return std::nullopt;
    for (const Operand& a : call.args)
        if (const std::optional<double> number = number_of(a); number && *number >= 8) return number;
    return std::nullopt;
}

struct Scaled {
    const Call* product = nullptr;
    const Call* backward = nullptr;
    double scale = 0;
};

std::optional<Scaled> scaled_loss(const Protocol& protocol, const Function& f) {
    for (const Call& c : f.calls) {
        const Event e = protocol.roles().event(f, c);
        if (e.kind != EventKind::backward || !e.loss) continue;
        const Call* product = call_of(f, *e.loss);
        const std::optional<double> scale = product ? factor_of(*product) : std::nullopt;
        if (scale) return Scaled{product, &c, *scale};
    }
    return std::nullopt;
}

// The gradients are divided by the same constant, or multiplied by its inverse.
const Call* divided(const Function& f, double scale) {
    for (const Call& c : f.calls) {
        const std::string_view leaf = last_part(c.name.str());
        const bool divides = leaf == "div_" || leaf == "__itruediv__" || leaf == "operator/=";
        const bool multiplies = leaf == "mul_" || leaf == "__imul__" || leaf == "operator*=";
        if ((!divides && !multiplies) || c.args.size() < 2 || !is_gradient(f, c.args[0])) continue;
        const std::optional<double> by = number_of(c.args[1]);
        if (by && std::abs((divides ? *by : 1 / *by) - scale) < scale * 1e-6) return &c;
    }
    return nullptr;
}

bool computes_in_fp16(const Protocol& protocol, OptimizerParameters& parameters, const Function& f) {
    if (protocol.mask(f) & mask_of(EventKind::region)) return true;
    for (const Call& c : f.calls) {
        const Event e = protocol.roles().event(f, c);
        if (e.kind == EventKind::optimizer_step && parameters.of(f, e.optimizer).dtype == DType::fp16)
            return true;
    }
    return false;
}

// Kernels: a number that fp16 gradients are multiplied by when they are stored, and by whose inverse an
// optimizer multiplies what it reads.
constexpr double kSmallestScale = 8;

struct KernelScale {
    ScaleValue value;
    const Scaling* at = nullptr;
};

std::vector<KernelScale> kernel_scales(const RuleContext& context, const LossScales& scales, bool stored) {
    std::vector<KernelScale> out;
    for_each(context, &Function::scalings, [&](const Function& f, const Scaling& s) {
        if (s.dtype != DType::fp16 || s.stored != stored) return;
        for (ScaleValue& v : scales.of(f, s).values) {
            if (!stored) v.value = 1 / v.value;
            if (v.value >= kSmallestScale) out.push_back({v, &s});
        }
    });
    return out;
}

void check_kernels(const RuleContext& context, Findings& out) {
    if (!has_scalings(context.program)) return;
    const LossScales scales(context.program);
    const std::vector<KernelScale> read = kernel_scales(context, scales, false);
    if (read.empty() || tests_finite(context.program, Code::any)) return;
    const std::vector<KernelScale> stored = kernel_scales(context, scales, true);
    std::vector<SourceSpan> reported;
    for (const KernelScale& r : read) {
        const auto w = std::ranges::find_if(stored, [&](const KernelScale& s) {
            return std::abs(s.value.value - r.value.value) < r.value.value * 1e-6;
        });
        if (w == stored.end() || std::ranges::count(reported, r.value.span)) continue;
        reported.push_back(r.value.span);
        emit(context, *r.value.function,
             {.rule = "MP213",
              .severity = Severity::warning,
              .span = r.value.span,
              .message = "constant loss scale " + shown(r.value.value) +
                         " without a test for infinities: one overflow in an fp16 gradient reaches "
                         "the weights",
              .fix = "skip the step when a gradient is not finite, and lower the scale then",
              .notes = {{w->at->span, "the gradient is scaled here"},
                        {r.at->span, "the optimizer takes the scale out here"}},
              .function = {}},
             out);
    }
}

void check(const RuleContext& context, Findings& out) {
    if (context.inference) return;
    check_kernels(context, out);
    const Protocol& protocol = protocol_of(context);
    OptimizerParameters parameters(context);
    for (const Function* f : context.program.functions()) {
        const EventMask mask = protocol.mask(*f);
        if (!(mask & mask_of(EventKind::backward)) || tests_finite(*f)) continue;
        const std::optional<Scaled> scaled = scaled_loss(protocol, *f);
        if (!scaled || !computes_in_fp16(protocol, parameters, *f)) continue;
        const Call* division = divided(*f, scaled->scale);
        if (!division) continue;
        emit(context, *f,
             {.rule = "MP213",
              .severity = Severity::warning,
              .span = scaled->product->span,
              .message = "constant loss scale without a test for infinities: one overflow in an fp16 "
                         "gradient reaches the weights",
              .fix = "use a GradScaler, or skip the step when a gradient is not finite",
              .notes = {{division->span, "the gradients are divided here"}},
              .function = {}},
             out);
    }
}

}  // namespace

extern constinit const Rule kStaticLossScaleNoOverflowCheck{
    .id = "MP213",
    .name = "static-loss-scale-no-overflow-check",
    .severity = Severity::warning,
    .on_by_default = true,
    .confirmed_by = "",
    .triggers = {kLossScaling, kLowDtypes, kRegions, kEngines},
    .check = check};

}  // namespace mp::lint
