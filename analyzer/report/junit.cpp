// JUnit XML: a suite per file, a case per finding, a suite for the units that were not analysed.
// Errors and warnings are failures, as in the exit code; a clean run is one case that passed.

#include <map>

#include "analyzer/report/display.hpp"
#include "analyzer/report/entries.hpp"

namespace mp::lint {
namespace {

struct Suite {
    std::string cases;
    std::size_t tests = 0;
    std::size_t failures = 0;
    std::size_t errors = 0;
    std::size_t skipped = 0;

    void add(std::string_view classname, std::string_view name, const std::string& body) {
        ++tests;
        cases += "    <testcase classname=\"" + xml_text(classname) + "\" name=\"" + xml_text(name) + "\">" +
                 body + "</testcase>\n";
    }
};

std::string attribute(std::string_view name, std::size_t n) {
    return " " + std::string(name) + "=\"" + std::to_string(n) + "\"";
}

std::string counts_of(const Suite& s) {
    return attribute("tests", s.tests) + attribute("failures", s.failures) + attribute("errors", s.errors) +
           attribute("skipped", s.skipped);
}

class JunitWriter {
public:
    explicit JunitWriter(const Report& report) : report_(report) {}

    std::string write() {
        for (const Finding& f : report_.findings) finding(f);
        for (const Finding& f : report_.suppressed) skipped(f, "suppressed");
        for (const Finding& f : report_.baselined) skipped(f, "in the baseline");
        for (const UnitResult* u : incomplete(report_)) unit(*u);
        if (suites_.empty()) suites_["mp-lint"].add("mp-lint", "no findings", "");
        std::string body;
        Suite all;
        for (const auto& [name, s] : suites_) {
            all.tests += s.tests;
            all.failures += s.failures;
            all.errors += s.errors;
            all.skipped += s.skipped;
            body += "  <testsuite name=\"" + xml_text(name) + "\"" + counts_of(s) + ">\n" + s.cases +
                    "  </testsuite>\n";
        }
        return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"mp-lint\"" + counts_of(all) +
               ">\n" + body + "</testsuites>\n";
    }

private:
    std::string shown(std::string_view path) const { return relative_path(path, report_.working_directory); }

    std::string place(const SourceSpan& s) const {
        std::string out = shown(s.file.str());
        if (s.line) out += ":" + std::to_string(s.line);
        if (s.line && s.column) out += ":" + std::to_string(s.column);
        return out;
    }

    std::string class_of(const Finding& f) const {
        return std::string(f.rule) + " " + rule_name(report_, f.rule);
    }

    void finding(const Finding& f) {
        Suite& suite = suites_[shown(f.span.file.str())];
        std::string text = xml_text(place(f.span));
        for (const Note& n : f.notes) {
            text += "&#10;" + xml_text(n.text);
            if (n.span.known()) text += " at " + xml_text(place(n.span));
        }
        if (!f.fix.empty()) text += "&#10;fix: " + xml_text(f.fix);
        if (f.severity == Severity::note) {
            suite.add(class_of(f), place(f.span),
                      "<system-out>" + xml_text(f.message) + "&#10;" + text + "</system-out>");
            return;
        }
        ++suite.failures;
        suite.add(class_of(f), place(f.span),
                  "<failure message=\"" + xml_text(f.message) + "\" type=\"" +
                      std::string(name_of(f.severity)) + "\">" + text + "</failure>");
    }

    void skipped(const Finding& f, std::string_view why) {
        Suite& suite = suites_[shown(f.span.file.str())];
        ++suite.skipped;
        suite.add(class_of(f), place(f.span), "<skipped message=\"" + std::string(why) + "\"/>");
    }

    void unit(const UnitResult& u) {
        Suite& suite = suites_[shown(u.path)];
        const std::string text = u.message.empty() ? "not everything was analysed" : u.message;
        const std::string message = "message=\"" + xml_text(text) + "\"";
        // Partial: what parsed was judged. That is worth a line, not a red build.
        const bool lost = u.state != UnitState::partial;
        ++(lost ? suite.errors : suite.skipped);
        suite.add("mp-lint", shown(u.path) + " " + std::string(name_of(u.state)),
                  lost ? "<error " + message + " type=\"" + std::string(name_of(u.state)) + "\"/>"
                       : "<skipped " + message + "/>");
    }

    const Report& report_;
    std::map<std::string, Suite> suites_;
};

}  // namespace

std::string junit_report(const Report& report) { return JunitWriter(report).write(); }

}  // namespace mp::lint
