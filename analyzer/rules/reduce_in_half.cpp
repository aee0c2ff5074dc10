// MP409 reduce-in-half
//
// What   Gradients or activations are summed or averaged across ranks in fp16, bf16 or fp8: NCCL,
//        MPI, torch.distributed, or an engine that is told so: FSDP's reduce_dtype, a compressing
//        hook of DDP, DeepSpeed's communication_data_type, Megatron's grad_reduce_in_fp32.
// Why    Each rank's addend rounds to the format, and a sum over ranks is as many times larger:
//        fp16 that is near 65504 on one rank is inf on two, and every rank then skips or diverges.
// Fix    Reduce in fp32, or divide by the number of ranks before the sum (fp16 range only, not its
//        bits).
// Silent Gather, broadcast, send: no arithmetic. Max and min. Sums of constants. Reductions that are not constants.
//        All of it in the inference profile. An error where the division provably comes after an fp16
//        sum; a note in Python for bf16, which has the range and only rounds, where the division
//        comes first, and for a policy that nothing takes or whose function only runs the model.
// Tests  testdata/lint/MP409.md, tests/analyzer/rules/reduce_in_half_test.cpp

#include <algorithm>
#include <array>

#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/module_dtypes.hpp"
#include "analyzer/analyses/numbers.hpp"
#include "analyzer/analyses/reduce_settings.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/region/calls.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

enum class Reduction { none, sum, average };

struct Collective {
    DType dtype = DType::unknown;
    Reduction reduction = Reduction::none;
    std::size_t buffer = 0;  // the argument that holds the result
};

DType nccl_dtype(std::string_view constant) {
    constexpr std::array<std::string_view, 3> kHalf{"ncclHalf", "ncclFloat16", "ncclfp16"};
    if (any_of(constant, kHalf)) return DType::fp16;
    if (constant == "ncclBfloat16") return DType::bf16;
    if (constant == "ncclFloat8e4m3") return DType::e4m3;
    if (constant == "ncclFloat8e5m2") return DType::e5m2;
    return DType::unknown;
}

// ncclAllReduce, ncclReduceScatter, ncclReduce: (send, receive, count, type, operation, ...).
Collective nccl(const Call& call) {
    constexpr std::array<std::string_view, 3> kNames{"ncclAllReduce", "ncclReduceScatter", "ncclReduce"};
    if (!any_of(leaf(call.name.str()), kNames) || call.args.size() < 5) return {};
    const std::string_view operation = leaf(call.args[4].constant.str());
    Collective c{.buffer = 1};
    c.dtype = nccl_dtype(leaf(call.args[3].constant.str()));
    if (operation == "ncclSum") c.reduction = Reduction::sum;
    if (operation == "ncclAvg") c.reduction = Reduction::average;
    return c;
}

// MPI has no half type of its own: the dtype is that of the buffer. (send, receive, count, type, operation,
// ...).
Collective mpi(const Call& call) {
    constexpr std::array<std::string_view, 6> kNames{
        "MPI_Allreduce", "MPI_Reduce", "MPI_Iallreduce", "MPI_Reduce_scatter", "MPI_Reduce_scatter_block",
        "MPI_Scan"};
    if (!any_of(leaf(call.name.str()), kNames) || call.args.size() < 5) return {};
    const Operand& operation = call.args[4];
    const bool sums =
        mentions(operation.constant.str(), "MPI_SUM") || mentions(operation.text.str(), "MPI_SUM");
    const DType dtype = is_low_precision(call.args[1].dtype) ? call.args[1].dtype : call.args[0].dtype;
    return {.dtype = dtype, .reduction = sums ? Reduction::sum : Reduction::none, .buffer = 1};
}

// c10d: ProcessGroup::allreduce(tensors, options); its default operation is a sum.
Collective c10d(const Function& f, const Call& call, const Program& program) {
    constexpr std::array<std::string_view, 4> kNames{"allreduce", "reduce_scatter", "_reduce_scatter_base",
                                                     "reduce"};
    if (!is_within(call.name.str(), "c10d") || !any_of(leaf(call.name.str()), kNames)) return {};
    for (const Operand& argument : call.args)
        for (const std::string_view other : {"MAX", "MIN", "BAND", "BOR"})
            if (leaf(argument.constant.str()) == other) return {};
    for (std::size_t i = 0; i < call.args.size(); ++i) {
        const DType dtype = program.dtype_of(f, call.args[i]).dtype;
        if (is_low_precision(dtype)) return {.dtype = dtype, .reduction = Reduction::sum, .buffer = i};
    }
    return {};
}

// torch.distributed.all_reduce(tensor, op), reduce_scatter_tensor(out, in, op), reduce(tensor, dst, op):
// the default operation is a sum.
Collective distributed(const Function& f, const Call& call, ModuleDTypes& modules) {
    constexpr std::array<std::string_view, 3> kOps{"all_reduce", "reduce_scatter", "reduce"};
    if (!is_within(call.name.str(), "torch.distributed") || !any_of(call.op.name(), kOps) ||
        call.args.empty())
        return {};
    Collective c{.reduction = Reduction::sum, .buffer = 0};
    for (const Operand& value : call.args) {
        const std::string_view named = value.constant.empty() ? value.name.str() : value.constant.str();
        if (!mentions(named, "ReduceOp.")) {
            if (value.keyword.str() == "op") return {};
            continue;
        }
        if (leaf(named) == "AVG")
            c.reduction = Reduction::average;
        else if (leaf(named) != "SUM")
            return {};
    }
    const TensorDType is = modules.of_tensor(f, call.args.front(), call);
    if (is.proven && !is.output) c.dtype = is.dtype;
    return c;
}

