// MP208 scaler-with-bf16
//
// What   A scaler is enabled although every autocast region of the program is bf16.
// Why    bf16 has the range of fp32: there is nothing to scale. The scaler costs a synchronization
//        per step and can hide a real infinity as a skipped step.
// Fix    No scaler, or enabled=(dtype == torch.float16).
// Silent Scalers that depend on a flag, programs with any region that is or may be fp16.
// Tests  testdata/lint/MP208.md, tests/analyzer/rules/scaler_with_bf16_test.cpp

#include <algorithm>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/protocol.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

bool sets_dtype(std::string_view name) {
    return name.starts_with("at::autocast::set_autocast_") && name.ends_with("dtype");
}

bool enters_region(std::string_view name) { return name.ends_with("autocast.__enter__"); }

// bf16: a region, or the dtype of the regions to come; fp16 and unknown: anything else.
DType region_dtype(const Function& f, const Call& call) {
    if (sets_dtype(call.name.str())) {
        const std::string_view value = call.args.empty() ? "" : call.args.back().constant.str();
        return mentions(value, "bfloat16") || value == "kBFloat16" ? DType::bf16 : DType::fp16;
    }
    if (call.args.empty()) return DType::unknown;
    const Call* made = call_of(f, call.args[0]);
    const Operand* dtype = made ? argument(*made, 1, "dtype") : nullptr;
    return dtype && dtype->dtype == DType::bf16 ? DType::bf16 : DType::fp16;
}

struct Regions {
    SourceSpan bf16;
    bool other = false;
};

Regions regions_of(const RuleContext& context, const std::vector<Symbol>& files) {
    Regions found;
    const auto may_open = [](std::string_view name) { return sets_dtype(name) || enters_region(name); };
    for_each_call(context.program, may_open, [&](const Function& f, const Call& c) {
        if (std::ranges::find(files, f.span.file) == files.end()) return;
        const DType dtype = region_dtype(f, c);
        if (dtype == DType::bf16 && !found.bf16.known()) found.bf16 = c.span;
        if (dtype == DType::fp16) found.other = true;
    });
    return found;
}

void check(const RuleContext& context, Findings& out) {
    const Protocol& protocol = protocol_of(context);
    for (const MadeScaler& s : protocol.scalers()) {
        const bool python = s.function->kind == FunctionKind::python;
        if (python && s.enabled.always != Switch::on) continue;
        const Regions regions = regions_of(context, protocol.files_near(*s.function));
        if (!regions.bf16.known() || regions.other) continue;
        emit(context, *s.function,
             {.rule = "MP208",
              .severity = Severity::note,
              .span = s.call->span,
              .message = "the scaler is enabled, but every autocast region here is bf16, which needs no "
                         "loss scale",
              .fix = "drop the scaler, or enable it for fp16 only",
              .notes = {{regions.bf16, "a bf16 region"}},
              .function = {}},
             out);
    }
}

}  // namespace

extern constinit const Rule kScalerWithBf16{.id = "MP208",
                                            .name = "scaler-with-bf16",
                                            .severity = Severity::note,
                                            .on_by_default = false,
                                            .confirmed_by = "",
                                            .triggers = {kLossScaling, kRegions, kEngines},
                                            .check = check};

}  // namespace mp::lint
