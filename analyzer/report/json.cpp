// The JSON report, version 1. Lines and columns count from 1, columns in bytes, 0 is unknown; paths
// are relative to the working directory where they lie below it.
//
//   version   1
//   tool      {name, version}
//   summary   {files, units, findings, errors, warnings, notes, suppressed, incomplete, seconds}
//   findings  [{rule, name, severity, file, line, column, end_line, end_column, message, fix,
//   function,
//               notes: [{text, file, line, column}], fingerprint,
//               edits: [{file, line, column, end_line, end_column, text}], safe_edits,
//               cell: {number, line}}]; the cell of a notebook, as Jupyter counts them
//   suppressed  as findings
//   baselined   as findings; only with --baseline
//   units     [{path, state, message, headers, passes, cached, seconds, warnings,
//               coverage: {functions, statements, unresolved, uninstantiated, errors,
//               benign_errors,
//                          missing_headers, messages}}]
//   warnings  [text]

#include <nlohmann/json.hpp>

#include "analyzer/report/display.hpp"
#include "analyzer/report/fingerprint.hpp"
#include "analyzer/report/report.hpp"

namespace mp::lint {
namespace {

using Json = nlohmann::ordered_json;

Json texts(const std::vector<Symbol>& symbols) {
    Json out = Json::array();
    for (const Symbol s : symbols) out.push_back(s.str());
    return out;
}

class JsonWriter {
public:
    explicit JsonWriter(const Report& report) : report_(report), fingerprints_(report) {}

    Json write() {
        Json out;
        out["version"] = 1;
        out["tool"] = {{"name", "mp-lint"}, {"version", report_.tool_version}};
        out["summary"] = summary();
        out["findings"] = findings(report_.findings);
        out["suppressed"] = findings(report_.suppressed);
        if (report_.used_baseline) out["baselined"] = findings(report_.baselined);
        out["units"] = Json::array();
        for (const UnitResult& u : report_.units) out["units"].push_back(unit(u));
        out["warnings"] = report_.warnings;
        return out;
    }

private:
    std::string shown(Symbol path) const { return relative_path(path.str(), report_.working_directory); }

    Json summary() const {
        return {{"files", report_.files},
                {"units", report_.units.size()},
                {"findings", report_.findings.size()},
                {"errors", count(report_.findings, Severity::error)},
                {"warnings", count(report_.findings, Severity::warning)},
                {"notes", count(report_.findings, Severity::note)},
                {"suppressed", report_.suppressed.size()},
                {"incomplete", incomplete(report_).size()},
                {"seconds", report_.seconds}};
    }

    Json findings(const Findings& list) {
        Json out = Json::array();
        for (const Finding& f : list) out.push_back(finding(f));
        return out;
    }

    Json finding(const Finding& f) {
        Json out;
        out["rule"] = f.rule;
        for (const RuleText& rule : report_.rules) {
            if (rule.id == f.rule) out["name"] = rule.name;
        }
        out["severity"] = name_of(f.severity);
        out["file"] = shown(f.span.file);
        out["line"] = f.span.line;
        out["column"] = f.span.column;
        out["end_line"] = f.span.end_line;
        out["end_column"] = f.span.end_column;
        if (const CellLine* code = report_.sources.cell_line(f.span.file.str(), f.span.line, f.span.column))
            out["cell"] = {{"number", code->cell}, {"line", code->line_in_cell}};
        out["message"] = f.message;
        out["fix"] = f.fix;
        out["function"] = f.function.str();
        out["notes"] = Json::array();
        for (const Note& n : f.notes) {
            out["notes"].push_back({{"text", n.text},
                                    {"file", shown(n.span.file)},
                                    {"line", n.span.line},
                                    {"column", n.span.column}});
        }
        out["fingerprint"] = fingerprints_.next(f);
        if (!f.edits.empty()) {
            out["edits"] = Json::array();
            for (const Edit& e : f.edits) out["edits"].push_back(edit(e));
            out["safe_edits"] = f.safe_edits;
        }
        return out;
    }

    Json edit(const Edit& e) const {
        return {{"file", shown(e.at.file)},      {"line", e.at.line},
                {"column", e.at.column},         {"end_line", e.at.end_line},
                {"end_column", e.at.end_column}, {"text", e.text}};
    }

    Json unit(const UnitResult& u) const {
        const Coverage& c = u.coverage;
        return {{"path", relative_path(u.path, report_.working_directory)},
                {"state", name_of(u.state)},
                {"message", u.message},
                {"headers", u.headers},
                {"passes", u.passes},
                {"cached", u.cached},
                {"seconds", u.seconds},
                {"warnings", u.warnings},
                {"coverage",
                 {{"functions", c.functions},
                  {"statements", c.statements},
                  {"unresolved", c.unresolved},
                  {"uninstantiated", c.uninstantiated},
                  {"errors", c.errors},
                  {"benign_errors", c.benign_errors},
                  {"missing_headers", texts(c.missing_headers)},
                  {"messages", texts(c.messages)}}}};
    }

    const Report& report_;
    Fingerprints fingerprints_;
};

}  // namespace

std::string json_report(const Report& report) {
    return JsonWriter(report).write().dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace mp::lint