// The names of all of the above.
bool may_reduce(std::string_view name) {
    return is_within(name, "torch.distributed") || is_within(name, "c10d") ||
           leaf(name).starts_with("nccl") || leaf(name).starts_with("MPI_");
}

// A sum of ones counts ranks, and one that warms up a process group has a constant of its own.
bool is_constant_buffer(const Function& f, const Operand& buffer) {
    constexpr std::array<std::string_view, 5> kFactories{"torch.Tensor", "torch.tensor", "torch.ones",
                                                         "torch.zeros", "torch.full"};
    const auto is_conversion = [](const Call& c) {
        constexpr std::array<std::string_view, 5> kNames{"half", "bfloat16", "to", "cuda", "type"};
        return any_of(leaf(c.name.str()), kNames);
    };
    const Call* made = producer(f, buffer);
    while (made && is_conversion(*made) && !made->args.empty()) made = producer(f, made->args[0]);
    if (!made || !any_of(made->name.str(), kFactories) || made->args.empty()) return false;
    const Operand& value = made->args[0];
    if (made->name.str() != "torch.Tensor" && made->name.str() != "torch.tensor") return true;
    const Call* list = producer(f, value);
    if (!list) return !value.constant.empty();
    return leaf(list->name.str()) == "list" &&
           std::ranges::all_of(list->args, [](const Operand& o) { return !o.constant.empty(); });
}

// The result is divided, or multiplied, in place after the collective: the sum came first.
const Call* divides_after(const Function& f, const Call& collective, const Operand& buffer) {
    bool after = false;
    for (const Call& call : f.calls) {
        if (&call == &collective) {
            after = true;
            continue;
        }
        const bool scales = call.op.name() == "div" || call.op.name() == "mul";
        if (after && scales && !call.args.empty() && same_value(call.args[0], buffer)) return &call;
    }
    return nullptr;
}

bool divides_before(const Function& f, const Call& collective, const Operand& buffer) {
    const auto scales = [](const Call& call) { return call.op.name() == "div" || call.op.name() == "mul"; };
    const Call* made = producer(f, buffer);
    if (made && scales(*made)) return true;
    for (const Call& call : f.calls) {
        if (&call == &collective) return false;
        if (scales(call) && !call.args.empty() && same_value(call.args[0], buffer)) return true;
    }
    return false;
}

Severity severity_of(const Function& f, const Collective& c, bool divided) {
    return is_python(f) && only_rounds(c.dtype, divided) ? Severity::note : Severity::warning;
}

std::string message_of(const Call& call, const Collective& c) {
    std::string text = std::string(leaf(call.name.str())) + " " +
                       (c.reduction == Reduction::average ? "averages" : "sums") + " across ranks in " +
                       std::string(label(c.dtype)) + ": every addition rounds to " +
                       std::to_string(significant_bits(c.dtype)) + " bits";
    if (c.dtype != DType::bf16)
        text += ", and a total from " + shown(overflows_from(c.dtype)) + " on overflows on every rank";
    return text;
}

void check(const RuleContext& context, Findings& out) {
    if (context.inference) return;
    ModuleDTypes modules(context);
    reduced_by_setting(context, out);
    for_each_call(context.program, may_reduce, [&](const Function& f, const Call& call) {
        Collective c = is_python(f) ? distributed(f, call, modules) : nccl(call);
        if (c.reduction == Reduction::none) c = mpi(call);
        if (c.reduction == Reduction::none) c = c10d(f, call, context.program);
        if (c.reduction == Reduction::none || !is_low_precision(c.dtype)) return;
        const Operand& buffer = call.args[c.buffer];
        if (is_python(f) && is_constant_buffer(f, buffer)) return;
        const Call* later = divides_after(f, call, buffer);
        const bool divided = divides_before(f, call, buffer);
        const bool sum_first = c.dtype == DType::fp16 && c.reduction == Reduction::sum && later && !divided;
        std::vector<Note> notes;
        if (sum_first) notes.push_back({later->span, "the sum is divided only here"});
        emit(context, f,
             {.rule = "MP409",
              .severity = sum_first ? Severity::error : severity_of(f, c, divided),
              .span = call.span,
              .message = message_of(call, c),
              .fix = "reduce in fp32; if the bandwidth must stay, divide by the number of ranks "
                     "before the sum",
              .notes = std::move(notes),
              .function = {}},
             out);
    });
}

constexpr std::array<std::string_view, 1> kOwnTriggers{".all_reduce("};

}  // namespace

extern constinit const Rule kReduceInHalf{
    .id = "MP409",
    .name = "reduce-in-half",
    .severity = Severity::error,
    .on_by_default = true,
    .confirmed_by = "MPT050",
    .triggers = {kLowDtypes, kRegions, kEngines, kConfigurationFiles, kOwnTriggers},
    .check = check};

}  // namespace mp::lint
