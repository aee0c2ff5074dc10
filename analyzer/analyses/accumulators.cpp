#include "analyzer/analyses/accumulators.hpp"

#include <algorithm>
#include <array>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/control_flow.hpp"
#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/module_dtypes.hpp"
#include "analyzer/analyses/python_code.hpp"
#include "analyzer/analyses/support.hpp"
#include "kernels/numerics/op_traits.hpp"

namespace mp::lint {
namespace {

// The rounding of so few terms stays near the format's own; as in MP401.
constexpr std::uint64_t kFewTerms = 32;

bool adds(const Accumulation& a) {
    return (a.op == AccumulateOp::add || a.op == AccumulateOp::subtract) &&
           (a.trips == 0 || a.trips > kFewTerms);
}

// Its two operands: the total, and what is added.
struct Sides {
    const Operand* total = nullptr;
    const Operand* added = nullptr;
};

Sides sides_of(const Accumulation& a, const Call& call) {
    if (call.args.size() < 2) return {};
    const bool reversed = call.args[1].name == a.name && call.args[0].name != a.name;
    return {&call.args[reversed ? 1 : 0], &call.args[reversed ? 0 : 1]};
}

// A loop that trains or evaluates: it steps, goes backward, or what is added is a loss.
bool is_step_loop(const Function& f, const Call& addition) {
    constexpr std::array<std::string_view, 4> kSteps{"backward", "zero_grad", "train_batch", "training_step"};
    return std::ranges::any_of(f.calls, [&](const Call& call) {
        return call.loop_depth > 0 && call.loop_depth <= addition.loop_depth &&
               any_of(leaf(call.name.str()), kSteps);
    });
}

// self.low = 0, and self.low += x behind it: the total of one call, and no loop around it.
bool starts_here(const Operand& total, const Call& addition) {
    return addition.loop_depth == 0 && (!total.constant.empty() || total.call != kNone);
}

// Whether the call gives the total a new value: torch.matmul(x, w, out=y), y.zero_(), y.copy_(x).
bool overwrites(const Call& call, Symbol total) {
    constexpr std::array<std::string_view, 3> kOps{"zero", "fill", "copy"};
    const Operand* out = keyword_argument(call, "out");
    if (out && out->name == total) return true;
    return call.in_place && any_of(call.op.name(), kOps) && !call.args.empty() && call.args[0].name == total;
}

// y.mul_(0.9), y.clamp_(-1, 1)
bool changes(const Call& call, Symbol total) {
    const bool is_sum = call.op.name() == "add" || call.op.name() == "sub";
    return call.in_place && !is_sum && !call.args.empty() && call.args[0].name == total;
}

// total += model(x, y): a model whose code is not known may compute its loss in fp32.
bool is_returned_by_model(const Function& f, const Operand& added) {
    constexpr std::array<std::string_view, 2> kRuns{"forward", "__call__"};
    const Call* made = producer(f, added);
    return made && any_of(leaf(made->name.str()), kRuns);
}

bool is_loss(const Call& call) { return traits_of(call.op).has(Trait::loss); }

class Finder {
public:
    explicit Finder(const RuleContext& context)
        : modules_(context, DTypeOf::output), dtypes_(modules_.tensors()) {}

    void look_at(const Function& f, const Accumulation& a, std::vector<Accumulator>& out) {
        const auto index = static_cast<std::size_t>(a.call);
        if (!adds(a) || a.call == kNone || index >= f.calls.size()) return;
        const Call& call = f.calls[index];
        const Sides sides = sides_of(a, call);
        const auto writes = [&](const Call& other) {
            return other.loop_depth >= call.loop_depth &&
                   (overwrites(other, a.name) || changes(other, a.name));
        };
        const auto starts_anew = [&](const Call& other) {
            return &other < &call && other.block == call.block && overwrites(other, a.name);
        };
        if (std::ranges::any_of(f.calls, starts_anew)) return;
        if (!sides.total || computed_from_total(f, a, *sides.added)) return;
        TensorDType is = dtype_of(f, a, call, sides);
        if (is.output && is_returned_by_model(f, *sides.added)) return;
        // A dtype that only some caller passes is not evidence for a total.
        const bool guessed = sides.added->param != kNone && !is.proven;
        if (!is_low_precision(is.dtype) || guessed) return;
        const bool is_kept = a.form == AccumulateForm::member;
        if (is_kept && starts_here(*sides.total, call)) return;
        const bool steps = is_kept || is_step_loop(f, call) || origin(f, *sides.added, is_loss);
        if (a.declared.known()) is.chain.insert(is.chain.begin(), {a.declared, "the total starts here"});
        out.push_back({.function = &f,
                       .fact = &a,
                       .dtype = is.dtype,
                       .proven = is.proven && is_proven_low(is.dtype),
                       .certain = std::ranges::none_of(f.calls, writes) &&
                                  ControlFlow(f).runs_in_each_round(f, call.block),
                       .over_steps = steps,
                       .added = sides.added,
                       .notes = std::move(is.chain)});
    }

private:
    static bool computed_from_total(const Function& f, const Accumulation& a, const Operand& added) {
        return derives_from(f, added, [&](const Operand& one) { return one.name == a.name; });
    }

