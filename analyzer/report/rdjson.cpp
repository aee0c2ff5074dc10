// Reviewdog's diagnostic format, with suggestions. As in mp-lint, lines and columns count from 1, columns
// in bytes of UTF-8, and ends are exclusive.

#include <nlohmann/json.hpp>

#include "analyzer/report/display.hpp"
#include "analyzer/report/entries.hpp"

namespace mp::lint {
namespace {

using Json = nlohmann::ordered_json;

std::string_view level_of(Severity severity) {
    switch (severity) {
        case Severity::error:
            return "ERROR";
        case Severity::warning:
            return "WARNING";
        case Severity::note:
            return "INFO";
    }
    return "INFO";
}

Json range_of(const SourceSpan& s) {
    Json out = {{"start", {{"line", s.line}}}};
    if (s.column) out["start"]["column"] = s.column;
    if (s.end_line) out["end"]["line"] = s.end_line;
    if (s.end_line && s.end_column) out["end"]["column"] = s.end_column;
    return out;
}

Json location_of(const Report& report, const SourceSpan& s) {
    Json out = {{"path", relative_path(s.file.str(), report.working_directory)}};
    if (s.known()) out["range"] = range_of(s);
    return out;
}

// A suggestion has no path: it applies to the file of the diagnostic. The format cannot express several
// edits that belong together.
Json suggestions_of(const Finding& f) {
    Json out = Json::array();
    if (f.edits.size() != 1 || f.edits[0].at.file != f.span.file) return out;
    out.push_back({{"range", range_of(f.edits[0].at)}, {"text", f.edits[0].text}});
    return out;
}

Json diagnostic(const Report& report, const Finding& f) {
    Json out = {{"message", message_with_fix(f)},
                {"location", location_of(report, f.span)},
                {"severity", level_of(f.severity)},
                {"code", {{"value", f.rule}}}};
    Json suggestions = suggestions_of(f);
    if (!suggestions.empty()) out["suggestions"] = std::move(suggestions);
    Json related = Json::array();
    for (const Note& n : f.notes) {
        if (!n.span.known()) continue;
        related.push_back({{"message", n.text}, {"location", location_of(report, n.span)}});
    }
    if (!related.empty()) out["related_locations"] = std::move(related);
    return out;
}

}  // namespace

std::string rdjson_report(const Report& report) {
    Json out = {{"source", {{"name", "mp-lint"}}}, {"diagnostics", Json::array()}};
    for (const Finding& f : report.findings) out["diagnostics"].push_back(diagnostic(report, f));
    return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace mp::lint
