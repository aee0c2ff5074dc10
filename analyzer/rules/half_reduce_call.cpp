// MP402 half-reduce-call
//
// What   A library reduction (cub, thrust, the standard library, cooperative groups) sums in fp16,
//        bf16 or fp8, because its element or initial value has that type.
// Why    These libraries accumulate in the type they are given: std::accumulate with a half zero
//        over 5000 ones gives 2048.
// Fix    Give it a float: cub::BlockReduce<float, N>, an initial value of 0.f, a float output.
// Silent Reductions whose initial value or output is float; max, min and arg reductions; operators
//        that are not known to add. The user's own warp or block sums are MP401 where they add.
// Tests  testdata/lint/MP402.md, tests/analyzer/rules/half_reduce_call_test.cpp

#include <algorithm>
#include <array>

#include "analyzer/analyses/numbers.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

enum class Combines { sum, other, unknown };

// What the operator of a reduction does, from the type of the functor: cub::Sum, thrust::plus<T>,
// cooperative_groups::greater<T>. A lambda is unknown.
Combines combines(const Call& call) {
    constexpr std::array<std::string_view, 4> kOthers{"max", "min", "greater", "less"};
    constexpr std::array<std::string_view, 3> kOthersToo{"multiplies", "bit_", "logical_"};
    Combines found = Combines::unknown;
    const auto look = [&](std::string_view text) {
        const auto has = [&](std::string_view part) { return mentions(text, part); };
        if (std::ranges::any_of(kOthers, has) || std::ranges::any_of(kOthersToo, has))
            found = Combines::other;
        else if (has("plus") || has("cub::Sum"))
            found = Combines::sum;
    };
    for (const TemplateArgument& argument : call.template_args) look(argument.text.str());
    for (const Operand& argument : call.args)
        if (argument.shape == Shape::object || argument.shape == Shape::other) look(argument.text.str());
    return found;
}

// Whether a functor of the program adds its two arguments: struct Add { T operator()(T a, T b) ... }.
bool adds(const Function& f) {
    if (leaf(f.name.str()) != "operator()" || f.returned.size() != 1) return false;
    const std::int32_t made = f.returned.front().call;
    if (made == kNone) return false;
    const Call& sum = f.calls[static_cast<std::size_t>(made)];
    return sum.op.name() == "add" && sum.args.size() == 2 && sum.args[0].param != kNone &&
           sum.args[1].param != kNone && sum.args[0].param != sum.args[1].param;
}

bool adds_with_functor(const Program& program, const Call& call) {
    for (const TemplateArgument& argument : call.template_args) {
        const std::string_view text = argument.text.str();
        const std::string_view name = text.substr(0, text.find('<'));
        if (argument.shape != Shape::object || name.empty()) continue;
        for (const Function* f : program.functions())
            if (f->parent_class.str() == name && adds(*f)) return true;
    }
    return false;
}

bool is_callable(const Operand& value) {
    return (value.shape == Shape::object || value.shape == Shape::other) && value.dtype == DType::unknown;
}

DType low_template_argument(const Call& call) {
    const auto low = std::ranges::find_if(call.template_args, is_low_precision, &TemplateArgument::dtype);
    return low == call.template_args.end() ? DType::unknown : low->dtype;
}

// cub::BlockReduce<T, N>(temp).Sum(x), WarpReduce, BlockScan ...: the class's T is the accumulator.
DType cub_collective(const Program& program, const Call& call) {
    const std::string_view name = leaf(call.name.str());
    const bool sums = name == "Sum" || name == "InclusiveSum" || name == "ExclusiveSum" ||
                      name == "HeadSegmentedSum" || name == "TailSegmentedSum";
    const bool reduces = name == "Reduce" || name == "InclusiveScan" || name == "ExclusiveScan";
    const DType low = sums || reduces ? low_template_argument(call) : DType::unknown;
    if (sums || low == DType::unknown) return low;
    const Combines operation = combines(call);
    const bool adds =
        operation == Combines::sum || (operation == Combines::unknown && adds_with_functor(program, call));
    return adds ? low : DType::unknown;
}

