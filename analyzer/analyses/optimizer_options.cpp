#include "analyzer/analyses/optimizer_options.hpp"

#include <span>
#include <string_view>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/trials.hpp"
#include "analyzer/region/calls.hpp"

namespace mp::lint {
namespace {

// 1 for "beta2" in "beta1, beta2".
std::optional<std::size_t> place_in(std::string_view names, std::string_view name) {
    if (names.find(',') == std::string_view::npos || name.empty()) return {};
    for (std::size_t at = 0; !names.empty(); ++at) {
        const std::size_t comma = names.find(',');
        std::string_view one = names.substr(0, comma);
        while (one.starts_with(' ') || one.starts_with('(')) one.remove_prefix(1);
        while (one.ends_with(' ') || one.ends_with(')')) one.remove_suffix(1);
        if (one == name) return at;
        names.remove_prefix(comma == std::string_view::npos ? names.size() : comma + 1);
    }
    return {};
}

// torch.bfloat16
DType dtype_named(std::string_view constant) {
    const auto named = constant.starts_with("torch.") ? dtype_from_name(leaf(constant)) : std::nullopt;
    return named.value_or(DType::unknown);
}

}  // namespace

OptimizerOption optimizer_option(const Classes& classes, const Function& f, const Operand& operand) {
    const Call* read = call_of(f, operand);
    OptimizerOption found;
    if (!read && operand.param == kNone)
        for (const Call& call : f.calls)
            if (const auto at = place_in(call.result.name.str(), operand.name.str())) {
                read = &call;
                found.item = at;
            }
    const std::string_view key = read && reads_entry(*read) ? spelled(read->args[1]) : "";
    if (key.empty() || f.parent_class.empty()) return {};
    if (classes.library_base(f.parent_class, "Optimizer").empty()) return {};
    found.init = classes.method(f.parent_class, "__init__");
    for (const Call& call : found.init ? std::span(found.init->calls) : std::span<const Call>())
        if (const Operand* given = leaf(call.name.str()) == "dict" ? keyword_argument(call, key) : nullptr) {
            found.given = given;
            return found;
        }
    return {};
}

TensorDType low_dtype_of_option(const RuleContext& context, const Function& f, const Operand& operand) {
    const OptimizerOption option = optimizer_option(classes_of(context), f, operand);
    TensorDType found{.dtype = DType::unknown, .proven = false, .chain = {}};
    if (!option.given || option.item || option.given->param == kNone) return found;
    const Function& init = *option.init;
    const auto param = static_cast<std::size_t>(option.given->param);
    const DType otherwise =
        param < init.params.size() ? dtype_named(init.params[param].constant.str()) : DType::unknown;
    const std::vector<const Call*> callers = callers_by_weight(context, init);
    if (callers.empty() && context.project.is_package && is_low_precision(otherwise)) found.dtype = otherwise;
    for (const Call* call : callers) {
        const Operand* given = argument_for(*call, init, option.given->param);
        const DType dtype = given ? given->dtype : has_unpacked(*call) ? DType::unknown : otherwise;
        if (!is_low_precision(dtype)) continue;
        found.dtype = dtype;
        found.chain = {{call->span, "the optimizer is made with this dtype here"}};
        break;
    }
    return found;
}

}  // namespace mp::lint