    // In place the total decides. Otherwise the sum is the total of the next round, and it is as wide
    // as its widest part; a total that starts as a number takes the dtype of what is added.
    TensorDType dtype_of(const Function& f, const Accumulation& a, const Call& call, const Sides& sides) {
        if (is_low_precision(a.dtype)) return {.dtype = a.dtype, .proven = true, .chain = {}};
        if (a.dtype != DType::unknown) return {};
        TensorDType total = dtypes_.of(f, *sides.total);
        if (call.in_place && total.dtype != DType::unknown) return total;
        TensorDType added = dtypes_.of(f, *sides.added);
        const bool is_number = number_of(*sides.total).has_value() || a.shape == Shape::scalar;
        if (is_number || total.dtype == added.dtype) return added;
        return {};
    }

    ModuleDTypes modules_;
    TensorDTypes& dtypes_;
};

bool is_builtin_sum(std::string_view name) { return name == "sum"; }
bool is_sum_or_mean(std::string_view op) { return op == "mean" || op == "sum"; }

// The list that the call adds up: torch.stack(values).mean(), torch.mean(torch.stack(values)),
// sum(values).
const Operand* added_list(const Function& f, const Call& call) {
    if (call.args.empty()) return nullptr;
    if (is_builtin_sum(call.name.str()) && call.kind == CallKind::function) return &call.args[0];
    if (!is_sum_or_mean(call.op.name()) || keyword_argument(call, "dtype")) return nullptr;
    const Call* stack = call_of(f, call.args[0]);
    const bool stacks = stack && stack->op.name() == "stack" && !stack->args.empty();
    return stacks ? &stack->args[0] : nullptr;
}

// What a loop puts into the list: by append, or as the elements of a comprehension.
std::vector<std::pair<const Call*, const Operand*>> collected(const Function& f, const Operand& list) {
    std::vector<std::pair<const Call*, const Operand*>> found;
    const Call* made = call_of(f, list);
    if (!made || made->name.str() != "list") return found;
    for (const Operand& item : made->args)
        if (const Call* element = call_of(f, item); element && element->loop_depth > made->loop_depth)
            found.emplace_back(element, &item);
    for (const Call& call : f.calls)
        if (leaf(call.name.str()) == "append" && call.args.size() == 2 &&
            call.loop_depth > made->loop_depth && call_of(f, call.args[0]) == made)
            found.emplace_back(&call, &call.args[1]);
    return found;
}

}  // namespace

bool is_given_experts(const Function& f) {
    return std::ranges::any_of(f.params, [](const Parameter& p) {
        const std::string_view name = p.name.str();
        return mentions(name, "expert") || mentions(name, "topk") || mentions(name, "top_k");
    });
}

std::vector<CollectedTotal> collected_totals(const RuleContext& context) {
    std::vector<CollectedTotal> totals;
    ModuleDTypes modules(context, DTypeOf::output);
    TensorDTypes& dtypes = modules.tensors();
    const auto look_at = [&](const Function& f, const Call& call) {
        const Operand* list = is_python(f) ? added_list(f, call) : nullptr;
        if (!list) return;
        CollectedTotal total{.function = &f, .call = &call, .list = list->name, .notes = {}};
        total.one_by_one = is_builtin_sum(call.name.str());
        bool is_total = false;
        for (const auto& [put, value] : collected(f, *list)) {
            TensorDType is = dtypes.of(f, *value);
            if (!is_low_precision(is.dtype) || !is.proven) return;
            is_total = is_total || is_step_loop(f, *put) || origin(f, *value, is_loss);
            total.dtype = is.dtype;
            total.notes = std::move(is.chain);
            total.notes.insert(total.notes.begin(),
                               {put->span, "a " + std::string(label(is.dtype)) + " value is collected here"});
        }
        if (is_total) totals.push_back(std::move(total));
    };
    for_each_call_or_op(context.program, is_builtin_sum, is_sum_or_mean, look_at);
    return totals;
}

std::vector<Accumulator> python_accumulators(const RuleContext& context) {
    std::vector<Accumulator> found;
    Finder finder(context);
    for_each(context, &Function::accumulations, [&](const Function& f, const Accumulation& a) {
        if (is_python(f)) finder.look_at(f, a, found);
    });
    return found;
}

}  // namespace mp::lint
