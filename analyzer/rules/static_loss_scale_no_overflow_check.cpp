// MP213 static-loss-scale-no-overflow-check
//
// What   The loss is multiplied by a constant and the gradients are divided by it, and nothing
//        looks whether they are finite.
// Why    One infinite gradient makes every weight it reaches NaN: a dynamic scaler would have
//        skipped the step and lowered the scale.
// Fix    A dynamic scaler, or a finite test before the step.
// Silent Functions that test for infinities, losses that are weighted and never divided back, code
//        without fp16.
// Tests  testdata/lint/MP213.md, tests/analyzer/rules/static_loss_scale_no_overflow_check_test.cpp

#include <algorithm>
#include <array>
#include <cmath>

#include "analyzer/rules/arguments.hpp"
#include "analyzer/rules/protocol.hpp"
#include "analyzer/rules/support.hpp"

namespace mp::lint {
namespace {

bool tests_finite(const Function& f) {
    constexpr std::array<std::string_view, 5> kTests{
        "isfinite", "isnan", "isinf", "_amp_foreach_non_finite_check_and_unscale_", "nan_to_num_"};
    return std::ranges::any_of(f.calls, [&](const Call& c) {
        return any_of(last_part(c.name.str()), kTests) || any_of(c.op.name(), kTests);
    });
}

// The constant factor of a product.
std::optional<double> factor_of(const Call& call) {
    const std::string_view leaf = last_part(call.name.str());
    if (leaf != "__mul__" && leaf != "mul" && leaf != "__rmul__" && leaf != "operator*")
        return std::nullopt;
    for (const Operand& a : call.args)
        if (const std::optional<double> number = number_of(a); number && *number >= 8)
            return number;
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
        const Call* product = source_call(f, *e.loss);
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

bool computes_in_fp16(const Protocol& protocol, const Function& f) {
    if (protocol.mask(f) & mask_of(EventKind::region)) return true;
    for (const Call& c : f.calls) {
        const Event e = protocol.roles().event(f, c);
        if (e.kind == EventKind::optimizer_step &&
            protocol.parameters_of(f, e.optimizer) == DType::fp16)
            return true;
    }
    return false;
}

void check(const RuleContext& context, Findings& out) {
    if (context.inference) return;
    const Protocol& protocol = protocol_of(context);
    for (const Function* f : context.program.functions()) {
        const EventMask mask = protocol.mask(*f);
        if (!(mask & mask_of(EventKind::backward)) || tests_finite(*f)) continue;
        const std::optional<Scaled> scaled = scaled_loss(protocol, *f);
        if (!scaled || !computes_in_fp16(protocol, *f)) continue;
        const Call* division = divided(*f, scaled->scale);
        if (!division) continue;
        emit(context, *f,
             {.rule = "MP213",
              .severity = Severity::warning,
              .span = scaled->product->span,
              .message =
                  "constant loss scale without a test for infinities: one overflow in an fp16 "
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
    .check = check};

}  // namespace mp::lint
