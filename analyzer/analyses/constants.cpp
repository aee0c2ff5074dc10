#include "analyzer/analyses/constants.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "analyzer/analyses/python_code.hpp"
#include "analyzer/analyses/python_constants.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/tensor_dtypes.hpp"

namespace mp::lint {
namespace {

// Tensor ops whose scalar argument becomes an element, with the role of the scalar.
struct ScalarOp {
    std::string_view op;
    Role role;
};
constexpr std::array<ScalarOp, 14> kScalarOps{{{"masked_fill", Role::mask_fill},
                                               {"where", Role::mask_fill},
                                               {"index_fill", Role::mask_fill},
                                               {"fill", Role::none},
                                               {"full", Role::none},
                                               {"full_like", Role::none},
                                               {"add", Role::added},
                                               {"sub", Role::added},
                                               {"mul", Role::multiplier},
                                               {"clamp", Role::clamp},
                                               {"clamp_min", Role::clamp},
                                               {"clamp_max", Role::clamp},
                                               {"clip", Role::clamp},
                                               {"rsub", Role::added}}};

std::optional<Role> scalar_role(const Call& call) {
    const auto found = std::ranges::find(kScalarOps, call.op.name(), &ScalarOp::op);
    if (found == kScalarOps.end()) return std::nullopt;
    return found->role;
}

void from_casts(const Function& f, std::vector<ConstantUse>& out) {
    for (const Cast& c : f.casts) {
        if (!is_low_precision(c.to)) continue;
        const auto value = number_of(c.source);
        if (!value) continue;
        out.push_back({.function = &f,
                       .span = c.span,
                       .dtype = c.to,
                       .value = *value,
                       .role = c.role,
                       .proven = is_proven_low(c.to),
                       .notes = {}});
    }
}

// The dtype of the tensor beside the scalar: the first tensor operand, or the result of a
// factory.
TensorDType tensor_dtype(TensorDTypes& dtypes, const Function& f, const Call& call) {
    for (const Operand& argument : call.args) {
        if (argument.shape != Shape::tensor) continue;
        TensorDType found = dtypes.of(f, argument);
        if (found.dtype != DType::boolean) return found;  // a mask
    }
    if (call.result.shape != Shape::tensor) return {};
    return {.dtype = call.result.dtype, .proven = true, .chain = {}};
}

void from_tensor_calls(const Program& program, TensorDTypes& dtypes, const Function& f,
                       std::vector<ConstantUse>& out) {
    for (const Call& call : f.calls) {
        const auto role = scalar_role(call);
        if (!role) continue;
        TensorDType met = tensor_dtype(dtypes, f, call);
        if (!is_low_precision(met.dtype)) continue;
        const Context* region = program.enabled_context(f, call);
        std::vector<Note> notes = std::move(met.chain);
        if (region) notes.insert(notes.end(), region->chain.begin(), region->chain.end());
        for (const Operand& argument : call.args) {
            const auto value = number_of(argument);
            if (!value || argument.shape == Shape::tensor) continue;
            out.push_back({.function = &f,
                           .span = call.span,
                           .dtype = met.dtype,
                           .value = *value,
                           .role = *role,
                           .proven = is_proven_low(met.dtype) && met.proven && !region,
                           .tensor = true,
                           .notes = notes});
        }
    }
}

// "fp16" and "float16" too: the value of an option, or the key of a table. A dtype that is one of both names it as
// well.
template <typename Value>
bool is_fp16(const Value& value) {
    constexpr std::array<std::string_view, 4> kNames{"'fp16'", "'float16'", "'half'", "'16-mixed'"};
    const bool is_choice = value.dtype == DType::lowp && value.shape == Shape::dtype;
    return value.dtype == DType::fp16 || is_choice || any_of(value.constant.str(), kNames);
}

bool names_fp16(const Function& f) {
    const auto in_call = [](const Call& call) {
        // getattr(torch, args.dtype): any name may come.
        const bool looks_up =
            leaf(call.name.str()) == "getattr" && !call.args.empty() && naming(call.args[0]) == "torch";
        return call.result.dtype == DType::fp16 || leaf(call.name.str()) == "GradScaler" || looks_up ||
               std::ranges::any_of(call.args, is_fp16<Operand>);
    };
    return std::ranges::any_of(f.calls, in_call) || std::ranges::any_of(f.returned, is_fp16<Operand>) ||
           std::ranges::any_of(f.definitions, [](const Definition& d) { return is_fp16(d.value); }) ||
           std::ranges::any_of(f.params, is_fp16<Parameter>);
}

// A region whose dtype is not known is bf16 in a program that speaks of fp16 nowhere.
void take_bf16_without_fp16(const Program& program, std::vector<ConstantUse>& uses) {
    const bool has_fp16 = std::ranges::any_of(
        program.functions(), [](const Function* f) { return is_python(*f) && names_fp16(*f); });
    if (has_fp16) return;
    for (ConstantUse& use : uses)
        if (use.dtype == DType::lowp && is_python(*use.function)) use.dtype = DType::bf16;
}

}  // namespace

const std::vector<ConstantUse>& constant_uses(const RuleContext& context) {
    return context.constants.get([&] {
        auto uses = std::make_shared<std::vector<ConstantUse>>();
        TensorDTypes dtypes(context);
        for (const Function* f : context.program.functions()) {
            from_casts(*f, *uses);
            if (!is_python(*f)) from_tensor_calls(context.program, dtypes, *f, *uses);
        }
        python_constant_uses(context, dtypes, *uses);
        take_bf16_without_fp16(context.program, *uses);
        return uses;
    });
}

}  // namespace mp::lint
