#pragma once

// The concrete syntax of one Python source. Tolerant: what cannot be parsed becomes nodes of kind
// error, and the rest of the file is still there. The parser behind it (tree-sitter) is known to this
// header alone.

#include <tree_sitter/api.h>

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "kernels/numerics/source_span.hpp"

namespace mp::lint::python {

// Kinds of node that extraction tells apart; any other is `other`.
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
    X(keyword_separator) X(lambda) X(lambda_parameters) X(list) X(list_comprehension)               \
    X(list_pattern) X(list_splat) X(list_splat_pattern) X(match_statement) X(module)                \
    X(named_expression) X(nonlocal_statement) X(none) X(not_operator) X(pair) X(parameters)         \
    X(parenthesized_expression) X(pass_statement) X(pattern_list) X(positional_separator)           \
    X(raise_statement) X(relative_import) X(return_statement) X(set) X(set_comprehension) X(slice)  \
    X(string) X(string_content) X(subscript) X(try_statement) X(tuple) X(tuple_pattern) X(type)     \
    X(typed_default_parameter) X(typed_parameter) X(unary_operator) X(while_statement)              \
    X(wildcard_import) X(with_clause) X(with_item) X(with_statement) X(yield)

enum class Kind : std::uint8_t {
    other,
    error,    // a stretch that does not parse
    float_,   // "float", "false" and "true" of the grammar: keywords of C++
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

// A view of a node: valid as long as its tree. A null node has kind `other`, no text and no children.
class Node {
public:
    Node() = default;

    explicit operator bool() const { return tree_ != nullptr; }
    Kind kind() const;
    std::string_view text() const;
    SourceSpan span() const;
    std::uint32_t begin() const { return ts_node_start_byte(node_); }  // byte offset in the text
    std::uint32_t end() const { return ts_node_end_byte(node_); }

    Node part(Part) const;                 // null when absent
    std::vector<Node> parts(Part) const;   // several children of one name: targets of a subscript
    std::vector<Node> children() const;    // named ones, comments left out
    Node child(std::uint32_t index) const;  // the index-th named child, comments counted
    std::uint32_t child_count() const { return tree_ ? ts_node_named_child_count(node_) : 0; }
    std::vector<std::string_view> tokens() const;  // its unnamed children: operators and keywords
    Node parent() const;
    bool has_error() const { return tree_ && ts_node_has_error(node_); }

    friend bool operator==(const Node& a, const Node& b) {
        return a.tree_ == b.tree_ && (!a.tree_ || ts_node_eq(a.node_, b.node_));
    }

private:
    friend class Tree;
    Node(TSNode node, const Tree* tree) : node_(node), tree_(ts_node_is_null(node) ? nullptr : tree) {}

    TSNode node_{};
    const Tree* tree_ = nullptr;
};

class Tree {
public:
    // Parses `text`, which must outlive the tree. `file` is the name in spans. Null root when the text is
    // larger than 4 GiB or the parser gives up.
    Tree(std::string_view text, Symbol file);
    ~Tree();
    Tree(const Tree&) = delete;
    Tree& operator=(const Tree&) = delete;

    Node root() const;
    std::string_view text() const { return text_; }
    Symbol file() const { return file_; }

private:
    std::string_view text_;
    Symbol file_;
    TSTree* tree_ = nullptr;
};

}  // namespace mp::lint::python
