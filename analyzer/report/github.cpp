// Workflow commands of GitHub Actions: "::error file=src/a.py,line=3,col=5,title=...::message". GitHub
// keeps 10 errors, 10 warnings and 10 notices per step and drops the rest silently. The most severe
// findings therefore become annotations, and the log contains all of them as text. That text may contain
// names of files, so workflow commands are stopped around it.

#include <array>

#include "analyzer/report/display.hpp"
#include "analyzer/report/entries.hpp"
#include "analyzer/report/fingerprint.hpp"
#include "kernels/base/figures.hpp"

namespace mp::lint {
namespace {

constexpr std::size_t kMostOfLevel = 10;

std::string_view command_of(Severity severity) {
    switch (severity) {
        case Severity::error:
            return "error";
        case Severity::warning:
            return "warning";
        case Severity::note:
            return "notice";
    }
    return "notice";
}

// The text after the second "::" must not contain line ends; a property must also not contain ':' and ','.
std::string escaped(std::string_view text, bool property) {
    std::string out;
    for (const char c : valid_utf8(text)) {
        switch (c) {
            case '%':
                out += "%25";
                break;
            case '\r':
                out += "%0D";
                break;
            case '\n':
                out += "%0A";
                break;
            case ':':
                out += property ? "%3A" : ":";
                break;
            case ',':
                out += property ? "%2C" : ",";
                break;
            default:
                out += c;
        }
    }
    return out;
}

std::string annotation(const Report& report, const Finding& f) {
    const SourceSpan& s = f.span;
    std::string out = "::" + std::string(command_of(f.severity));
    out += " file=" + escaped(relative_path(s.file.str(), report.project_root), true);
    if (s.known()) {
        out += ",line=" + std::to_string(s.line);
        if (s.end_line > s.line) {
            out += ",endLine=" + std::to_string(s.end_line);  // columns only within one line
        } else if (s.column) {
            out += ",col=" + std::to_string(s.column);
            if (s.end_column > s.column) out += ",endColumn=" + std::to_string(s.end_column);
        }
    }
    out += ",title=" + escaped(std::string(f.rule) + " " + rule_name(report, f.rule), true);
    return out + "::" + escaped(message_with_fix(f), false) + "\n";
}

// A word that does not occur in the text, so that the text cannot resume commands.
std::string stop_word(std::string_view text) { return "mp-lint-" + hashed(text); }

}  // namespace

std::string github_report(const Report& report) {
    const std::string text = text_report(report, {});
    const std::string word = stop_word(text);
    std::string out = "::stop-commands::" + word + "\n" + text + "::" + word + "::\n";
    std::array<std::size_t, 3> shown{};
    std::size_t more = 0;
    for (const Finding* f : worst_first(report.findings)) {
        if (shown[static_cast<std::size_t>(f->severity)]++ < kMostOfLevel) {
            out += annotation(report, *f);
        } else {
            ++more;
        }
    }
    if (more) out += counted(more, "finding") + " without annotation: see the text above\n";
    return out;
}

}  // namespace mp::lint
