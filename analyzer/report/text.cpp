#include <algorithm>
#include <cstdio>
#include <iterator>

#include "analyzer/report/display.hpp"
#include "analyzer/report/entries.hpp"
#include "analyzer/report/report.hpp"
#include "kernels/base/figures.hpp"

namespace mp::lint {
namespace {

constexpr std::size_t kGutter = 5;    // digits of a line number
constexpr std::size_t kWidest = 160;  // columns of a source line before it is cut around the place
constexpr std::size_t kBefore = 60;   // of them in front of the place
constexpr std::size_t kNamed = 3;     // incomplete files named in the last line

constexpr std::string_view kReset = "\033[0m";
constexpr std::string_view kBold = "\033[1m";
constexpr std::string_view kGreen = "\033[1;32m";
constexpr std::string_view kFaint = "\033[2m";

std::string_view color_of(Severity severity) {
    switch (severity) {
        case Severity::error:
            return "\033[1;31m";
        case Severity::warning:
            return "\033[1;35m";
        case Severity::note:
            return "\033[1;36m";
    }
    return kBold;
}

// The visible part of a line, in bytes of its display text, and the position of the caret in it.
struct Window {
    std::string text;
    std::size_t caret = 0;
    std::size_t length = 1;
};

// First byte of `text` at or after display column `column` of a line without tabs or controls.
std::size_t offset_at(std::string_view text, std::size_t column) {
    std::size_t at = 0, width = 0;
    while (at < text.size() && width < column) {
        const CodePoint c = decode_utf8(text.substr(at));
        width += static_cast<std::size_t>(display_width(c.value));
        at += c.length;
    }
    return at;
}

Window window_of(std::string_view line, const SourceSpan& span) {
    const DisplayLine shown = display_line(line);
    const std::size_t first = std::min<std::size_t>(span.column ? span.column - 1 : 0, line.size());
    std::size_t last =
        span.end_line == span.line && span.end_column > span.column ? span.end_column - 1 : first + 1;
    if (span.end_line > span.line) last = line.size();
    last = std::min(std::max(last, first), line.size());

    Window out{.text = shown.text, .caret = shown.column_of_byte[first], .length = 1};
    if (shown.column_of_byte[last] > out.caret) out.length = shown.column_of_byte[last] - out.caret;
    if (shown.width <= kWidest) return out;

    const std::size_t from = out.caret > kBefore ? out.caret - kBefore : 0;
    const std::size_t begin = offset_at(shown.text, from);
    const std::size_t end = offset_at(shown.text, from + kWidest);
    out.text =
        (from ? "…" : "") + shown.text.substr(begin, end - begin) + (end < shown.text.size() ? "…" : "");
    out.caret = out.caret - from + (from ? 1 : 0);
    out.length = std::min(out.length, kWidest + 1 - std::min(kWidest, out.caret));
    return out;
}

class TextWriter {
public:
    TextWriter(const Report& report, const TextStyle& style) : report_(report), style_(style) {}

    std::string write() {
        for (const Finding& f : report_.findings) finding(f);
        if (style_.verbose) {
            for (const UnitResult& u : report_.units) unit(u);
        }
        if (!style_.quiet) last_line();
        return std::move(out_);
    }

private:
    void paint(std::string_view color, std::string_view text) {
        if (style_.color) out_ += color;
        out_ += text;
        if (style_.color) out_ += kReset;
    }

    std::string shown(std::string_view path) const {
        return escape_controls(relative_path(path, report_.working_directory));
    }

    std::string place(const SourceSpan& s, bool with_column) const {
        std::string out = shown(s.file.str());
        if (s.line) out += ":" + std::to_string(s.line);
        if (with_column && s.column) out += ":" + std::to_string(s.column);
        return out;
    }

    void gutter(std::string_view left, std::string_view mark) {
        const std::string padded =
            std::string(kGutter - std::min(kGutter, left.size()), ' ') + std::string(left);
        paint(kFaint, padded + " " + std::string(mark) + " ");
    }

