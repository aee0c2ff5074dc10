#pragma once

// The values of the anchors of a YAML document, so that aliases and merge keys can repeat them.

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/python/json_reader.hpp"

namespace mp::lint::python {

// Passes every value on, and remembers those of nodes with an anchor. The copies of one document are limited, so
// that no text makes it grow: what would exceed the limit is left out, as is the alias of a node inside itself.
class YamlAnchors : public JsonVisitor {
public:
    static constexpr std::size_t kMostCopies = 1000;

    explicit YamlAnchors(JsonVisitor& visitor) : visitor_(visitor) {}

    // Around the values of a node with an anchor, whose path has `depth` keys.
    void open(std::string_view anchor, std::size_t depth);
    void close(std::string_view anchor);

    // The values behind `anchor` once more, at `path`; for a merge key those without a key in `keys`, which gets
    // theirs.
    void repeat(std::string_view anchor, const JsonPath& path);
    void merge(std::string_view anchor, const JsonPath& path, std::set<std::string>& keys);

    void on_string(const JsonPath& path, std::string_view value, std::size_t begin, std::size_t end) override;
    void on_scalar(const JsonPath& path, std::string_view value, std::size_t begin) override;
    void on_object_end(const JsonPath& path) override;

private:
    enum class Kind : std::uint8_t { string, scalar, object_end };
    struct Visit {
        Kind kind = Kind::scalar;
        JsonPath path;
        std::string value{};
        std::size_t begin = 0, end = 0;
    };
    struct Node {
        std::size_t depth = 0;
        std::size_t first = 0, last = 0;  // in visits_
        bool complete = false;
    };

    void visit(Visit value);
    std::vector<Visit> behind(std::string_view anchor, const JsonPath& path);

    JsonVisitor& visitor_;
    std::map<std::string, Node, std::less<>> nodes_;
    std::vector<Visit> visits_;
    std::size_t open_ = 0;
    std::size_t copies_ = 0;
};

}  // namespace mp::lint::python
