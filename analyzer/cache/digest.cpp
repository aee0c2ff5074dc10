#include "analyzer/cache/digest.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>

#include "analyzer/cache/codec.hpp"
#include "analyzer/cache/file_state.hpp"
#include "analyzer/facts/fields.hpp"

namespace mp::lint {
namespace {

constexpr std::string_view kLambda = "<lambda:";

// Every span and every name of a lambda in a unit, in the order of the field lists.
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

// Calls `change` with every line number in the names of lambdas, and returns the text with its results.
template <class Change>
std::string with_lambda_lines(std::string_view text, const Change& change) {
    std::string out;
    for (std::size_t at = text.find(kLambda); at != std::string_view::npos; at = text.find(kLambda)) {
        out += text.substr(0, at + kLambda.size());
        text.remove_prefix(at + kLambda.size());
        std::uint32_t line = 0;
        const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), line);
        if (fault != std::errc{}) continue;
        text.remove_prefix(static_cast<std::size_t>(end - text.data()));
        out += std::to_string(change(line));
    }
    return out.append(text);
}

// The lines that were added, sorted and each once.
class LineTable {
public:
    void add(Symbol file, std::uint32_t line) {
        if (line == 0) return;  // unknown
        if (at_ == files.size() || files[at_].file != file) find(file);
        files[at_].lines.push_back(line);
    }
    void sort() {
        for (FileLines& f : files) {
            std::ranges::sort(f.lines);
            f.lines.erase(std::ranges::unique(f.lines).begin(), f.lines.end());
        }
    }
    // From 1; 0 stands for an unknown line.
    std::uint32_t ordinal(Symbol file, std::uint32_t line) {
        if (line == 0) return 0;
        if (files[at_].file != file) find(file);
        const std::vector<std::uint32_t>& lines = files[at_].lines;
        return static_cast<std::uint32_t>(std::ranges::lower_bound(lines, line) - lines.begin()) + 1;
    }

    std::vector<FileLines> files;

private:
    void find(Symbol file) {
        at_ = static_cast<std::size_t>(std::ranges::find(files, file, &FileLines::file) - files.begin());
        if (at_ == files.size()) files.push_back({.file = file, .lines = {}});
    }
    std::size_t at_ =
        0;  // the file of the last call, because most spans are in the same file as the one before
};

}  // namespace

bool names_lambda(std::string_view text) { return text.find(kLambda) != std::string_view::npos; }

Digest digest_of(Unit unit) {
    unit.coverage = {};
    unit.dependencies = {};
    const Places places(unit);
    LineTable table;
    for (const SourceSpan* s : places.spans) {
        table.add(s->file, s->line);
        table.add(s->file, s->end_line);
    }
    for (const Symbol* s : places.lambdas)
        with_lambda_lines(s->str(), [&](std::uint32_t line) { return table.add(unit.path, line), line; });
    table.sort();
    for (SourceSpan* s : places.spans) {
        s->line = table.ordinal(s->file, s->line);
        s->end_line = table.ordinal(s->file, s->end_line);
    }
    for (Symbol* s : places.lambdas)
        *s = Symbol(
            with_lambda_lines(s->str(), [&](std::uint32_t line) { return table.ordinal(unit.path, line); }));
    SegmentWriter out;
    write_unit(out, unit);
    out.end_record();
    return {.hash = hash_bytes(out.take()), .lines = std::move(table.files)};
}

}  // namespace mp::lint