    void finding(const Finding& f) {
        paint(kBold, place(f.span, true) + ": ");
        paint(color_of(f.severity), std::string(name_of(f.severity)) + ": ");
        paint(kBold, escape_controls(f.message));
        out_ += " [" + std::string(f.rule);
        for (const RuleText& rule : report_.rules) {
            if (rule.id == f.rule) out_ += " " + std::string(rule.name);
        }
        out_ += "]\n";
        source(f.span);
        if (const std::string cell = in_cell(f.span, "", ""); !cell.empty()) {
            gutter("", "=");
            out_ += "in " + cell + "\n";
        }
        for (const Note& note : f.notes) {
            gutter("", "=");
            out_ += escape_controls(note.text);
            if (note.span.known()) out_ += " at " + place(note.span, false) + in_cell(note.span, " (", ")");
            out_ += '\n';
        }
        if (f.fix.empty()) return;
        gutter("", "=");
        out_ += "fix: " + escape_controls(f.fix) + "\n";
    }

    // "cell 3, line 6" of a place in a notebook; else nothing.
    std::string in_cell(const SourceSpan& span, std::string_view before, std::string_view after) const {
        const CellLine* code = report_.sources.cell_line(span.file.str(), span.line, span.column);
        if (!code) return {};
        return std::string(before) + "cell " + std::to_string(code->cell) + ", line " +
               std::to_string(code->line_in_cell) + std::string(after);
    }

    // In a notebook this is the line of code, not the JSON around it, which may be the whole file.
    Window window_at(const SourceSpan& span) const {
        const std::string_view file = span.file.str();
        const CellLine* code = report_.sources.cell_line(file, span.line, span.column);
        if (!code || span.column == 0) return window_of(report_.sources.line(file, span.line), span);
        SourceSpan inside = span;
        const auto in_code = [&](std::uint32_t column) {
            return static_cast<std::uint32_t>(report_.sources.column_in(*code, file, column));
        };
        inside.column = in_code(span.column);
        const bool same = report_.sources.cell_line(file, span.end_line, span.end_column) == code;
        inside.end_line = same ? inside.line : inside.line + 1;
        inside.end_column = same ? in_code(span.end_column) : 1;
        return window_of(code->text, inside);
    }

    void source(const SourceSpan& span) {
        const std::string_view file = span.file.str();
        if (!span.known() || span.line > report_.sources.line_count(file)) return;
        const Window window = window_at(span);
        gutter(std::to_string(span.line), "|");
        out_ += window.text + "\n";
        if (span.column == 0) return;
        const std::string digits = std::to_string(span.line);
        gutter(std::string(std::max(kGutter, digits.size()), ' '), "|");
        out_ += std::string(window.caret, ' ');
        paint(kGreen, "^" + std::string(window.length - 1, '~'));
        out_ += '\n';
    }

    void unit(const UnitResult& u) {
        const Coverage& c = u.coverage;
        out_ += "unit " + shown(u.path) + ": " + std::string(name_of(u.state));
        if (!u.message.empty()) out_ += " (" + escape_controls(u.message) + ")";
        out_ += " · " + counted(c.functions, "function") + ", " + counted(c.statements, "statement");
        if (c.unresolved) out_ += ", " + std::to_string(c.unresolved) + " unresolved";
        if (c.uninstantiated) out_ += ", " + counted(c.uninstantiated, "template") + " never instantiated";
        if (c.errors) out_ += ", " + counted(c.errors, "error");
        if (c.benign_errors) out_ += ", " + counted(c.benign_errors, "harmless error");
        std::string passes;
        for (const std::string& pass : u.passes) passes += (passes.empty() ? " · " : ", ") + pass;
        out_ += passes;
        if (!u.headers.empty()) out_ += " · CUDA headers: " + u.headers;
        char seconds[32];
        std::snprintf(seconds, sizeof seconds, " · %.2f s", u.seconds);
        out_ += u.cached ? " · cached" : seconds;
        out_ += '\n';
        for (const Symbol name : c.missing_headers)
            out_ += "  missing header: " + escape_controls(name.str()) + "\n";
        for (const Symbol text : c.messages) out_ += "  " + escape_controls(text.str()) + "\n";
        for (const std::string& text : u.warnings) out_ += "  " + escape_controls(text) + "\n";
    }

