#include "analyzer/python/names.hpp"

#include <algorithm>
#include <cctype>

namespace mp::lint::python {

Names::Names(std::string_view module, bool is_package) : module_(module), package_(module) {
    if (!is_package) {
        const std::size_t dot = package_.rfind('.');
        package_.erase(dot == std::string::npos ? 0 : dot);
    }
}

Symbol Names::symbol(std::string_view text) {
    const auto [place, added] = known_.try_emplace(text);
    if (added) place->second = Symbol(text);
    return place->second;
}

Symbol Names::join(Symbol first, std::string_view second) {
    if (first.empty()) return Symbol(second);
    const Symbol tail = Symbol(second);
    const std::uint64_t key = (std::uint64_t{first.id()} << 32) | tail.id();
    const auto [place, added] = joined_.try_emplace(key);
    if (added) {
        scratch_.assign(first.str()).append(1, '.').append(second);
        place->second = Symbol(scratch_);
    }
    return place->second;
}

Symbol Names::dotted(Node name) {
    const std::string_view text = name.text();
    const auto is_blank = [](unsigned char c) { return std::isspace(c) != 0 || c == '\\'; };
    if (std::none_of(text.begin(), text.end(), is_blank)) return symbol(text);
    std::string dense(text);
    std::erase_if(dense, is_blank);
    return Symbol(dense);
}

Symbol Names::imported(Node module_name) {
    if (module_name.kind() != Kind::relative_import) return dotted(module_name);
    std::string base = package_;
    Symbol below;
    for (const Node part : module_name.children()) {
        if (part.kind() == Kind::dotted_name) below = dotted(part);
        if (part.kind() != Kind::import_prefix) continue;
        const auto dots = std::count(part.text().begin(), part.text().end(), '.');
        for (auto up = dots; up > 1; --up) {
            const std::size_t dot = base.rfind('.');
            base.erase(dot == std::string::npos ? 0 : dot);
        }
    }
    return below.empty() ? Symbol(base) : join(Symbol(base), below.str());
}

}  // namespace mp::lint::python
