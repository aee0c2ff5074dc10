// JUnit XML: a suite per file, a case per finding, a suite for the units that were not analysed.
// Errors and warnings are failures, as in the exit code; a clean run is one case that passed.

#include <map>
#include <utility>

#include "analyzer/report/display.hpp"
#include "analyzer/report/entries.hpp"
#include "kernels/base/reports/junit.hpp"

namespace mp::lint {
namespace {

class JunitWriter {
public:
    explicit JunitWriter(const Report& report) : report_(report) {}

    std::string write() {
        for (const Finding& f : report_.findings) finding(f);
        for (const Finding& f : report_.suppressed) skipped(f, "suppressed");
        for (const Finding& f : report_.baselined) skipped(f, "in the baseline");
        for (const UnitResult* u : incomplete(report_)) unit(*u);
        if (suites_.empty()) suite_of("mp-lint").add("mp-lint", "no findings", "");
        std::vector<junit::Suite> suites;
        for (auto& [name, suite] : suites_) suites.push_back(std::move(suite));
        return junit::document("mp-lint", suites, true);
    }

private:
    std::string shown(std::string_view path) const { return relative_path(path, report_.working_directory); }

    std::string place(const SourceSpan& s) const {
        std::string out = shown(s.file.str());
        if (s.line) out += ":" + std::to_string(s.line);
        if (s.line && s.column) out += ":" + std::to_string(s.column);
        return out;
    }

    // One suite per file, sorted by its name as it is, not as it is shown.
    junit::Suite& suite_of(const std::string& path) {
        junit::Suite& suite = suites_[path];
        suite.name = escape_controls(path);
        return suite;
    }

    std::string case_name(const Finding& f) const { return escape_controls(place(f.span)); }

    std::string class_of(const Finding& f) const {
        return std::string(f.rule) + " " + rule_name(report_, f.rule);
    }

    void finding(const Finding& f) {
        junit::Suite& suite = suite_of(shown(f.span.file.str()));
        const std::string message = escape_controls(f.message);
        std::vector<std::string> lines{case_name(f)};
        for (const Note& n : f.notes) {
            lines.push_back(escape_controls(n.text));
            if (n.span.known()) lines.back() += " at " + escape_controls(place(n.span));
        }
        if (!f.fix.empty()) lines.push_back("fix: " + escape_controls(f.fix));
        if (f.severity == Severity::note) {
            lines.insert(lines.begin(), message);
            suite.add(class_of(f), case_name(f), junit::system_out(lines));
            return;
        }
        ++suite.failures;
        suite.add(class_of(f), case_name(f), junit::problem("failure", message, name_of(f.severity), lines));
    }

    void skipped(const Finding& f, std::string_view why) {
        junit::Suite& suite = suite_of(shown(f.span.file.str()));
        ++suite.skipped;
        suite.add(class_of(f), case_name(f), junit::problem("skipped", why, ""));
    }

    void unit(const UnitResult& u) {
        junit::Suite& suite = suite_of(shown(u.path));
        const std::string text =
            escape_controls(u.message.empty() ? "not everything was analysed" : u.message);
        // Partial: what parsed was judged. That is worth a line, not a red build.
        const bool lost = u.state != UnitState::partial;
        ++(lost ? suite.errors : suite.skipped);
        suite.add(
            "mp-lint", escape_controls(shown(u.path)) + " " + std::string(name_of(u.state)),
            lost ? junit::problem("error", text, name_of(u.state)) : junit::problem("skipped", text, ""));
    }

    const Report& report_;
    std::map<std::string, junit::Suite> suites_;
};

}  // namespace

std::string junit_report(const Report& report) { return JunitWriter(report).write(); }

}  // namespace mp::lint
