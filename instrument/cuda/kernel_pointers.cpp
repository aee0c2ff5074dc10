#include "instrument/cuda/kernel_pointers.hpp"

#include <algorithm>
#include <array>
#include <bitset>
#include <vector>

namespace mp::raw {
namespace {

// The formats, widest first, and the types of CUDA that have them. A vector is read and written element by element.
struct Format {
    std::string_view name;
    std::array<std::string_view, 4> types;
};
constexpr std::array<Format, 6> kFormats = {{{"fp64", {"double", "double2", "double4"}},
                                             {"fp32", {"float", "float2", "float3", "float4"}},
                                             {"fp16", {"__half", "__half2"}},
                                             {"bf16", {"__nv_bfloat16", "__nv_bfloat162"}},
                                             {"e4m3", {"__nv_fp8_e4m3"}},
                                             {"e5m2", {"__nv_fp8_e5m2"}}}};
using Formats = std::bitset<kFormats.size()>;

Formats format_of(std::string_view type) {
    Formats found;
    for (std::size_t i = 0; i < kFormats.size() && !type.empty(); ++i)
        found[i] = std::ranges::find(kFormats[i].types, type) != kFormats[i].types.end();
    return found;
}

// "reads fp32, bf16"; empty: none.
std::string text_of(const Formats& formats, std::string_view verb) {
    std::string out;
    for (std::size_t i = 0; i < kFormats.size(); ++i)
        if (formats[i]) out += (out.empty() ? std::string(verb) + " " : ", ") + std::string(kFormats[i].name);
    return out;
}

bool remove_end(std::string_view& text, std::string_view end) {
    if (!text.ends_with(end)) return false;
    text.remove_suffix(end.size());
    return true;
}

// The parameters between the last parentheses: "k<float>(float*, int)" has "float*" and " int".
std::vector<std::string_view> parameters_of(std::string_view name) {
    const std::size_t end = name.rfind(')');
    if (end == std::string_view::npos) return {};
    int depth = 0;
    std::size_t last = end;
    std::vector<std::string_view> found;
    for (std::size_t at = end + 1; at-- > 0;) {
        const char c = name[at];
        if (c == ')' || c == '>' || c == ']') ++depth;
        const bool closes = c == '(' || c == '<' || c == '[';
        if (closes || (c == ',' && depth == 1)) {
            if (depth == 1) found.push_back(name.substr(at + 1, last - at - 1));
            last = at;
        }
        if (closes && --depth == 0) break;
    }
    return found;
}

}  // namespace

std::string pointers_of(std::string_view demangled) {
    Formats read, written;
    for (std::string_view parameter : parameters_of(demangled)) {
        if (parameter.starts_with(' ')) parameter.remove_prefix(1);
        remove_end(parameter, " const");  // of the pointer itself
        if (!remove_end(parameter, "*")) continue;
        const bool is_input = remove_end(parameter, " const");
        (is_input ? read : written) |= format_of(parameter);
    }
    const std::string in = text_of(read, "reads"), out = text_of(written, "writes");
    return in + (in.empty() || out.empty() ? "" : "; ") + out;
}

}  // namespace mp::raw
