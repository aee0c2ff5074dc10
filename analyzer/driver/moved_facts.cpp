#include "analyzer/driver/moved_facts.hpp"

#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/facts/fields.hpp"

namespace mp::lint {
namespace {

// A lambda is named by its place: "pkg.mod.<lambda:12:4>".
constexpr std::string_view kLambda = "<lambda:";

bool names_lambda(std::string_view text) { return text.find(kLambda) != std::string_view::npos; }

// Every place and every name of a lambda in a unit, in the order of the field lists.
class Places {
public:
    explicit Places(Unit& unit) {
        for (Function& f : unit.functions) {
            fields(*this, f);
            body_fields(*this, f);
        }
    }

    std::vector<SourceSpan*> spans;
    std::vector<Symbol*> lambdas;

    void place(SourceSpan& s) { value(s); }
    void title(Symbol& s) { value(s); }
    void dtypes(DType, DType) {}
    template <class F>
    void bare(std::string_view, F& field, const F&) {
        value(field);
    }
    template <class F>
    void operator()(std::string_view, F& field, const F& = F{}) {
        value(field);
    }
    void or_title(std::string_view, Symbol& field, Symbol) { value(field); }
    void nested(std::string_view, Operand& operand) { value(operand); }

    void value(SourceSpan& s) { spans.push_back(&s); }
    void value(Symbol& s) {
        if (names_lambda(s.str())) lambdas.push_back(&s);
    }
    void value(Op&) {}
    template <class T>
    void value(std::vector<T>& list) {
        for (T& item : list) value(item);
    }
    template <class T>
    void value(T& v) {
        if constexpr (std::is_class_v<T>) fields(*this, v);
    }
};

bool match(SourceSpan& before, SourceSpan& after, Symbol file, LineMap& lines) {
    if (before.file != file || after.file != file) return true;  // compared as they are
    if (!lines.add(before.line, after.line) || !lines.add(before.end_line, after.end_line)) return false;
    after.line = before.line;
    after.end_line = before.end_line;
    return true;
}

// "12" of "12:4>", and what follows it.
std::optional<std::uint32_t> take_line(std::string_view& rest) {
    std::uint32_t line = 0;
    const auto [end, fault] = std::from_chars(rest.data(), rest.data() + rest.size(), line);
    if (fault != std::errc{}) return std::nullopt;
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    return line;
}

// The same text but for the lines at which lambdas stand.
bool match(std::string_view before, std::string_view after, LineMap& lines) {
    for (;;) {
        const std::size_t at = before.find(kLambda);
        if (at != after.find(kLambda)) return false;
        if (at == std::string_view::npos) return before == after;
        const std::size_t head = at + kLambda.size();
        if (before.substr(0, head) != after.substr(0, head)) return false;
        before.remove_prefix(head);
        after.remove_prefix(head);
        const auto from = take_line(before);
        const auto to = take_line(after);
        if (from.has_value() != to.has_value() || (from && !lines.add(*from, *to))) return false;
    }
}

}  // namespace

bool LineMap::add(std::uint32_t before, std::uint32_t after) {
    const auto [here, is_new] = lines_.try_emplace(before, after);
    if (!is_new) return here->second == after;
    const auto next = std::next(here);
    if (next != lines_.end() && next->second <= after) return false;
    return here == lines_.begin() || std::prev(here)->second < after;
}

std::optional<std::uint32_t> LineMap::of(std::uint32_t before) const {
    const auto found = lines_.find(before);
    if (found == lines_.end()) return std::nullopt;
    return found->second;
}

std::optional<LineMap> moved_lines(Unit before, Unit after) {
    Places then(before);
    Places now(after);
    if (then.spans.size() != now.spans.size() || then.lambdas.size() != now.lambdas.size())
        return std::nullopt;
    LineMap lines;
    for (std::size_t i = 0; i < then.spans.size(); ++i)
        if (!match(*then.spans[i], *now.spans[i], before.path, lines)) return std::nullopt;
    for (std::size_t i = 0; i < then.lambdas.size(); ++i) {
        if (!match(then.lambdas[i]->str(), now.lambdas[i]->str(), lines)) return std::nullopt;
        *now.lambdas[i] = *then.lambdas[i];
    }
    before.coverage = after.coverage = {};
    before.dependencies = after.dependencies = {};
    if (!(before == after)) return std::nullopt;
    return lines;
}

namespace {

bool move_span(const LineMap& lines, Symbol file, SourceSpan& span) {
    if (span.file != file) return true;
    const auto line = lines.of(span.line);
    const auto end = lines.of(span.end_line);
    if (!line || !end) return false;
    span.line = *line;
    span.end_line = *end;
    return true;
}

}  // namespace

bool move_finding(const LineMap& lines, Symbol file, Finding& f) {
    // Its words may hold a place.
    if (names_lambda(f.message) || names_lambda(f.fix) || names_lambda(f.function.str())) return false;
    if (!move_span(lines, file, f.span)) return false;
    for (Note& note : f.notes)
        if (names_lambda(note.text) || !move_span(lines, file, note.span)) return false;
    for (Edit& edit : f.edits)
        if (names_lambda(edit.text) || !move_span(lines, file, edit.at)) return false;
    return true;
}

}  // namespace mp::lint
