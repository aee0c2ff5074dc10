#include "analyzer/analyses/arguments.hpp"

#include <algorithm>

namespace mp::lint {
namespace {

bool is_unpacked(const Operand& value) { return value.keyword.str() == "*" || value.keyword.str() == "**"; }

}  // namespace

const Operand* keyword_argument(const Call& call, std::string_view name) {
    const auto found =
        std::ranges::find_if(call.args, [&](const Operand& value) { return value.keyword.str() == name; });
    return found == call.args.end() ? nullptr : &*found;
}

const Operand* argument(const Call& call, std::size_t position, std::string_view name) {
    if (const Operand* named = keyword_argument(call, name)) return named;
    std::size_t skip = call.kind == CallKind::method ? 1 : 0;
    for (const Operand& value : call.args) {
        if (skip > 0) {
            --skip;
            continue;
        }
        if (!value.keyword.empty()) return nullptr;
        if (position-- == 0) return &value;
    }
    return nullptr;
}

bool has_unpacked(const Call& call) { return std::ranges::any_of(call.args, is_unpacked); }

std::string_view spelled(const Operand& value) {
    std::string_view text = value.constant.str();
    const bool is_string =
        text.size() >= 2 && (text.front() == '\'' || text.front() == '"') && text.back() == text.front();
    return is_string ? text.substr(1, text.size() - 2) : text;
}

bool is_true(const Operand* value) {
    return value && (value->constant.str() == "true" || value->constant.str() == "True");
}

bool is_false(const Operand* value) {
    return value && (value->constant.str() == "false" || value->constant.str() == "False");
}

}  // namespace mp::lint
