#pragma once

// Calls that make a table and that read it, as `Values` follows them.

#include <string_view>

#include "analyzer/region/calls.hpp"

namespace mp::lint {

// Names, calls and parameters that are followed one after the other.
inline constexpr int kDeepestValue = 24;

inline bool is_quoted(std::string_view text) { return text.size() >= 2 && text.front() == '\''; }

inline bool is_display(const Call& call) {
    const std::string_view name = call.name.str();
    return call.kind == CallKind::constructor &&
           (name == "dict" || name == "list" || name == "tuple" || name == "set");
}

inline bool reads_item(const Call& call) {
    const std::string_view name = leaf(call.name.str());
    return call.args.size() >= 2 && (name == "__getitem__" || name == "get");
}

inline bool is_next(const Call& call) { return call.name.str() == "?.__next__"; }

}  // namespace mp::lint
