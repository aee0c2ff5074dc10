#include "analyzer/analyses/python_constants.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/passed_numbers.hpp"
#include "analyzer/analyses/python_code.hpp"
#include "analyzer/analyses/regions.hpp"
#include "analyzer/analyses/support.hpp"

namespace mp::lint {
namespace {

// Ops whose scalar becomes an element of the result, with the first argument that can be the scalar and its
// role. Scalars of div and pow are not converted: only the quotient is rounded.
struct ScalarOp {
    std::string_view op;
    Role role = Role::none;
    std::size_t first = 0;
};
constexpr std::array<ScalarOp, 13> kScalarOps{{{"masked_fill", Role::mask_fill, 2},
                                               {"where", Role::mask_fill, 1},
                                               {"index_fill", Role::mask_fill, 3},
                                               {"pad", Role::mask_fill, 3},
                                               {"fill", Role::none, 1},
                                               {"add", Role::added, 0},
                                               {"sub", Role::added, 0},
                                               {"rsub", Role::added, 0},
                                               {"mul", Role::multiplier, 0},
                                               {"clamp", Role::clamp, 1},
                                               {"clip", Role::clamp, 1},
                                               {"clamp_min", Role::clamp, 1},
                                               {"clamp_max", Role::clamp, 1}}};

// Functions that make a tensor of a number, and which argument it is.
struct Factory {
    std::string_view name;
    std::size_t value = 0;
    std::string_view keyword;
    bool of_receiver = false;  // its dtype is that of args[0] unless the call gives another
};
constexpr std::array<Factory, 6> kFactories{{{"torch.full", 1, "fill_value", false},
                                             {"torch.full_like", 1, "fill_value", true},
                                             {"torch.Tensor.new_full", 1, "fill_value", true},
                                             {"torch.tensor", 0, "data", false},
                                             {"torch.as_tensor", 0, "data", false},
                                             {"torch.scalar_tensor", 0, "s", false}}};

// Ops that guard a division by an epsilon of their own, in the dtype of their input.
struct Guarded {
    std::string_view op;
    std::size_t position = 0;
    double standard = 0;
    std::string_view protected_by;  // the op of it that a region may run in fp32
};
constexpr std::array<Guarded, 2> kGuarded{
    {{"normalize", 3, 1e-12, "linalg_vector_norm"}, {"cosine_similarity", 3, 1e-8, "cosine_similarity"}}};

bool may_hold_constant(std::string_view name) {
    return is_item_assignment(name) ||
           std::ranges::find(kFactories, name, &Factory::name) != kFactories.end();
}

bool takes_constant(std::string_view op) {
    return std::ranges::find(kScalarOps, op, &ScalarOp::op) != kScalarOps.end() ||
           std::ranges::find(kGuarded, op, &Guarded::op) != kGuarded.end();
}

bool is_scalar_keyword(const Operand& value) {
    constexpr std::array<std::string_view, 5> kNames{"value", "min", "max", "other", "input"};
    return any_of(value.keyword.str(), kNames);
}

bool can_be_tensor(const Operand& value) {
    return (value.shape == Shape::tensor || value.shape == Shape::other) && value.constant.empty();
}

class Finder {
public:
    Finder(const RuleContext& context, TensorDTypes& dtypes, const Function& f, std::vector<ConstantUse>& out)
        : context_(context), dtypes_(dtypes), f_(f), out_(out) {}

    void look_at(const Call& call) {
        if (from_factory(call) || from_guard(call)) return;
        if (is_item_assignment(call.name.str())) return from_assignment(call);
        const auto op = std::ranges::find(kScalarOps, call.op.name(), &ScalarOp::op);
        if (op == kScalarOps.end()) return;
        for (std::size_t i = 0; i < call.args.size(); ++i) {
            const Operand& value = call.args[i];
            const bool scalar = value.keyword.empty() ? i >= op->first : is_scalar_keyword(value);
            if (!scalar) continue;
            const Operand* tensor = tensor_of(call, &value);
            if (const auto number = number_of(value))
                meets(call, &value, *number, op->role, tensor);
            else
                meets_passed(call, value, op->role, tensor);
        }
    }

private:
    // scores[mask] = -1e9
    void from_assignment(const Call& call) {
        if (call.args.size() < 3) return;
        if (const auto number = number_of(call.args.back()))
            meets(call, &call.args.back(), *number, Role::mask_fill, &call.args.front());
    }

    bool from_factory(const Call& call) {
        const auto factory = std::ranges::find(kFactories, call.name.str(), &Factory::name);
        if (factory == kFactories.end()) return false;
        const Operand* value = argument(call, factory->value, factory->keyword);
        const auto number = value ? number_of(*value) : std::nullopt;
        if (!number) return true;
        const Operand* dtype = keyword_argument(call, "dtype");
        if (!dtype && factory->of_receiver && !call.args.empty()) {
            meets(call, value, *number, Role::none, &call.args.front());
            return true;
        }
        if (is_low_precision(call.result.dtype))
            add(call, value, *number, Role::none, dtype,
                {.dtype = call.result.dtype, .proven = !call.result.assumed, .chain = {}});
        else if (dtype)
            add(call, value, *number, Role::none, dtype, dtypes_.of(f_, *dtype));
        return true;
    }

