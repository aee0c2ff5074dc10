// MP122 op-without-half-kernel
//
// What   An op of which PyTorch has no kernel for fp16 or bf16 gets such a tensor: solvers, decompositions and
//        determinants in both, transforms and complex numbers in bf16.
// Why    It raises: "Low precision dtypes not supported", "not implemented for 'Half'". Autocast does not help,
//        because these ops are on none of its lists.
// Fix    Upcast the operand.
// Silent Ops on the region's list, calls that ask for fp32, tensors of unknown dtype, devices with kernels of their
//        own, what a model returns whose code is not known (its last op may have cast it).
// Tests  testdata/lint/MP122.md, tests/analyzer/rules/op_without_half_kernel_test.cpp
//
// The ops are those that kernels/numerics/policies/ops.txt marks; a test asks an installed PyTorch for each of them.

#include "analyzer/analyses/low_operands.hpp"
#include "analyzer/analyses/module_dtypes.hpp"
#include "analyzer/analyses/regions.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/trials.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

bool may_lack_kernel(std::string_view op) { return lacks_kernel(op, DType::bf16); }

bool is_of_torch(const Context& region) {
    return region.device.empty() || region.device.str() == "cuda" || region.device.str() == "cpu";
}

Severity severity_of(const RuleContext& context, const TensorDType& is, const Context* region) {
    if (region && is_opened_by_a_trial(context, *region)) return Severity::note;
    if (!is.proven) return region ? Severity::warning : Severity::note;
    return region && !region->proven ? Severity::warning : error_if_proven(is.dtype);
}

void check_call(const RuleContext& context, TensorDTypes& dtypes, const Function& f, const Call& call,
                Findings& out) {
    if (asks_for_fp32(f, call)) return;
    LowOperand low = low_operand(dtypes, f, call);
    if (!low.operand || low.is.output || !lacks_kernel(call.op.name(), low.is.dtype)) return;
    const Context* region = context.program.enabled_context(f, call);
    if (region && (!is_of_torch(*region) || !is_unprotected(context, *region, call))) return;
    std::vector<Note> notes;
    if (region) notes = notes_of(*region);
    add_new(notes, low.is.chain);
    const std::string dtype(label(low.is.dtype));
    emit(context, f,
         {.rule = "MP122",
          .severity = severity_of(context, low.is, region),
          .span = call.span,
          .message = std::string(call.op.name()) + " gets " + dtype +
                     (region ? " in " + describe(*region) : "") + ": PyTorch has no kernel of it for " +
                     dtype + ", and raises",
          .fix = std::string("upcast the operand ") + (is_python(f) ? "(.float())" : "(.to(torch::kFloat))"),
          .notes = std::move(notes),
          .function = {}},
         out);
}

void check(const RuleContext& context, Findings& out) {
    ModuleDTypes modules(context, DTypeOf::output);
    for_each_op(context.program, may_lack_kernel, [&](const Function& f, const Call& call) {
        check_call(context, modules.tensors(), f, call, out);
    });
}

}  // namespace

extern constinit const Rule kOpWithoutHalfKernel{.id = "MP122",
                                                 .name = "op-without-half-kernel",
                                                 .severity = Severity::error,
                                                 .on_by_default = true,
                                                 .confirmed_by = "",
                                                 .triggers = {kLowDtypes, kRegions, kEngines},
                                                 .check = check};

}  // namespace mp::lint
