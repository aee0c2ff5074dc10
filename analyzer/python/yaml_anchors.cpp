#include "analyzer/python/yaml_anchors.hpp"

#include <utility>

namespace mp::lint::python {

void YamlAnchors::open(std::string_view anchor, std::size_t depth) {
    nodes_.insert_or_assign(std::string(anchor), Node{.depth = depth, .first = visits_.size()});
    ++open_;
}

void YamlAnchors::close(std::string_view anchor) {
    Node& node = nodes_.find(anchor)->second;
    node.last = visits_.size();
    node.complete = true;
    --open_;
}

void YamlAnchors::repeat(std::string_view anchor, const JsonPath& path) {
    for (Visit& value : behind(anchor, path)) visit(std::move(value));
}

void YamlAnchors::merge(std::string_view anchor, const JsonPath& path, std::set<std::string>& keys) {
    std::set<std::string> added;
    for (Visit& value : behind(anchor, path)) {
        if (value.path.size() <= path.size()) continue;  // the node is no mapping
        const std::string key = value.path[path.size()];
        // An empty key is the end of the merged mapping, which ends no mapping here.
        if (key.empty() || keys.contains(key)) continue;
        added.insert(key);
        visit(std::move(value));
    }
    keys.merge(added);
}

void YamlAnchors::on_string(const JsonPath& path, std::string_view value, std::size_t begin,
                            std::size_t end) {
    visit({.kind = Kind::string, .path = path, .value = std::string(value), .begin = begin, .end = end});
}

void YamlAnchors::on_scalar(const JsonPath& path, std::string_view value, std::size_t begin) {
    visit({.kind = Kind::scalar, .path = path, .value = std::string(value), .begin = begin});
}

void YamlAnchors::on_object_end(const JsonPath& path) { visit({.kind = Kind::object_end, .path = path}); }

void YamlAnchors::visit(Visit value) {
    switch (value.kind) {
        case Kind::string:
            visitor_.on_string(value.path, value.value, value.begin, value.end);
            break;
        case Kind::scalar:
            visitor_.on_scalar(value.path, value.value, value.begin);
            break;
        case Kind::object_end:
            visitor_.on_object_end(value.path);
            break;
    }
    if (open_ > 0) visits_.push_back(std::move(value));
}

// The values behind the anchor with the paths that they have below `path`.
std::vector<YamlAnchors::Visit> YamlAnchors::behind(std::string_view anchor, const JsonPath& path) {
    const auto found = nodes_.find(anchor);
    if (found == nodes_.end() || !found->second.complete) return {};
    const Node& node = found->second;
    if (node.last - node.first > kMostCopies - copies_) return {};
    copies_ += node.last - node.first;
    std::vector<Visit> out(visits_.begin() + static_cast<std::ptrdiff_t>(node.first),
                           visits_.begin() + static_cast<std::ptrdiff_t>(node.last));
    for (Visit& value : out) {
        JsonPath moved = path;
        moved.insert(moved.end(), value.path.begin() + static_cast<std::ptrdiff_t>(node.depth),
                     value.path.end());
        value.path = std::move(moved);
    }
    return out;
}

}  // namespace mp::lint::python
