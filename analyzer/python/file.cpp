#include "analyzer/python/file.hpp"

#include <algorithm>

#include "analyzer/python/builtins.hpp"
#include "analyzer/python/library/library.hpp"
#include "kernels/base/text.hpp"

namespace mp::lint::python {
namespace {

constexpr std::size_t kMaxText = 80;

bool is_package(std::string_view path) { return path.ends_with("__init__.py"); }

}  // namespace

File::File(const Source& source, Unit& into)
    : tree(source.text, Symbol(source.path)),
      names(source.module, is_package(source.path)),
      unit(into),
      sets_default_dtype(source.text.find("set_default_") != std::string_view::npos) {}

Scope& File::add_scope(Scope::Kind kind, Scope* parent, Symbol prefix) {
    Scope& scope = *scopes_.emplace_back(std::make_unique<Scope>());
    scope.kind = kind;
    scope.parent = parent;
    scope.prefix = prefix;
    if (parent) scope.owner = parent->owner;
    return scope;
}

bool File::is_library_name(Symbol qualified) const { return is_library(first_part(qualified.str())); }

bool File::is_project_name(Symbol qualified) const {
    const std::string_view root = first_part(qualified.str());
    return !root.empty() && root != "?" && !is_library(root) && !is_standard(root) &&
           !is_builtin(qualified.str());
}

Symbol File::name_of_lambda(Symbol scope, Node node) {
    std::vector<std::uint32_t>& begins = lambdas_[scope];
    const auto known = std::ranges::find(begins, node.begin());
    const auto number = known - begins.begin() + 1;
    if (known == begins.end()) begins.push_back(node.begin());
    return names.join(scope, "<lambda:" + std::to_string(number) + ">");
}

Symbol File::text_of(Node node) {
    const std::string_view text = node.text();
    const std::string_view start = utf8_prefix(text, 2 * kMaxText);
    const auto is_blank = [](char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\\'; };
    bool plain = text.size() <= kMaxText;
    for (std::size_t i = 0; plain && i < start.size(); ++i)
        plain = !is_blank(start[i]) || (start[i] == ' ' && i > 0 && !is_blank(start[i - 1]));
    if (plain) return names.symbol(text);
    std::string dense;
    for (const char c : start) {
        if (!is_blank(c))
            dense += c;
        else if (!dense.empty() && dense.back() != ' ')
            dense += ' ';
        if (dense.size() > kMaxText) break;
    }
    return Symbol(utf8_prefix(dense, kMaxText));
}

Value File::detached(Value v, const std::vector<Call>& calls) {
    const bool object = v.is.shape != Shape::tensor && v.is.shape != Shape::scalar;
    if (v.contexts == kNone && v.is.call != kNone && object) {
        const Call& made = calls[static_cast<std::size_t>(v.is.call)];
        if (made.kind != CallKind::op && !is_display(made)) {
            choices.push_back({{.made = made}});
            v.contexts = static_cast<std::int32_t>(choices.size() - 1);
        }
    }
    detach(v.is);
    v.branches = {kNone, kNone};
    return v;
}

void File::add_to_attribute(AttributeInfo& attribute, const Value& v, const std::vector<Call>& calls) {
    Value kept = detached(v, calls);
    kept.is.name = {};
    const bool follows =
        kept.is.shape == Shape::module || attribute.is_buffer || last_part(kept.object.str()) == "Parameter";
    // Its dtype is the one its owner was cast to, not the one it was made with.
    if (follows && !is_half(kept.is.dtype)) kept.is.dtype = DType::unknown;
    if (attribute.set) {
        // `self.x = None` first, or on another path: code that uses the attribute has checked for None.
        const Symbol none("None");
        const bool dtype = kept.is.shape == Shape::dtype || attribute.value.is.shape == Shape::dtype;
        if (kept.is.constant == none && !dtype) return;
        if (attribute.value.is.constant != none || dtype) kept = common(attribute.value, kept);
    }
    attribute.value = std::move(kept);
    attribute.set = true;
}

bool is_display(const Call& call) {
    if (call.kind != CallKind::constructor) return false;
    const std::string_view name = call.name.str();
    return name == "dict" || name == "list" || name == "tuple" || name == "set";
}

SourceSpan end_of(Node node) {
    SourceSpan span = node.span();
    span.line = span.end_line;
    span.column = span.end_column;
    return span;
}

}  // namespace mp::lint::python
