#include "analyzer/region/configurations.hpp"

#include <algorithm>
#include <optional>

#include "analyzer/python/library/data_calls.hpp"
#include "analyzer/region/python_regions.hpp"
#include "kernels/base/paths.hpp"

namespace mp::lint {
namespace {

// Files that name files, and what they make in all: files that name each other would grow without end.
constexpr int kDeepest = 6;
constexpr std::size_t kMostLayers = 256;

Symbol key_in(Symbol mapping, std::string_view key) {
    return Symbol(std::string(mapping.str()).append(".").append(key));
}

std::string joined(const std::string& outer, std::string_view inner) {
    if (outer.empty() || inner.empty()) return outer + std::string(inner);
    return outer + "." + std::string(inner);
}

// "/a/run.yaml" of "/a/run.yaml.model.net".
Symbol root_of(Symbol mapping) {
    const std::string_view name = mapping.str();
    for (const std::string_view ending : {".yaml", ".yml", ".json"}) {
        const std::size_t at = name.find(std::string(ending) + ".");
        if (at != std::string_view::npos) return Symbol(name.substr(0, at + ending.size()));
    }
    return mapping;
}

}  // namespace

bool holds_configuration(const Unit& unit) {
    const bool is_file = unit.functions.size() == 1 && unit.functions[0].name.str() == "<file>";
    return is_file && !unit.functions[0].definitions.empty();
}

Symbol Configurations::file(std::string_view name, std::string_view code) {
    for (const std::string& directory : search_directories(code)) {
        const Symbol path(absolute_path(name, directory));
        if (finder_.read(path, {}).bound.definition) return path;
    }
    return {};
}

Symbol Configurations::composed(Symbol file) {
    if (!finder_.read(key_in(file, "defaults.0"), {}).bound.definition) return file;
    const Symbol whole("/" + std::string(file.str()));
    const auto [layers, is_new] = layers_.try_emplace(whole);
    if (is_new) compose(file, "", false, layers->second, 0);
    return whole;
}

void Configurations::compose(Symbol file, const std::string& below, bool assumed, Layers& out, int depth) {
    bool is_in = false;
    for (int i = 0; depth < kDeepest && out.size() < kMostLayers; ++i) {
        const Bound item = finder_.read(key_in(file, "defaults." + std::to_string(i)), {}).bound;
        if (!item.definition) break;
        const auto chosen = python::hydra_default(unquoted(item.definition->value.constant.str()));
        if (!chosen) continue;
        if (chosen->is_self) {
            is_in = true;
            out.push_back({file, below, assumed});
            continue;
        }
        const Symbol other = this->file(chosen->file, file.str());
        if (other.empty() || other == file) continue;
        const Bound package = finder_.read(Symbol(std::string(other.str()) + "@package"), {}).bound;
        std::string_view named = package.definition ? unquoted(package.definition->value.constant.str()) : "";
        if (named.empty() || named == "_group_") named = chosen->package;
        compose(other, named == "_global_" ? "" : joined(below, named), true, out, depth + 1);
    }
    if (!is_in) out.push_back({file, below, assumed});
}

Configurations::Layers Configurations::layers_of(Symbol mapping) const {
    const auto known = layers_.find(mapping);
    return known == layers_.end() ? Layers{{mapping}} : known->second;
}

Configurations::Value Configurations::member(Symbol mapping, std::string_view key) {
    const Symbol name = key_in(mapping, key);
    const auto [known, is_new] = members_.try_emplace(name);  // one that is being looked for is not known
    if (!is_new) return known->second;
    const Value found = resolved(mapping, find(mapping, key));
    return members_[name] = found;
}

Configurations::Value Configurations::find(Symbol mapping, std::string_view key) {
    Layers parts;  // mappings under this key, which are merged
    const Function* function = nullptr;
    const Layers layers = layers_of(mapping);
    for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
        if (!layer->below.empty()) {
            const std::string_view first = std::string_view(layer->below).substr(0, layer->below.find('.'));
            if (first != key) continue;
            const std::string_view rest = std::string_view(layer->below).substr(first.size());
            parts.push_back({layer->mapping, std::string(rest.substr(rest.empty() ? 0 : 1)), layer->assumed});
            if (!function) function = finder_.read(layer->mapping, {}).bound.function;
            continue;
        }
        const Bound bound = finder_.read(key_in(layer->mapping, key), {}).bound;
        if (!bound.definition) continue;
        const Operand& value = bound.definition->value;
        if (value.refers.empty() && parts.empty()) return {bound.function, &value, layer->assumed};
        if (value.refers.empty()) break;
        parts.push_back({value.refers, "", layer->assumed});
        if (!function) function = bound.function;
    }
    if (parts.empty()) return {};
    std::ranges::reverse(parts);
    Operand merged;
    merged.shape = Shape::object;
    const bool is_plain = parts.size() == 1 && parts[0].below.empty() && !parts[0].assumed;
    merged.refers = is_plain ? parts[0].mapping : key_in(mapping, key);
    if (!is_plain) layers_[merged.refers] = std::move(parts);
    return {function, &made_.emplace_back(merged)};
}

// `${model.dtype}` stands for the value there; what else has `${` only a run knows.
Configurations::Value Configurations::resolved(Symbol mapping, Value value) {
    const std::string_view text = value.operand ? unquoted(value.operand->constant.str()) : "";
    if (text.find("${") == std::string_view::npos) return value;
    const Value unknown{value.function, &made_.emplace_back(), value.assumed};
    std::string_view path = text;
    if (!path.starts_with("${") || path.find('}') != path.size() - 1) return unknown;
    path = path.substr(2, path.size() - 3);
    if (path.empty() || path.front() == '.' || path.find_first_of(":$ ") != path.npos) return unknown;
    Symbol at = root_of(mapping);
    for (;;) {
        const std::string_view key = path.substr(0, path.find('.'));
        const Value found = member(at, key);
        if (!found.operand) return unknown;
        path.remove_prefix(std::min(key.size() + 1, path.size()));
        if (path.empty()) return {found.function, found.operand, found.assumed || value.assumed};
        if (found.operand->refers.empty()) return unknown;
        at = found.operand->refers;
    }
}

std::vector<Symbol> Configurations::keys(Symbol mapping) {
    std::vector<Symbol> out;
    const auto add = [&](Symbol key) {
        if (std::ranges::find(out, key) == out.end()) out.push_back(key);
    };
    for (const Layer& layer : layers_of(mapping)) {
        if (!layer.below.empty()) {
            add(Symbol(std::string_view(layer.below).substr(0, layer.below.find('.'))));
            continue;
        }
        const Bound bound = finder_.read(layer.mapping, {}).bound;
        if (!bound.function) continue;
        const std::string prefix = std::string(layer.mapping.str()) + ".";
        for (const Definition& d : bound.function->definitions) {
            const std::string_view name = d.name.str();
            if (name.starts_with(prefix) && name.find('.', prefix.size()) == std::string_view::npos)
                add(Symbol(name.substr(prefix.size())));
        }
    }
    return out;
}

}  // namespace mp::lint
