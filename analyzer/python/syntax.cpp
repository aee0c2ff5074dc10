#include "analyzer/python/syntax.hpp"

#include <array>
#include <limits>

extern "C" const TSLanguage* tree_sitter_python(void);

namespace mp::lint::python {
namespace {

struct Named {
    std::string_view name;
    Kind kind;
};

constexpr Named kKinds[] = {
    {"float", Kind::float_},
    {"false", Kind::false_},
    {"true", Kind::true_},
#define MP_PYTHON_KIND(name) {#name, Kind::name},
    MP_PYTHON_KINDS(MP_PYTHON_KIND)
#undef MP_PYTHON_KIND
};

constexpr std::array<std::string_view, 25> kParts{
    "alias",     "alternative", "argument",    "arguments", "attribute",    "body", "condition",
    "consequence", "definition", "function",   "guard",     "key",          "left", "module_name",
    "name",      "object",      "operator",    "parameters", "return_type", "right", "subject",
    "subscript", "superclasses", "type",       "value"};
static_assert(kParts.size() == static_cast<std::size_t>(Part::value) + 1);

// The grammar's numbers of the kinds and parts, looked up once by name.
struct Numbers {
    std::vector<Kind> kinds;  // by symbol
    std::array<TSFieldId, kParts.size()> parts{};

    Numbers() {
        const TSLanguage* language = tree_sitter_python();
        kinds.assign(ts_language_symbol_count(language), Kind::other);
        for (TSSymbol s = 0; s < kinds.size(); ++s) {
            if (ts_language_symbol_type(language, s) != TSSymbolTypeRegular) continue;
            const std::string_view name = ts_language_symbol_name(language, s);
            for (const Named& known : kKinds)
                if (known.name == name) kinds[s] = known.kind;
        }
        for (std::size_t i = 0; i < kParts.size(); ++i)
            parts[i] = ts_language_field_id_for_name(
                language, kParts[i].data(), static_cast<std::uint32_t>(kParts[i].size()));
    }
};

const Numbers& numbers() {
    static const Numbers it;
    return it;
}

TSFieldId field_of(Part part) { return numbers().parts[static_cast<std::size_t>(part)]; }

}  // namespace

Kind Node::kind() const {
    if (!tree_) return Kind::other;
    const TSSymbol symbol = ts_node_symbol(node_);
    if (symbol < numbers().kinds.size()) return numbers().kinds[symbol];
    return ts_node_is_error(node_) ? Kind::error : Kind::other;
}

std::string_view Node::text() const {
    return tree_ ? tree_->text().substr(begin(), end() - begin()) : std::string_view{};
}

SourceSpan Node::span() const {
    if (!tree_) return {};
    const TSPoint from = ts_node_start_point(node_), to = ts_node_end_point(node_);
    return {.file = tree_->file(),
            .line = from.row + 1,
            .column = from.column + 1,
            .end_line = to.row + 1,
            .end_column = to.column + 1};
}

Node Node::part(Part part) const {
    return tree_ ? Node(ts_node_child_by_field_id(node_, field_of(part)), tree_) : Node{};
}

std::vector<Node> Node::parts(Part part) const {
    std::vector<Node> found;
    if (!tree_) return found;
    TSTreeCursor cursor = ts_tree_cursor_new(node_);
    if (ts_tree_cursor_goto_first_child(&cursor)) {
        do {
            if (ts_tree_cursor_current_field_id(&cursor) == field_of(part))
                found.push_back(Node(ts_tree_cursor_current_node(&cursor), tree_));
        } while (ts_tree_cursor_goto_next_sibling(&cursor));
    }
    ts_tree_cursor_delete(&cursor);
    return found;
}

std::vector<Node> Node::children() const {
    std::vector<Node> found;
    if (!tree_) return found;
    // A cursor is linear in the number of children; asking by index is quadratic.
    TSTreeCursor cursor = ts_tree_cursor_new(node_);
    if (ts_tree_cursor_goto_first_child(&cursor)) {
        do {
            const Node node(ts_tree_cursor_current_node(&cursor), tree_);
            if (ts_node_is_named(node.node_) && node.kind() != Kind::comment)
                found.push_back(node);
        } while (ts_tree_cursor_goto_next_sibling(&cursor));
    }
    ts_tree_cursor_delete(&cursor);
    return found;
}

Node Node::child(std::uint32_t index) const {
    return tree_ ? Node(ts_node_named_child(node_, index), tree_) : Node{};
}

std::vector<std::string_view> Node::tokens() const {
    std::vector<std::string_view> found;
    const std::uint32_t count = tree_ ? ts_node_child_count(node_) : 0;
    for (std::uint32_t i = 0; i < count; ++i) {
        const Node node(ts_node_child(node_, i), tree_);
        if (node && !ts_node_is_named(node.node_)) found.push_back(node.text());
    }
    return found;
}

Node Node::parent() const { return tree_ ? Node(ts_node_parent(node_), tree_) : Node{}; }

Tree::Tree(std::string_view text, Symbol file) : text_(text), file_(file) {
    if (text.size() > std::numeric_limits<std::uint32_t>::max()) return;
    const std::unique_ptr<TSParser, decltype(&ts_parser_delete)> parser(ts_parser_new(),
                                                                        &ts_parser_delete);
    if (!ts_parser_set_language(parser.get(), tree_sitter_python())) return;
    tree_ = ts_parser_parse_string(parser.get(), nullptr, text.data(),
                                   static_cast<std::uint32_t>(text.size()));
}

Tree::~Tree() {
    if (tree_) ts_tree_delete(tree_);
}

Node Tree::root() const { return tree_ ? Node(ts_tree_root_node(tree_), this) : Node{}; }

}  // namespace mp::lint::python
