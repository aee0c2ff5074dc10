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
        return uses;
    });
}

}  // namespace mp::lint
