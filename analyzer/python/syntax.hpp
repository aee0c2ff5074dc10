#pragma once

// The concrete syntax of one Python source. Text that cannot be parsed becomes nodes of kind `error`; the
// rest of the file is still there. Only this header's implementation uses the parser (tree-sitter).

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/numerics/source_span.hpp"

namespace mp::lint::python {

// Kinds of node that extraction distinguishes; any other is `other`.
// clang-format off: a table
#define MP_PYTHON_KINDS(X)                                                                          \
    X(aliased_import) X(argument_list) X(as_pattern) X(as_pattern_target) X(assert_statement)       \
    X(assignment) X(attribute) X(augmented_assignment) X(await) X(binary_operator) X(block)         \
    X(boolean_operator) X(break_statement) X(call) X(case_clause) X(class_definition) X(comment)    \
    X(comparison_operator) X(concatenated_string) X(conditional_expression) X(continue_statement)   \
    X(decorated_definition) X(decorator) X(default_parameter) X(delete_statement) X(dictionary)     \
    X(dictionary_comprehension) X(dictionary_splat) X(dictionary_splat_pattern) X(dotted_name)      \
    X(elif_clause) X(ellipsis) X(else_clause) X(except_clause) X(except_group_clause)               \
    X(expression_list) X(expression_statement) X(finally_clause) X(for_in_clause) X(for_statement)  \
    X(format_specifier) X(function_definition) X(future_import_statement) X(generator_expression)   \
    X(global_statement) X(identifier) X(if_clause) X(if_statement) X(import_from_statement)         \
    X(import_prefix) X(import_statement) X(integer) X(interpolation) X(keyword_argument)            \
    X(keyword_separator) X(lambda) X(lambda_parameters) X(line_continuation) X(list)                \
    X(list_comprehension) X(list_pattern) X(list_splat) X(list_splat_pattern) X(match_statement)    \
    X(module) X(named_expression) X(nonlocal_statement) X(none) X(not_operator) X(pair)             \
    X(parameters) X(parenthesized_expression) X(pass_statement) X(pattern_list)                     \
    X(positional_separator) X(raise_statement) X(relative_import) X(return_statement) X(set)        \
    X(set_comprehension) X(slice) X(string) X(string_content) X(subscript) X(try_statement)         \
    X(tuple) X(tuple_pattern) X(type) X(typed_default_parameter) X(typed_parameter)                 \
    X(unary_operator) X(while_statement) X(wildcard_import) X(with_clause) X(with_item)             \
    X(with_statement) X(yield)
// clang-format on

enum class Kind : std::uint8_t {
    other,
    error,   // a part of the text that does not parse
    float_,  // "float", "false" and "true" of the grammar: keywords of C++
    false_,
    true_,
#define MP_PYTHON_KIND(name) name,
    MP_PYTHON_KINDS(MP_PYTHON_KIND)
#undef MP_PYTHON_KIND
};

// Named parts of a node, as the grammar calls them.
enum class Part : std::uint8_t {
    alias,
    alternative,
    argument,
    arguments,
    attribute,
    body,
    condition,
    consequence,
    definition,
    function,
    guard,
    key,
    left,
    module_name,
    name,
    object,
    operator_,
    parameters,
    return_type,
    right,
    subject,
    subscript,
    superclasses,
    type,
    value,
};

class Tree;
class Children;

// A node: valid as long as its tree. A null node has kind `other`, no text and no children.
class Node {
public:
    Node() = default;

    explicit operator bool() const { return tree_ != nullptr; }
    Kind kind() const;
    std::string_view text() const;
    SourceSpan span() const;
    std::uint32_t begin() const;  // byte offset in the text
    std::uint32_t end() const;
    std::uint32_t index() const { return index_; }  // in the tree, in the order of the text
    std::uint32_t end_index() const;                // of the first node after it

    Node part(Part) const;              // the first of this name; null when absent
    Children children() const;          // named ones and operators, without comments and line ends
    Node child(std::uint32_t n) const;  // the n-th named child; null when there are fewer
    Node operator_token() const;        // the unnamed child that is the operator
    bool is_part(Part) const;
    bool is_token() const;  // an operator or keyword
    Node parent() const;
    bool has_error() const;  // it contains an error node
    bool has_call() const;   // it contains a call, await, yield or assignment, or is one
    // In the order of the text: the first node inside this one, and the first node after it.
    Node next_inside() const;
    Node next_outside() const;
    bool contains(const Node& other) const {
        return tree_ && other.tree_ == tree_ && other.index_ >= index_ && other.index_ < end_index();
    }

