// GitLab's code quality report: an array of issues. GitLab drops repeated fingerprints; ours count equal
// findings.

#include <algorithm>

#include <nlohmann/json.hpp>

#include "analyzer/report/display.hpp"
#include "analyzer/report/entries.hpp"
#include "analyzer/report/fingerprint.hpp"

namespace mp::lint {
namespace {

std::string_view level_of(Severity severity) {
    switch (severity) {
        case Severity::error:
            return "critical";
        case Severity::warning:
            return "major";
        case Severity::note:
            return "info";
    }
    return "info";
}

}  // namespace

std::string gitlab_report(const Report& report) {
    using Json = nlohmann::ordered_json;
    Fingerprints fingerprints(report);
    Json out = Json::array();
    for (const Finding& f : report.findings) {
        const std::uint32_t first = f.span.known() ? f.span.line : 1;
        const std::uint32_t last = std::max(first, f.span.end_line);
        const std::string name = rule_name(report, f.rule);
        out.push_back({{"description", message_with_fix(f)},
                       {"check_name", std::string(f.rule) + " " + name},
                       {"fingerprint", fingerprints.next(f)},
                       {"severity", level_of(f.severity)},
                       {"location",
                        {{"path", relative_path(f.span.file.str(), report.project_root)},
                         {"lines", {{"begin", first}, {"end", last}}}}}});
    }
    return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace mp::lint
