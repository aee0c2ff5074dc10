#include "analyzer/python/syntax.hpp"

#include <tree_sitter/api.h>

#include <array>
#include <limits>
#include <memory>

extern "C" const TSLanguage* tree_sitter_python(void);

namespace mp::lint::python {
namespace {

struct Named {
    std::string_view name;
    Kind kind;
};

constexpr Named kKinds[] = {{"float", Kind::float_},
                            {"false", Kind::false_},
                            {"true", Kind::true_},
#define MP_PYTHON_KIND(name) {#name, Kind::name},
                            MP_PYTHON_KINDS(MP_PYTHON_KIND)
#undef MP_PYTHON_KIND
};

constexpr std::array<std::string_view, 25> kParts{
    "alias",       "alternative",  "argument", "arguments",  "attribute",   "body",  "condition",
    "consequence", "definition",   "function", "guard",      "key",         "left",  "module_name",
    "name",        "object",       "operator", "parameters", "return_type", "right", "subject",
    "subscript",   "superclasses", "type",     "value"};
static_assert(kParts.size() == static_cast<std::size_t>(Part::value) + 1);

// The grammar's numbers of the kinds and parts, looked up by name once.
struct Numbers {
    std::vector<Kind> kinds;                  // by symbol
    std::vector<std::uint8_t> part_of_field;  // 1 + Part by field of the grammar; 0: ignored

    Numbers() {
        const TSLanguage* language = tree_sitter_python();
        const auto symbols = static_cast<TSSymbol>(ts_language_symbol_count(language));
        kinds.assign(symbols, Kind::other);
        for (TSSymbol s = 0; s < symbols; ++s) {
            if (ts_language_symbol_type(language, s) != TSSymbolTypeRegular) continue;
            const std::string_view name = ts_language_symbol_name(language, s);
            for (const Named& known : kKinds)
                if (known.name == name) kinds[s] = known.kind;
        }
        part_of_field.assign(ts_language_field_count(language) + 1, 0);
        for (std::size_t i = 0; i < kParts.size(); ++i)
            part_of_field[ts_language_field_id_for_name(language, kParts[i].data(),
                                                        static_cast<std::uint32_t>(kParts[i].size()))] =
                static_cast<std::uint8_t>(i + 1);
    }
};

const Numbers& numbers() {
    static const Numbers it;
    return it;
}

constexpr std::uint64_t kMaxParseMicroseconds = 10'000'000;

bool is_action(Kind kind) {
    return kind == Kind::call || kind == Kind::await || kind == Kind::yield || kind == Kind::named_expression;
}

// Punctuation is dropped: kinds and parts already contain its information.
bool is_punctuation(std::string_view text) {
    return text.empty() || std::string_view("()[]{},:.;\"'\\").find(text[0]) != std::string_view::npos;
}

}  // namespace

// Builds the tree in one walk over the parser's tree.
struct Tree::Builder {
    Tree& tree;
    const Numbers& grammar = numbers();
    std::vector<std::uint32_t> open{};  // items whose children are being added

    void run(TSNode root) {
        TSTreeCursor cursor = ts_tree_cursor_new(root);
        bool down = add(cursor);
        for (;;) {
            if (down && ts_tree_cursor_goto_first_child(&cursor)) {
                open.push_back(tree.size() - 1);
            } else {
                if (!next(cursor)) break;
            }
            down = add(cursor);
        }
        ts_tree_cursor_delete(&cursor);
    }

    bool next(TSTreeCursor& cursor) {
        while (!ts_tree_cursor_goto_next_sibling(&cursor)) {
            if (open.empty()) return false;
            close();
            ts_tree_cursor_goto_parent(&cursor);
        }
        return true;
    }

    void close() {
        Item& item = tree.items_[open.back()];
        item.next = tree.size();
        open.pop_back();
        if (open.empty()) return;
        Item& parent = tree.items_[open.back()];
        parent.error |= item.error;
        parent.call |= item.call;
    }

    // Adds the node; returns whether to visit its children.
    bool add(const TSTreeCursor& cursor) {
        const TSNode node = ts_tree_cursor_current_node(&cursor);
        Item item;
        item.begin = ts_node_start_byte(node);
        item.end = ts_node_end_byte(node);
        item.token = !ts_node_is_named(node);
        if (item.token && (item.begin == item.end || is_punctuation(tree.text_.substr(item.begin))))
            return missing(node);
        const TSSymbol symbol = ts_node_symbol(node);
        item.kind = symbol < grammar.kinds.size() ? grammar.kinds[symbol] : Kind::error;
        if (item.kind == Kind::comment || item.kind == Kind::line_continuation) return false;
        const TSPoint from = ts_node_start_point(node), to = ts_node_end_point(node);
        item.line = from.row + 1, item.column = from.column + 1;
        item.end_line = to.row + 1, item.end_column = to.column + 1;
        if (const TSFieldId field = ts_tree_cursor_current_field_id(&cursor))
            item.part = grammar.part_of_field[field];
        return append(item, node);
    }

    bool append(Item item, TSNode node) {
        const bool deep = open.size() >= kMaxDepth && ts_node_child_count(node) > 0;
        item.error = item.kind == Kind::error || deep || ts_node_is_missing(node);
        if (deep) item.kind = Kind::error;
        tree.errors_ += item.error;
        item.call = is_action(item.kind);
        item.next = tree.size() + 1;
        item.parent = open.empty() ? 0 : open.back();
        if (!open.empty()) {
            tree.items_[open.back()].error |= item.error;
            tree.items_[open.back()].call |= item.call;
        }
        tree.items_.push_back(item);
        return !item.token && !deep;
    }

    bool missing(TSNode node) {
        if (!ts_node_is_missing(node)) return false;
        ++tree.errors_;
        if (!open.empty()) tree.items_[open.back()].error = true;
        return false;
    }
};

SourceSpan Node::span() const {
    if (!tree_) return {};
    const Tree::Item& item = tree_->items_[index_];
    return {.file = tree_->file(),
            .line = item.line,
            .column = item.column,
            .end_line = item.end_line,
            .end_column = item.end_column};
}

Node Node::part(Part part) const {
    for (const Node node : children())
        if (node.is_part(part)) return node;
    return {};
}

Node Node::child(std::uint32_t n) const {
    for (const Node node : children())
        if (!node.is_token() && n-- == 0) return node;
    return {};
}

Node Node::operator_token() const {
    for (const Node node : children())
        if (node.is_token()) return node;
    return {};
}

Node Node::parent() const { return tree_ && index_ > 0 ? Node(tree_, tree_->items_[index_].parent) : Node{}; }

Tree::Tree(std::string_view text, Symbol file) : text_(text), file_(file) {
    if (text.size() > std::numeric_limits<std::uint32_t>::max()) return;
    const std::unique_ptr<TSParser, decltype(&ts_parser_delete)> parser(ts_parser_new(), &ts_parser_delete);
    if (!ts_parser_set_language(parser.get(), tree_sitter_python())) return;
    // Some broken texts cost the parser quadratic time.
    ts_parser_set_timeout_micros(parser.get(), kMaxParseMicroseconds);
    TSTree* const parsed =
        ts_parser_parse_string(parser.get(), nullptr, text.data(), static_cast<std::uint32_t>(text.size()));
    if (!parsed) return;
    items_.reserve(text.size() / 5 + 16);
    Builder{*this}.run(ts_tree_root_node(parsed));
    ts_tree_delete(parsed);
}

}  // namespace mp::lint::python