    friend bool operator==(const Node& a, const Node& b) {
        return a.tree_ == b.tree_ && a.index_ == b.index_;
    }

private:
    friend class Tree;
    friend class Children;
    Node(const Tree* tree, std::uint32_t index) : tree_(tree), index_(index) {}
    const Tree* tree_ = nullptr;
    std::uint32_t index_ = 0;
};

// The children of a node as a lazy range, without a list.
class Children {
public:
    class Iterator {
    public:
        Iterator(const Tree* tree, std::uint32_t at) : tree_(tree), at_(at) {}
        Node operator*() const { return {tree_, at_}; }
        Iterator& operator++();
        friend bool operator==(const Iterator&, const Iterator&) = default;

    private:
        const Tree* tree_ = nullptr;
        std::uint32_t at_ = 0;
    };

    Children(const Tree* tree, std::uint32_t first, std::uint32_t end)
        : tree_(tree), first_(first), end_(end) {}
    Iterator begin() const { return {tree_, first_}; }
    Iterator end() const { return {tree_, end_}; }
    bool empty() const { return first_ == end_; }

private:
    const Tree* tree_ = nullptr;
    std::uint32_t first_ = 0;
    std::uint32_t end_ = 0;
};

class Tree {
public:
    // Limit on nesting. A deeper node that has children becomes an error node without children.
    static constexpr std::uint32_t kMaxDepth = 500;

    // Parses `text`, which must outlive the tree. `file` is the name in spans. Null root when the text is
    // larger than 4 GiB or the parser gives up.
    Tree(std::string_view text, Symbol file);
    Tree(const Tree&) = delete;
    Tree& operator=(const Tree&) = delete;

    Node root() const { return items_.empty() ? Node{} : Node(this, 0); }
    std::string_view text() const { return text_; }
    Symbol file() const { return file_; }
    std::uint32_t errors() const { return errors_; }
    std::uint32_t size() const { return static_cast<std::uint32_t>(items_.size()); }
    Node at(std::uint32_t index) const { return {this, index}; }

private:
    friend class Node;
    friend class Children;
    // The nodes in the order of the text. The descendants of item i are the items after it, up to `next`.
    struct Item {
        std::uint32_t begin = 0, end = 0;
        std::uint32_t line = 0, column = 0, end_line = 0, end_column = 0;
        std::uint32_t next = 0;
        std::uint32_t parent = 0;
        Kind kind = Kind::other;
        std::uint8_t part = 0;  // 1 + Part; 0: none
        bool token = false;
        bool error = false;
        bool call = false;
    };
    struct Builder;

    std::string_view text_;
    Symbol file_;
    std::vector<Item> items_;
    std::uint32_t errors_ = 0;
};

inline Kind Node::kind() const { return tree_ ? tree_->items_[index_].kind : Kind::other; }
inline std::uint32_t Node::begin() const { return tree_ ? tree_->items_[index_].begin : 0; }
inline std::uint32_t Node::end() const { return tree_ ? tree_->items_[index_].end : 0; }
inline std::string_view Node::text() const {
    return tree_ ? tree_->text_.substr(begin(), end() - begin()) : std::string_view{};
}
inline std::uint32_t Node::end_index() const { return tree_ ? tree_->items_[index_].next : 0; }
inline bool Node::has_error() const { return tree_ && tree_->items_[index_].error; }
inline bool Node::has_call() const { return tree_ && tree_->items_[index_].call; }
inline bool Node::is_token() const { return tree_ && tree_->items_[index_].token; }
inline bool Node::is_part(Part part) const {
    return tree_ && tree_->items_[index_].part == static_cast<std::uint8_t>(part) + 1;
}
inline Node Node::next_inside() const {
    return tree_ && index_ + 1 < tree_->size() ? Node(tree_, index_ + 1) : Node{};
}
inline Node Node::next_outside() const {
    return tree_ && end_index() < tree_->size() ? Node(tree_, end_index()) : Node{};
}
inline Children Node::children() const { return {tree_, index_ + 1, tree_ ? end_index() : index_ + 1}; }
inline Children::Iterator& Children::Iterator::operator++() {
    at_ = tree_->items_[at_].next;
    return *this;
}

}  // namespace mp::lint::python
