#pragma once

#include <algorithm>
#include <span>
#include <string_view>

namespace mp::lint::python {

// "torch.nn.Linear" -> "Linear", "torch.nn", "torch". Of a name without a dot: the name, nothing, the name.
inline std::string_view last_part(std::string_view dotted) { return dotted.substr(dotted.rfind('.') + 1); }
inline std::string_view home_of(std::string_view dotted) {
    const std::size_t dot = dotted.rfind('.');
    return dot == std::string_view::npos ? std::string_view() : dotted.substr(0, dot);
}
inline std::string_view first_part(std::string_view dotted) { return dotted.substr(0, dotted.find('.')); }

inline bool is_one_of(std::string_view name, std::span<const std::string_view> names) {
    return std::ranges::find(names, name) != names.end();
}

}  // namespace mp::lint::python
