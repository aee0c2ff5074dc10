#include "kernels/numerics/dtype.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace mp {
namespace {

struct Spelling {
    std::string_view text;
    DType dtype = DType::unknown;
};

// In the order of the enumeration, because name_of uses it as index.
constexpr std::array<std::string_view, static_cast<std::size_t>(kLastDType) + 1> kNames = {
    "unknown", "fp64",  "fp32",  "tf32", "fp16",   "bf16",   "e4m3",   "e5m2",  "lowp",
    "int64",   "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool",
};

// PyTorch's attribute names (torch.float16, torch.half) and C++ scalar types (torch::kHalf).
// "char" is torch's signed 8-bit integer, "byte" its unsigned one.
constexpr Spelling kSpellings[] = {
    {"float64", DType::fp64},  {"double", DType::fp64},        {"float32", DType::fp32},
    {"float", DType::fp32},    {"float16", DType::fp16},       {"half", DType::fp16},
    {"bfloat16", DType::bf16}, {"float8_e4m3fn", DType::e4m3}, {"float8_e5m2", DType::e5m2},
    {"long", DType::int64},    {"int", DType::int32},          {"short", DType::int16},
    {"char", DType::int8},     {"byte", DType::uint8},         {"boolean", DType::boolean},
};

// Removes "torch.", "torch::k", "at::" ... before a name, and returns the name in lower case.
std::string bare_name(std::string_view text) {
    const std::size_t cut = text.find_last_of(".:");
    if (cut != std::string_view::npos) text.remove_prefix(cut + 1);
    if (text.size() > 1 && text[0] == 'k' && text[1] >= 'A' && text[1] <= 'Z') text.remove_prefix(1);
    std::string name(text);
    for (char& c : name)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return name;
}

bool known_prefix(std::string_view text) {
    const std::size_t cut = text.find_last_of(".:");
    if (cut == std::string_view::npos) return true;
    constexpr std::string_view kPrefixes[] = {
        "torch.", "torch::", "at::", "c10::", "c10::ScalarType::", "at::ScalarType::"};
    return std::ranges::find(kPrefixes, text.substr(0, cut + 1)) != std::end(kPrefixes);
}

}  // namespace

std::string_view name_of(DType d) {
    const auto index = static_cast<std::size_t>(d);
    return index < kNames.size() ? kNames[index] : kNames[0];
}

std::optional<DType> dtype_from_name(std::string_view text) {
    if (!known_prefix(text)) return std::nullopt;
    const std::string name = bare_name(text);
    if (const auto it = std::ranges::find(kNames, name); it != kNames.end())
        return static_cast<DType>(it - kNames.begin());
    if (const auto* it = std::ranges::find(kSpellings, name, &Spelling::text); it != std::end(kSpellings))
        return it->dtype;
    return std::nullopt;
}

}  // namespace mp
