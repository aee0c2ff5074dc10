// GitHub's and GitLab's Markdown, for a step summary or a comment: counts, then a table, the most
// severe first. A step summary above 1 MiB is refused whole, so the table ends before.

#include "kernels/base/reports/markdown.hpp"
#include "analyzer/report/display.hpp"
#include "analyzer/report/entries.hpp"
#include "kernels/base/figures.hpp"

namespace mp::lint {
namespace {

constexpr std::size_t kMostBytes = std::size_t{900} << 10;
constexpr std::size_t kRoomForEnd = 4096;
constexpr std::size_t kNamed = 20;  // units that were not analysed

std::string place_of(const Report& report, const SourceSpan& s) {
    std::string out = markdown_text(relative_path(s.file.str(), report.working_directory));
    if (s.line) out += "\\:" + std::to_string(s.line);
    return out;
}

std::string row(const Report& report, const Finding& f) {
    return markdown::row(name_of(f.severity),
                         std::string(f.rule) + " " + markdown_text(rule_name(report, f.rule)),
                         place_of(report, f.span), markdown_text(f.message), markdown_text(f.fix));
}

std::string title_of(const Report& report) {
    if (report.findings.empty()) return "### mp-lint: no findings\n\n";
    std::string parts;
    for (const Severity s : {Severity::error, Severity::warning, Severity::note}) {
        const std::size_t n = count(report.findings, s);
        if (n) parts += (parts.empty() ? "" : ", ") + counted(n, name_of(s));
    }
    return "### mp-lint: " + parts + "\n\n";
}

std::string last_line(const Report& report) {
    std::string out = counted(report.files, "file") + " analysed";
    if (!report.hidden.empty()) out += ", " + notes_to_show(report);
    if (!report.suppressed.empty()) out += ", " + std::to_string(report.suppressed.size()) + " suppressed";
    if (!report.baselined.empty()) out += ", " + std::to_string(report.baselined.size()) + " in the baseline";
    return out + "\n";
}

}  // namespace

std::string markdown_report(const Report& report) {
    std::string out = title_of(report);
    std::size_t left = report.findings.size();
    if (left) out += markdown::kTableHead;
    for (const Finding* f : worst_first(report.findings)) {
        const std::string next = row(report, *f);
        if (out.size() + next.size() > kMostBytes - kRoomForEnd) break;
        out += next;
        --left;
    }
    if (left) out += "\n" + counted(left, "finding") + " more, not listed here\n";
    if (!report.findings.empty()) out += "\n";
    std::size_t named = 0;
    const auto lost = incomplete(report);
    for (const UnitResult* u : lost) {
        if (named++ == kNamed || out.size() > kMostBytes - kRoomForEnd / 2) break;
        const std::string shown = relative_path(u->path, report.working_directory);
        if (shown.size() > 256) continue;  // the limit holds whatever files are called
        out += "- " + std::string(name_of(u->state)) + ": " + markdown_text(shown) + "\n";
    }
    if (!lost.empty()) out += "\n" + counted(lost.size(), "unit") + " not analysed in full\n\n";
    return out + last_line(report);
}

}  // namespace mp::lint
