#include "analyzer/analyses/low_operands.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/regions.hpp"
#include "analyzer/analyses/support.hpp"
#include "kernels/numerics/op_traits.hpp"

namespace mp::lint {

bool asks_for_fp32(const Function& f, const Call& call) {
    if (is_wide(call.result.dtype)) return true;
    // In Python any dtype argument decides; MP411 has those that ask for half.
    if (is_python(f))
        return std::ranges::any_of(call.args, [](const Operand& a) {
            return a.shape == Shape::dtype || a.keyword.str() == "dtype";
        });
    constexpr std::array<std::string_view, 4> kNames{"kFloat", "kDouble", "Float", "Double"};
    return std::ranges::any_of(call.args, [&](const Operand& a) {
        const bool is_dtype = a.shape == Shape::options || a.shape == Shape::other;
        return any_of(leaf(a.constant.str()), kNames) || (is_dtype && is_wide(a.dtype));
    });
}

bool may_be_tensor(const Function& f, const Operand& o) {
    const bool may_be = is_python(f) && o.shape == Shape::other && o.keyword.empty() && o.constant.empty();
    return o.shape == Shape::tensor || may_be;
}

LowOperand low_operand(TensorDTypes& dtypes, const Function& f, const Call& call) {
    for (const Operand& argument : call.args) {
        if (!may_be_tensor(f, argument)) continue;
        TensorDType found = dtypes.of(f, argument);
        if (is_low_precision(found.dtype)) return {&argument, std::move(found)};
    }
    return {};
}

bool is_unprotected(const RuleContext& context, const Context& region, const Call& call) {
    const Policy* policy = policy_of(context, region);
    return policy && (call.in_place || category_in(*policy, call.op) == Category::unlisted);
}

bool lacks_kernel(std::string_view op, DType dtype) {
    const Traits traits = traits_of(op);
    return traits.has(Trait::no_half) ? is_low_precision(dtype)
                                      : traits.has(Trait::no_bf16) && dtype == DType::bf16;
}

void add_new(std::vector<Note>& notes, std::vector<Note> more) {
    for (Note& note : more) {
        const auto same = [&](const Note& n) {
            return n.span.file == note.span.file && n.span.line == note.span.line;
        };
        if (std::ranges::none_of(notes, same)) notes.push_back(std::move(note));
    }
}

}  // namespace mp::lint
