#pragma once

#include <string_view>

namespace mp::lint {

// Same as leaf(qualified) == name, for a `name` without separators. Faster when most names differ.
inline bool is_leaf(std::string_view name, std::string_view qualified) {
    if (qualified.size() <= name.size()) return qualified == name;
    const char before = qualified[qualified.size() - name.size() - 1];
    return (before == '.' || before == ':') && qualified.ends_with(name);
}

}  // namespace mp::lint