    bool from_guard(const Call& call) {
        const auto op = std::ranges::find(kGuarded, call.op.name(), &Guarded::op);
        if (op == kGuarded.end() || call.args.empty()) return false;
        // apex patches the function itself, torch protects the op in it.
        if (runs_in_fp32(call, op->protected_by) || runs_in_fp32(call, op->op)) return true;
        const std::size_t own = call.kind == CallKind::method ? 1 : 0;
        const Operand* eps = argument(call, op->position - own, "eps");
        if (!eps && has_unpacked(call)) return true;
        const auto number = eps ? number_of(*eps) : std::optional(op->standard);
        if (number) meets(call, eps, *number, Role::clamp, &call.args.front());
        return true;
    }

    // A region that protects the op, or that has an unknown op list.
    bool runs_in_fp32(const Call& call, std::string_view op) const {
        const Context* region = context_.program.enabled_context(f_, call);
        if (!region) return false;
        const Policy* policy = policy_of(context_, *region);
        return !policy || policy->category(Op(op)) != Category::unlisted;
    }

    // The tensor beside the scalar of an op. The first of where() is a condition.
    static const Operand* tensor_of(const Call& call, const Operand* number) {
        const bool conditional = call.op.name() == "where" && call.kind != CallKind::method;
        for (std::size_t i = conditional ? 1 : 0; i < call.args.size(); ++i)
            if (&call.args[i] != number && can_be_tensor(call.args[i])) return &call.args[i];
        return nullptr;
    }

    void meets(const Call& call, const Operand* value, double number, Role role, const Operand* tensor,
               bool assumed = false) {
        if (!tensor) return;
        TensorDType met = dtypes_.of(f_, *tensor);
        met.proven = met.proven && !assumed;
        add(call, value, number, role, tensor, std::move(met));
    }

    // x + eps, with the eps of a parameter or of the constructor
    void meets_passed(const Call& call, const Operand& value, Role role, const Operand* tensor) {
        if (!tensor || value.shape == Shape::tensor || !is_low_precision(dtypes_.of(f_, *tensor).dtype))
            return;
        const PassedNumber number = passed_number(context_, f_, value);
        if (number.value) meets(call, &value, *number.value, role, tensor, number.assumed);
    }

    void add(const Call& call, const Operand* value, double number, Role role, const Operand* tensor,
             TensorDType met) {
        if (!is_low_precision(met.dtype) || is_dtype_guarded(f_, call.block)) return;
        const Context* region = context_.program.enabled_context(f_, call);
        const bool written = tensor && tensor->dtype == met.dtype;
        std::vector<Note> notes = std::move(met.chain);
        if (region && !written)
            for (Note& note : notes_of(*region)) notes.push_back(std::move(note));
        out_.push_back({.function = &f_,
                        .span = call.span,
                        .dtype = met.dtype,
                        .value = number,
                        .role = role,
                        .proven = is_proven_low(met.dtype) && met.proven && (!region || written) &&
                                  !(value && value->assumed),
                        .tensor = true,
                        .notes = std::move(notes),
                        .call = &call,
                        .constant = value,
                        .met = tensor});
    }

    const RuleContext& context_;
    TensorDTypes& dtypes_;
    const Function& f_;
    std::vector<ConstantUse>& out_;
};

// An attribute of a call's result begins where the call does.
const Call* begins_with(const Function& f, const Operand& value) {
    if (!value.span.known()) return nullptr;
    const auto found = std::ranges::find_if(f.calls, [&](const Call& call) {
        return call.span.file == value.span.file && call.span.line == value.span.line &&
               call.span.column == value.span.column;
    });
    return found == f.calls.end() ? nullptr : &*found;
}

}  // namespace

bool is_item_assignment(std::string_view name) { return leaf(name) == "__setitem__"; }

void python_constant_uses(const RuleContext& context, TensorDTypes& dtypes, std::vector<ConstantUse>& out) {
    for_each_call_or_op(context.program, may_hold_constant, takes_constant,
                        [&](const Function& f, const Call& call) {
                            if (is_python(f)) Finder(context, dtypes, f, out).look_at(call);
                        });
}

Limit limit_of(const Function& f, const Operand& value) {
    const Call* call = call_of(f, value);
    if (!call) call = begins_with(f, value);
    if (!call || call->name.str() != "torch.finfo" || call->args.empty()) return {};
    const std::string_view spelling = naming(value);
    const auto dot = spelling.rfind('.');
    if (dot == std::string_view::npos) return {};
    return {call, spelling.substr(dot + 1)};
}

}  // namespace mp::lint
