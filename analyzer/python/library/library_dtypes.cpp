#include "analyzer/python/library/library_dtypes.hpp"

#include <algorithm>

#include "analyzer/python/library/dotted.hpp"
#include "analyzer/python/library/library.hpp"
#include "analyzer/python/library/library_tables.hpp"

namespace mp::lint::python {
namespace {

constexpr int kDeepestDisplay = 4;

bool is_number(std::string_view text) {
    if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
    return !text.empty() &&
           ((text[0] >= '0' && text[0] <= '9') || text[0] == '.' || text == "inf" || text == "nan");
}

bool is_string(std::string_view text) {
    return text.size() >= 2 && (text[0] == '\'' || text[0] == '"') && text.back() == text[0];
}

// "0x1F", "12" and "2**30" but not "1e3", "1.0", "inf", "n".
bool is_integral(std::string_view text) {
    if (text.starts_with("0x") || text.starts_with("0X")) return true;
    return text.find_first_not_of("0123456789_+-*%<>() ") == std::string_view::npos;
}

// `constant` holds the shortest form of a number; only `text` shows whether 1 was written as 1.0.
bool is_integer_constant(const Operand& value) {
    return is_integral(value.text.empty() ? value.constant.str() : value.text.str());
}

const Call* source_of(const Operand& operand, const Function& function) {
    const auto index = static_cast<std::size_t>(operand.call);
    return operand.call >= 0 && index < function.calls.size() ? &function.calls[index] : nullptr;
}

bool is_display(const Call& call) {
    const std::string_view name = last_part(call.name.str());
    return call.kind == CallKind::constructor && (name == "list" || name == "tuple");
}

// A device, or an operand that can only be one: "cuda", 0, torch.device(...), x.device.
bool is_device(const Operand& operand) {
    const std::string_view constant = operand.constant.str();
    if (operand.shape == Shape::options || is_number(constant) || constant == "None") return true;
    if (is_string(constant)) return dtype_named(constant) == DType::unknown;
    if (operand.shape == Shape::scalar && operand.dtype != DType::unknown) return true;
    const std::string_view attribute = last_part(operand.name.str());
    return attribute == "device" || constant == "true" || constant == "false";
}

// torch's categories for promotion: 2 for floats, 1 for integers, 0 for booleans.
int kind_of(DType d) { return is_float(d) ? 2 : is_integer(d) ? 1 : 0; }

int width_of(DType d) {
    switch (d) {
        case DType::fp64:
        case DType::int64:
        case DType::uint64:
            return 8;
        case DType::fp32:
        case DType::tf32:
        case DType::int32:
        case DType::uint32:
            return 4;
        case DType::fp16:
        case DType::bf16:
        case DType::lowp:
        case DType::int16:
        case DType::uint16:
            return 2;
        default:
            return 1;
    }
}

// torch.tensor(1.0), x.sum(): a tensor without dimensions does not widen a dtype of its own category.
bool may_lack_dimensions(const Operand& operand, const Function& function) {
    const Call* call = source_of(operand, function);
    if (!call) return false;
    const std::string_view leaf = last_part(call->name.str());
    constexpr std::string_view kScalars[] = {"tensor", "as_tensor", "sum", "mean",
                                             "norm",   "max",       "min", "scalar_tensor"};
    return std::ranges::find(kScalars, leaf) != std::end(kScalars);
}

DType wider(DType a, DType b) {
    if (a == b) return a;
    if (kind_of(a) != kind_of(b)) return kind_of(a) > kind_of(b) ? a : b;
    if (is_half(a) && is_half(b)) return a == DType::lowp || b == DType::lowp ? DType::unknown : DType::fp32;
    if (width_of(a) == width_of(b)) return DType::unknown;
    return width_of(a) > width_of(b) ? a : b;
}

DType dtype_of_number(const Operand& value, DType default_float) {
    const std::string_view constant = value.constant.str();
    if (constant == "true" || constant == "false") return DType::boolean;
    if (is_integer(value.dtype)) return DType::int64;
    const bool is_literal = value.text.empty() || is_number(value.text.str());
    if (is_number(constant)) {
        if (is_integer_constant(value)) return DType::int64;
        const bool is_float_form = constant.find_first_of(".ein") != std::string_view::npos;
        return is_literal || is_float_form ? default_float : DType::unknown;
    }
    if (value.shape != Shape::scalar) return DType::unknown;
    return is_float(value.dtype) ? default_float : value.dtype;
}

DType dtype_of_values(std::span<const Operand> values, const Function& function, DType default_float,
                      int depth) {
    DType common = DType::unknown;
    for (const Operand& value : values) {
        const std::span<const Operand> inner = elements_of(value, function);
        DType found = value.shape == Shape::tensor ? value.dtype : DType::unknown;
        if (!inner.empty() && depth < kDeepestDisplay)
            found = dtype_of_values(inner, function, default_float, depth + 1);
        else if (found == DType::unknown)
            found = dtype_of_number(value, default_float);
        if (found == DType::unknown) return found;
        common = common == DType::unknown ? found : wider(common, found);
    }
    return common;
}

}  // namespace

DType dtype_named(std::string_view text) {
    const Names& names = names_in("dtypes");
    const bool quoted = is_string(text);
    if (quoted) text = text.substr(1, text.size() - 2);
    const auto found = names.find(last_part(text));
    if (found == names.end()) return DType::unknown;
    const std::string_view home = home_of(text);
    if (home.empty() ? !quoted : !holds(names_in("dtype homes"), home)) return DType::unknown;
    return dtype_from_name(found->second).value_or(DType::unknown);
}

std::optional<DType> dtype_named_by(const Operand& operand) {
    if (operand.shape == Shape::dtype && operand.dtype != DType::unknown) return operand.dtype;
    if (const DType named = dtype_named(operand.constant.str()); named != DType::unknown) return named;
    if (operand.shape == Shape::dtype) return DType::unknown;
    if (operand.shape == Shape::tensor || is_device(operand)) return std::nullopt;
    return DType::unknown;
}

std::optional<DType> dtype_argument(const Call& call) {
    for (const Operand& argument : call.args) {
        const std::string_view keyword = argument.keyword.str();
        const bool asked = keyword == "dtype" || keyword == "torch_dtype";
        if (asked && argument.constant.str() == "None") continue;
        if (asked) return dtype_named_by(argument).value_or(DType::unknown);
        if (keyword.empty() && argument.shape == Shape::dtype) return argument.dtype;
        if (keyword.starts_with("**")) return DType::unknown;
    }
    return std::nullopt;
}

DType retyped(const Call& call) {
    const DType own = call.args.empty() ? DType::unknown : call.args[0].dtype;
    for (std::size_t i = 1; i < call.args.size(); ++i) {
        const Operand& argument = call.args[i];
        const std::string_view keyword = argument.keyword.str();
        if (keyword.starts_with('*')) return DType::unknown;
        const bool may_be_dtype = keyword.empty() || keyword == "dtype" || keyword == "dst_type";
        if (keyword == "other" || (keyword.empty() && argument.shape == Shape::tensor)) return argument.dtype;
        if (!may_be_dtype) continue;
        if (const auto named = dtype_named_by(argument)) return *named;
    }
    return own;
}

std::span<const Operand> elements_of(const Operand& operand, const Function& function) {
    const Call* call = source_of(operand, function);
    return call && is_display(*call) ? std::span<const Operand>(call->args) : std::span<const Operand>();
}

DType dtype_of_values(std::span<const Operand> values, const Function& function, DType default_float) {
    return dtype_of_values(values, function, default_float, 0);
}

DType promoted(std::span<const Operand> operands, const Function& function, DType default_float) {
    DType tensors = DType::unknown, numbers = DType::unknown;
    bool uncertain = false;
    for (const Operand& operand : operands) {
        const DType number =
            operand.shape == Shape::tensor ? DType::unknown : dtype_of_number(operand, default_float);
        if (operand.shape == Shape::scalar || number != DType::unknown) {
            if (number == DType::unknown)
                uncertain = true;  // int or float: irrelevant beside a float
            else
                numbers = numbers == DType::unknown ? number : wider(numbers, number);
            continue;
        }
        if (operand.dtype == DType::unknown) return DType::unknown;
        if (tensors != DType::unknown && tensors != operand.dtype &&
            kind_of(tensors) == kind_of(operand.dtype) && may_lack_dimensions(operand, function))
            return DType::unknown;
        tensors = tensors == DType::unknown ? operand.dtype : wider(tensors, operand.dtype);
    }
    if (tensors == DType::unknown || is_float(tensors)) return tensors;
    if (uncertain) return DType::unknown;
    return numbers != DType::unknown && kind_of(numbers) > kind_of(tensors) ? numbers : tensors;
}

}  // namespace mp::lint::python
