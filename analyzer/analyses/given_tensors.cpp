#include "analyzer/analyses/given_tensors.hpp"

#include <algorithm>
#include <array>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/python_code.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/region/tables.hpp"
#include "kernels/numerics/op_traits.hpp"

namespace mp::lint {
namespace {

bool is_forward_or_backward(const Function& f) {
    constexpr std::array<std::string_view, 2> kNames{"forward", "backward"};
    return !f.parent_class.empty() && any_of(leaf(f.name.str()), kNames);
}

// torch.exp(p), torch.matmul(q, p), p.sum(dim=-1): only a tensor can stand there.
bool takes_tensor(const Call& call, std::int32_t param) {
    const bool of_torch = call.kind == CallKind::function && call.name.str().starts_with("torch.");
    const bool is_method = call.kind == CallKind::method && keyword_argument(call, "dim");
    if (!call.op.known() || !(of_torch || is_method)) return false;
    const bool several = of_torch && traits_of(call.op).has(Trait::second_tensor);
    for (const Operand& o : call.args) {
        if (is_quoted(o.constant.str())) continue;  // the equation of an einsum
        if (o.param == param && o.keyword.empty()) return true;
        if (!several) return false;
    }
    return false;
}

bool names_integers(std::string_view name) {
    constexpr std::array<std::string_view, 10> kWords{"ids",   "idx",    "index",  "indices", "mask",
                                                      "label", "target", "length", "offset",  "segment"};
    return std::ranges::any_of(kWords, [&](std::string_view word) { return mentions(name, word); });
}

// x[p], x.gather(1, p), embedding(p): what stands there counts or chooses.
bool is_index_of(const Call& call, std::int32_t param) {
    constexpr std::array<std::string_view, 8> kTakers{"gather",      "scatter",      "scatter_",
                                                      "scatter_add", "scatter_add_", "index_add",
                                                      "index_add_",  "index_select"};
    const std::string_view name = leaf(call.name.str());
    const auto is_there = [&](std::size_t at) {
        return at < call.args.size() && call.args[at].param == param;
    };
    if (name == "embedding" || name == "one_hot") return is_there(0);
    if (name == "__getitem__" || name == "__setitem__") return is_there(1);
    return any_of(name, kTakers) && is_there(2);
}

}  // namespace

bool may_be_given(const Function& f, std::int32_t param) {
    if (!is_python(f) || static_cast<std::size_t>(param) >= f.params.size()) return false;
    const Parameter& p = f.params[static_cast<std::size_t>(param)];
    const bool is_receiver = p.shape == Shape::module || p.name.str() == "ctx" || p.name.str() == "self";
    const bool is_plain = p.shape == Shape::other && p.constant.empty() &&
                          (is_forward_or_backward(f) || std::ranges::any_of(f.calls, [&](const Call& call) {
                               return takes_tensor(call, param);
                           }));
    if (is_receiver || p.dtype != DType::unknown || (p.shape != Shape::tensor && !is_plain)) return false;
    return !names_integers(p.name.str()) &&
           std::ranges::none_of(f.calls, [&](const Call& call) { return is_index_of(call, param); });
}

}  // namespace mp::lint