// cub::DeviceReduce::Sum(temp, bytes, in, out, n, ...): half only when input and output both are,
// because the accumulator is the wider of the two.
DType cub_device(const Call& call) {
    const std::string_view name = leaf(call.name.str());
    if (call.args.size() < 5) return DType::unknown;
    const bool sums = name == "Sum" || name == "InclusiveSum" || name == "ExclusiveSum";
    const bool reduces = name == "Reduce" || name == "ReduceByKey";
    if (!sums && !(reduces && combines(call) == Combines::sum)) return DType::unknown;
    const DType in = call.args[2].dtype, to = call.args[3].dtype;
    return is_low_precision(in) && is_low_precision(to) ? to : DType::unknown;
}

// std::accumulate(first, last, T init, op), thrust::reduce(policy, first, last, T init, op): the
// sum has the type of the initial value, and so has the result.
DType sequence(const Call& call) {
    constexpr std::array<std::string_view, 5> kNames{"accumulate", "reduce", "transform_reduce",
                                                     "inner_product", "reduce_by_key"};
    if (!any_of(leaf(call.name.str()), kNames) || call.args.size() < 2) return DType::unknown;
    const Combines operation = combines(call);
    const bool custom = is_callable(call.args.back());
    if (operation == Combines::other) return DType::unknown;
    if (operation == Combines::unknown && custom && leaf(call.name.str()) != "transform_reduce")
        return DType::unknown;
    return call.result.dtype;
}

// cooperative_groups::reduce(tile, value, plus<T>()).
DType cooperative(const Call& call) {
    const std::string_view name = leaf(call.name.str());
    if (name != "reduce" && name != "inclusive_scan" && name != "exclusive_scan") return DType::unknown;
    if (call.args.size() < 2 || combines(call) != Combines::sum) return DType::unknown;
    return call.args[1].dtype;
}

// The names of all of the above: each has one of these words in it.
bool may_reduce(std::string_view name) {
    constexpr std::array<std::string_view, 4> kScopes{"cub", "std", "thrust", "cooperative_groups"};
    constexpr std::array<std::string_view, 5> kWords{"sum", "reduce", "scan", "accumulate", "inner_product"};
    return std::ranges::any_of(kScopes, [&](std::string_view s) { return is_within(name, s); }) &&
           std::ranges::any_of(kWords, [&](std::string_view w) { return mentions(leaf(name), w); });
}

DType accumulates_in(const Program& program, const Call& call) {
    const std::string_view name = call.name.str();
    if (is_within(name, "cub"))
        return mentions(name, "::Device") ? cub_device(call) : cub_collective(program, call);
    if (is_within(name, "std") || is_within(name, "thrust")) return sequence(call);
    if (is_within(name, "cooperative_groups")) return cooperative(call);
    return DType::unknown;
}

void check(const RuleContext& context, Findings& out) {
    for_each_call(context.program, may_reduce, [&](const Function& f, const Call& call) {
        const DType dtype = accumulates_in(context.program, call);
        if (!is_low_precision(dtype)) return;
        emit(context, f,
             {.rule = "MP402",
              .severity = error_if_proven(dtype),
              .span = call.span,
              .message = std::string(call.name.str()) + " accumulates in " + std::string(label(dtype)) +
                         ": a sum of ones stops growing at " + stalls_at(dtype) + and_overflows(dtype),
              .fix = "give the reduction a float: element type, initial value or output",
              .notes = {},
              .function = {}},
             out);
    });
}

}  // namespace

extern constinit const Rule kHalfReduceCall{.id = "MP402",
                                            .name = "half-reduce-call",
                                            .severity = Severity::error,
                                            .on_by_default = true,
                                            .confirmed_by = "MPT010",
                                            .triggers = Triggers::cpp_only(),
                                            .check = check};

}  // namespace mp::lint
