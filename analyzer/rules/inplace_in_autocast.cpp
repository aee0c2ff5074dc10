// MP116 inplace-in-autocast
//
// What   Inside a region: an op of the low-precision list in its in-place or out= form on inputs of
//        several dtypes, or an fp32 value added in place to a half tensor.
// Why    Autocast does not wrap in-place forms. addmm_ raises on mixed inputs; `half += fp32` is rounded
//        to half at every addition.
// Fix    The out-of-place form, with an fp32 accumulator.
// Silent In-place ops on an fp32 destination, relu_ and the like, values whose dtype is not known. A note where one
//        addition rounds once: no loop repeats it on what was there before.
// Tests  testdata/lint/MP116.md, tests/analyzer/rules/inplace_in_autocast_test.cpp

#include <algorithm>
#include <array>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/control_flow.hpp"
#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/regions.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/tensor_dtypes.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

bool can_be_tensor(const Operand& value) {
    return value.shape == Shape::tensor || (value.shape == Shape::other && value.constant.empty());
}

// MP404 has index_add_.
constexpr std::array<std::string_view, 7> kAdditions{"__iadd__",   "__isub__",   "add_",    "sub_",
                                                     "operator+=", "operator-=", "addcmul_"};

bool adds_in_place(const Call& call) {
    return any_of(leaf(call.name.str()), kAdditions) && call.args.size() > 1;
}

// A loop adds to a value from before it.
bool adds_again(const Function& f, const Call& call) {
    const ControlFlow flow(f);
    const Call* made = producer(f, call.args[0]);
    return flow.is_in_loop(call.block) && (!made || !flow.is_in_loop(made->block));
}

bool writes_out(const Call& call) {
    return call.in_place || keyword_argument(call, "out") || leaf(call.name.str()).ends_with("_out");
}

struct Inputs {
    TensorDType low;
    bool has_low = false, has_wide = false;
};

Inputs inputs_of(TensorDTypes& dtypes, const Function& f, const Call& call) {
    Inputs inputs;
    for (const Operand& value : call.args) {
        if (!can_be_tensor(value)) continue;
        TensorDType is = dtypes.of(f, value);
        if (is_wide(is.dtype)) inputs.has_wide = true;
        if (!is_low_precision(is.dtype)) continue;
        inputs.has_low = true;
        inputs.low = std::move(is);
    }
    return inputs;
}

std::string message_of(TensorDTypes& dtypes, const RuleContext& context, const Function& f, const Call& call,
                       const Context& region) {
    if (adds_in_place(call)) {
        const TensorDType target = dtypes.of(f, call.args[0]);
        const Operand& value = call.args.back();
        if (!is_low_precision(target.dtype) || !can_be_tensor(value) || !is_wide(dtypes.of(f, value).dtype))
            return {};
        return "fp32 values are added in place to" + quoted(naming(call.args[0])) + ", which is " +
               std::string(label(target.dtype)) + ": every addition is rounded to it";
    }
    const Policy* policy = policy_of(context, region);
    if (!policy || !writes_out(call) || policy->category(call.op) != Category::lower) return {};
    const Inputs inputs = inputs_of(dtypes, f, call);
    if (!inputs.has_low || !inputs.has_wide) return {};
    return "the in-place form of " + std::string(call.op.name()) + " is not wrapped by " + describe(region) +
           ": it raises on " + std::string(label(inputs.low.dtype)) + " beside fp32";
}

void check_call(const RuleContext& context, TensorDTypes& dtypes, const Function& f, const Call& call,
                Findings& out) {
    const Context* region = context.program.enabled_context(f, call);
    if (!region || (!adds_in_place(call) && !writes_out(call))) return;
    std::string message = message_of(dtypes, context, f, call, *region);
    if (message.empty()) return;
    const bool once = adds_in_place(call) && !adds_again(f, call);
    emit(context, f,
         {.rule = "MP116",
          .severity = once ? Severity::note : Severity::warning,
          .span = call.span,
          .message = std::move(message),
          .fix = "use the out-of-place form, with an fp32 accumulator",
          .notes = notes_of(*region),
          .function = {}},
         out);
}

void check(const RuleContext& context, Findings& out) {
    TensorDTypes dtypes(context);
    // Calls other than additions are judged by the category of their op.
    const auto any_op = [](std::string_view) { return true; };
    for_each_call_or_op(
        context.program, last_part_in(kAdditions), any_op,
        [&](const Function& f, const Call& call) { check_call(context, dtypes, f, call, out); });
}

}  // namespace

extern constinit const Rule kInplaceInAutocast{.id = "MP116",
                                               .name = "inplace-in-autocast",
                                               .severity = Severity::warning,
                                               .on_by_default = true,
                                               .confirmed_by = "MPT060",
                                               .triggers = {kLowDtypes, kRegions, kEngines},
                                               .check = check};

}  // namespace mp::lint
