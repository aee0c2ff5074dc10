#include <charconv>
#include <concepts>

#include "analyzer/facts/fields.hpp"
#include "analyzer/facts/names.hpp"
#include "analyzer/facts/syntax.hpp"
#include "analyzer/facts/text.hpp"

namespace mp::lint {
namespace {

void append_escaped(std::string& out, char c) {
    constexpr std::string_view kHex = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
        out += '\\';
        out += c;
    } else if (c == '\n') {
        out += "\\n";
    } else if (c == '\t') {
        out += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
        out += "\\x";
        out += kHex[byte >> 4];
        out += kHex[byte & 15];
    } else {
        out += c;
    }
}

void append_quoted(std::string& out, std::string_view text) {
    out += '"';
    for (const char c : text) append_escaped(out, c);
    out += '"';
}

void append_word(std::string& out, std::string_view text) {
    bool bare = !text.empty();
    for (const char c : text) bare = bare && is_bare(c);
    if (bare)
        out += text;
    else
        append_quoted(out, text);
}

// Appends one fact's fields to a line, each with a blank before it.
class Writer {
public:
    Writer(std::string& out, Symbol file) : out_(out), file_(file) {}

    void place(const SourceSpan& span) {
        if (span == SourceSpan{}) return;
        out_ += ' ';
        value(span);
    }

    void title(Symbol text) {
        out_ += ' ';
        if (resembles_place(text.str()))
            append_quoted(out_, text.str());
        else
            append_word(out_, text.str());
    }

    void dtypes(DType from, DType to) {
        out_ += ' ';
        value(from);
        out_ += "->";
        value(to);
    }

    template <class F>
    void bare(std::string_view key, const F& field, const F& omitted) {
        if (!prefix_.empty()) return (*this)(key, field, omitted);
        if (field == omitted) return;
        out_ += ' ';
        value(field);
    }

    template <class F>
    void operator()(std::string_view key, const F& field, const F& omitted = F{}) {
        if (field == omitted) return;
        out_ += ' ';
        out_ += prefix_;
        out_ += key;
        if constexpr (std::same_as<F, bool>) {
            if (field && prefix_.empty()) return;  // a flag's name alone sets it
        }
        out_ += '=';
        value(field);
    }

    void or_title(std::string_view key, Symbol field, Symbol title) { (*this)(key, field, title); }

    void nested(std::string_view key, const Operand& operand) {
        const std::string saved = std::exchange(prefix_, std::string(key) + ".");
        fields(*this, operand);
        prefix_ = saved;
    }

private:
    void value(bool b) { out_ += b ? "true" : "false"; }
    void value(Symbol s) { append_word(out_, s.str()); }
    void value(Op op) { append_word(out_, op.name()); }
    void value(DType d) { out_ += name_of(d); }
    void value(NamedEnum auto e) { out_ += word_for(e); }

    void value(std::integral auto n) {
        char digits[24];
        const auto done = std::to_chars(digits, digits + sizeof digits, n);
        out_.append(digits, done.ptr);
    }

    // file:line:column-end_column, or -end_line:end_column when it ends on another line. The file
    // is omitted when it is the function's file.
    void value(const SourceSpan& s) {
        if (s.file != file_) {
            if (resembles_place(s.file.str()) || s.file.str().find(':') != std::string_view::npos)
                append_quoted(out_, s.file.str());
            else
                append_word(out_, s.file.str());
            out_ += ':';
        }
        value(s.line);
        out_ += ':';
        value(s.column);
        if (s.end_line == 0 && s.end_column == 0) return;
        out_ += '-';
        if (s.end_line != s.line) {
            value(s.end_line);
            out_ += ':';
        }
        value(s.end_column);
    }

    template <class F>
    void value(const std::vector<F>& list) {
        out_ += '[';
        for (const F& item : list) {
            if (&item != list.data()) out_ += ' ';
            if constexpr (requires { value(item); })
                value(item);
            else
                braces(item);
        }
        out_ += ']';
    }

    template <class F>
    void braces(const F& item) {
        const std::size_t start = out_.size();
        fields(*this, item);
        if (out_.size() == start) {
            out_ += "{}";
        } else if (out_.find(' ', start + 1) == std::string::npos) {
            out_.erase(start, 1);  // a single field needs no braces
        } else {
            out_[start] = '{';  // in place of the first field's blank
            out_ += '}';
        }
    }

    std::string& out_;
    Symbol file_;         // the file that positions omit
    std::string prefix_;  // "source." while its fields are written
};

template <class F>
void append_line(std::string& out, std::string_view head, const F& fact, Symbol file) {
    out += head;
    Writer writer(out, file);
    fields(writer, fact);
    out += '\n';
}

template <class F>
void append_lines(std::string& out, std::string_view head, const std::vector<F>& facts, Symbol file) {
    for (const F& fact : facts) append_line(out, head, fact, file);
}

void append_function(std::string& out, const Function& f, Symbol unit_file) {
    append_line(out, "  func", f, unit_file);
    const Symbol file = f.span.file;
    append_lines(out, "    block", f.flow, file);
    append_lines(out, "    call", f.calls, file);
    append_lines(out, "    cast", f.casts, file);
    append_lines(out, "    accumulate", f.accumulations, file);
    append_lines(out, "    update", f.updates, file);
    append_lines(out, "    scaling", f.scalings, file);
    append_lines(out, "    type", f.types, file);
    append_lines(out, "    setting", f.settings, file);
    append_lines(out, "    define", f.definitions, file);
    append_lines(out, "    return", f.returned, file);
}

}  // namespace

std::string print_facts(const Unit& unit) {
    std::string out = "facts " + std::to_string(kFactsVersion) + "\n";
    append_line(out, "unit", unit, unit.path);
    if (unit.coverage != Coverage{}) append_line(out, "  coverage", unit.coverage, unit.path);
    append_lines(out, "  dependency", unit.dependencies, unit.path);
    for (const Function& f : unit.functions) append_function(out, f, unit.path);
    return out;
}

}  // namespace mp::lint
