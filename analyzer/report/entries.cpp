#include "analyzer/report/entries.hpp"

#include <algorithm>

#include "kernels/base/escape.hpp"
#include "kernels/base/figures.hpp"
#include "kernels/base/reports/sarif.hpp"
#include "kernels/base/text.hpp"

namespace mp::lint {

std::vector<const Finding*> worst_first(const Findings& findings) {
    std::vector<const Finding*> out;
    out.reserve(findings.size());
    for (const Severity s : {Severity::error, Severity::warning, Severity::note}) {
        for (const Finding& f : findings) {
            if (f.severity == s) out.push_back(&f);
        }
    }
    return out;
}

std::string rule_name(const Report& report, std::string_view id) {
    const auto rule = std::ranges::find(report.rules, id, &RuleText::id);
    return std::string(rule == report.rules.end() ? id : rule->name);
}

std::string message_with_fix(const Finding& f) { return sarif::message(f.message, f.fix); }

std::string markdown_text(std::string_view text) { return markdown_escaped(escape_controls(text)); }

std::string notes_to_show(const Report& report) {
    const std::size_t n = report.hidden.size();
    return counted(n, "note") + "; --notes shows " + (n == 1 ? "it" : "them");
}

}  // namespace mp::lint