    // "1 file not analysed: src/old.cu (see --verbose)"
    void incomplete_part(bool lost, std::string_view one, std::string_view many) {
        std::vector<std::string> names;
        for (const UnitResult* u : incomplete(report_)) {
            if ((u->state != UnitState::partial) != lost) continue;
            names.push_back(shown(u->path));
        }
        named_part(std::move(names), one, many);
    }

    void named_part(std::vector<std::string> names, std::string_view one, std::string_view many) {
        if (names.empty()) return;
        out_ += " · " + std::to_string(names.size()) + " " + std::string(names.size() == 1 ? one : many);
        std::vector<std::string> distinct = std::move(names);
        distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
        for (std::size_t i = 0; i < distinct.size() && i < kNamed; ++i)
            out_ += (i ? ", " : ": ") + distinct[i];
        if (distinct.size() > kNamed) out_ += ", …";
        if (!style_.verbose) out_ += " (see --verbose)";
    }

    void last_line() {
        const std::size_t errors = count(report_.findings, Severity::error);
        const std::size_t warnings = count(report_.findings, Severity::warning);
        const std::size_t notes = count(report_.findings, Severity::note);
        if (!report_.findings.empty() || style_.verbose) out_ += '\n';
        out_ += counted(report_.files, "file") + ", ";
        if (report_.findings.empty()) {
            out_ += "no findings";
        } else {
            out_ += counted(report_.findings.size(), "finding") + " (";
            std::string parts;
            for (const auto& [n, word] :
                 {std::pair{errors, "error"}, {warnings, "warning"}, {notes, "note"}}) {
                if (n) parts += (parts.empty() ? "" : ", ") + counted(n, word);
            }
            out_ += parts + ")";
        }
        if (!report_.hidden.empty()) out_ += " · " + notes_to_show(report_);
        if (!report_.suppressed.empty())
            out_ += " · " + std::to_string(report_.suppressed.size()) + " suppressed";
        if (!report_.baselined.empty())
            out_ += " · " + std::to_string(report_.baselined.size()) + " in the baseline";
        const auto is_fixable = [](const Finding& f) { return !f.edits.empty() && f.safe_edits; };
        const auto fixable = std::ranges::count_if(report_.findings, is_fixable) +
                             std::ranges::count_if(report_.hidden, is_fixable);
        if (fixable) out_ += " · " + std::to_string(fixable) + " fixable with --fix";
        if (report_.outside_diff) out_ += " · " + std::to_string(report_.outside_diff) + " outside the diff";
        incomplete_part(true, "unit not analysed", "units not analysed");
        incomplete_part(false, "unit did not parse cleanly", "units did not parse cleanly");
        if (report_.lacks_database)
            out_ += " · no compile_commands.json: add include folders with '-- -I DIR'";
        std::vector<std::string> headers;
        for (const std::string& path : report_.lone_headers) headers.push_back(shown(path));
        named_part(std::move(headers), "header with templates that no analysed file includes",
                   "headers with templates that no analysed file includes");
        char seconds[32];
        std::snprintf(seconds, sizeof seconds, " · %.1f s\n", report_.seconds);
        out_ += seconds;
    }

    const Report& report_;
    TextStyle style_;
    std::string out_;
};

}  // namespace

std::string_view name_of(UnitState state) {
    switch (state) {
        case UnitState::ok:
            return "ok";
        case UnitState::partial:
            return "partial";
        case UnitState::failed:
            return "failed";
        case UnitState::timeout:
            return "timeout";
        case UnitState::crashed:
            return "crashed";
    }
    return "failed";
}

std::size_t count(const Findings& findings, Severity severity) {
    return static_cast<std::size_t>(std::count_if(
        findings.begin(), findings.end(), [severity](const Finding& f) { return f.severity == severity; }));
}

void hide_notes(Report& report) {
    const auto is_note = [](const Finding& f) { return f.severity == Severity::note; };
    std::ranges::copy_if(report.findings, std::back_inserter(report.hidden), is_note);
    std::erase_if(report.findings, is_note);
}

std::vector<const UnitResult*> incomplete(const Report& report) {
    std::vector<const UnitResult*> out;
    for (const UnitResult& unit : report.units) {
        if (unit.state != UnitState::ok) out.push_back(&unit);
    }
    return out;
}

std::string text_report(const Report& report, const TextStyle& style) {
    return TextWriter(report, style).write();
}

}  // namespace mp::lint
