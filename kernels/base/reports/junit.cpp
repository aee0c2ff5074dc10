#include "kernels/base/reports/junit.hpp"

#include "kernels/base/escape.hpp"

namespace mp::junit {
namespace {

std::string attribute(std::string_view name, std::string_view safe) {
    return " " + std::string(name) + "=\"" + xml_escaped(safe) + "\"";
}

std::string counts_of(const Suite& s) {
    return attribute("tests", std::to_string(s.tests)) + attribute("failures", std::to_string(s.failures)) +
           attribute("errors", std::to_string(s.errors)) + attribute("skipped", std::to_string(s.skipped));
}

std::string joined(const std::vector<std::string>& lines) {
    std::string out;
    for (std::size_t i = 0; i < lines.size(); ++i) out += (i ? "&#10;" : "") + xml_escaped(lines[i]);
    return out;
}

}  // namespace

void Suite::add(std::string_view classname, std::string_view case_name, std::string_view body) {
    ++tests;
    cases += "    <testcase" + attribute("classname", classname) + attribute("name", case_name) + ">";
    cases.append(body) += "</testcase>\n";
}

std::string problem(std::string_view element, std::string_view message, std::string_view type,
                    const std::vector<std::string>& lines) {
    const std::string tag(element);
    const std::string open =
        "<" + tag + attribute("message", message) + (type.empty() ? "" : attribute("type", type));
    return lines.empty() ? open + "/>" : open + ">" + joined(lines) + "</" + tag + ">";
}

std::string system_out(const std::vector<std::string>& lines) {
    return "<system-out>" + joined(lines) + "</system-out>";
}

std::string document(std::string_view name, const std::vector<Suite>& suites, bool with_totals) {
    Suite all;
    std::string body;
    for (const Suite& s : suites) {
        all.tests += s.tests;
        all.failures += s.failures;
        all.errors += s.errors;
        all.skipped += s.skipped;
        body +=
            "  <testsuite" + attribute("name", s.name) + counts_of(s) + ">\n" + s.cases + "  </testsuite>\n";
    }
    return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites" + attribute("name", name) +
           (with_totals ? counts_of(all) : "") + ">\n" + body + "</testsuites>\n";
}

}  // namespace mp::junit
