#include <algorithm>
#include <map>

#include "analyzer/report/display.hpp"
#include "analyzer/report/entries.hpp"
#include "analyzer/report/fingerprint.hpp"
#include "analyzer/report/report.hpp"
#include "kernels/base/percent_encoding.hpp"
#include "kernels/base/reports/sarif.hpp"

namespace mp::lint {
namespace {

using sarif::Json;
using sarif::kMostResults;
using sarif::notification;

constexpr std::size_t kMostSteps = 1000;  // it shows this many thread-flow locations

std::string level_of(Severity severity) { return std::string(name_of(severity)); }

// 1-based column in code points of the byte column `column` of a line.
std::uint32_t code_point_column(std::string_view line, std::uint32_t column) {
    std::uint32_t points = 1;
    std::size_t at = 0;
    while (at + 1 < column && at < line.size()) {
        at += decode_utf8(line.substr(at)).length;
        ++points;
    }
    return points;
}

class SarifWriter {
public:
    explicit SarifWriter(const Report& report) : report_(report), fingerprints_(report) {
        for (std::size_t i = 0; i < report.rules.size(); ++i) index_[report.rules[i].id] = i;
    }

    Json write() {
        Json run = sarif::run_of("mp-lint", driver());
        if (!report_.project_root.empty()) {
            run["originalUriBaseIds"][sarif::kRoot] = {
                {"uri", "file://" + percent_encoded(report_.project_root) + "/"}};
        }
        run["results"] = results();
        run["invocations"] = Json::array({invocation()});
        return sarif::log_of(std::move(run));
    }

private:
    Json driver() const {
        Json out = {{"name", "mp-lint"}, {"version", report_.tool_version}, {"rules", Json::array()}};
        if (!report_.homepage.empty()) out["informationUri"] = report_.homepage;
        for (const RuleText& rule : report_.rules) {
            Json entry = {{"id", rule.id},
                          {"name", rule.name},
                          {"shortDescription", {{"text", title_of(rule)}}},
                          {"defaultConfiguration", {{"level", level_of(rule.severity)}}},
                          {"properties", sarif::tags()}};
            if (!rule.page.empty())
                entry["help"] = {{"text", title_of(rule)}, {"markdown", page_for_reading(rule.page)}};
            if (!report_.homepage.empty())
                entry["helpUri"] = report_.homepage + "/testdata/lint/" + std::string(rule.id) + ".md";
            out["rules"].push_back(std::move(entry));
        }
        return out;
    }

    // The first line of the page, "# MP401 half-accumulator", without its mark; else the name.
    static std::string title_of(const RuleText& rule) {
        std::string_view line = rule.page.substr(0, rule.page.find('\n'));
        while (line.starts_with('#') || line.starts_with(' ')) line.remove_prefix(1);
        return std::string(line.empty() ? rule.name : line);
    }

    // Why a result does not count: a comment in the source, or the baseline.
    enum class Known : unsigned char { no, in_source, in_baseline };

    struct Item {
        const Finding* finding = nullptr;
        Known known = Known::no;
        std::string fingerprint;
        std::size_t order = 0;
    };

    Json results() {
        std::vector<Item> items;
        for (const Finding& f : report_.findings)
            items.push_back({&f, Known::no, fingerprints_.next(f), items.size()});
        for (const Finding& f : report_.suppressed)
            items.push_back({&f, Known::in_source, fingerprints_.next(f), items.size()});
        for (const Finding& f : report_.baselined)
            items.push_back({&f, Known::in_baseline, fingerprints_.next(f), items.size()});
        std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
            const bool counts = a.known == Known::no;
            if (counts != (b.known == Known::no)) return counts;
            if (a.finding->severity != b.finding->severity) return a.finding->severity > b.finding->severity;
            return a.order < b.order;
        });
        if (items.size() > kMostResults) {
            dropped_ = items.size() - kMostResults;
            items.resize(kMostResults);
        }
        Json out = Json::array();
        for (const Item& item : items) out.push_back(result(item));
        return out;
    }

    Json result(const Item& item) {
        const Finding& f = *item.finding;
        Json out = {{"ruleId", f.rule}};
        const auto rule = index_.find(f.rule);
        if (rule != index_.end()) out["ruleIndex"] = rule->second;
        out["level"] = level_of(f.severity);
        out["message"] = {{"text", message_with_fix(f)}};
        out["locations"] = Json::array({location(f.span)});
        if (!f.function.empty()) {
            out["locations"][0]["logicalLocations"] =
                Json::array({{{"fullyQualifiedName", f.function.str()}}});
        }
        Json related = Json::array();
        for (const Note& n : f.notes) {
            if (!n.span.known()) continue;
            related.push_back(location(n.span));
            related.back()["id"] = related.size() - 1;
            related.back()["message"] = {{"text", n.text}};
        }
        if (!related.empty()) {
            out["codeFlows"] = Json::array({code_flow(f)});
            out["relatedLocations"] = std::move(related);
        }
        out["partialFingerprints"] = {{"mpLint/v1", item.fingerprint}};
        const std::string hash = line_hash(f.span);
        if (!hash.empty()) out["partialFingerprints"]["primaryLocationLineHash"] = hash;
        if (report_.used_baseline && item.known != Known::in_source)
            out["baselineState"] = item.known == Known::in_baseline ? "unchanged" : "new";
        if (item.known != Known::no) {
            const bool comment = item.known == Known::in_source;
            out["suppressions"] = Json::array({{{"kind", comment ? "inSource" : "external"}}});
        }
        if (!f.edits.empty()) out["fixes"] = Json::array({fix(f)});
        return out;
    }

    // All edits of a finding are one fix; SARIF groups them by file.
    Json fix(const Finding& f) const {
        Json changes = Json::array();
        std::map<std::string_view, std::size_t> index;
        for (const Edit& e : f.edits) {
            const auto [at, added] = index.try_emplace(e.at.file.str(), changes.size());
            if (added) {
                changes.push_back(
                    {{"artifactLocation", artifact(e.at.file.str())}, {"replacements", Json::array()}});
            }
            changes[at->second]["replacements"].push_back(
                {{"deletedRegion", deleted(e.at)}, {"insertedContent", {{"text", e.text}}}});
        }
        Json out;
        if (!f.fix.empty()) out["description"] = {{"text", f.fix}};
        out["artifactChanges"] = std::move(changes);
        return out;
    }

    // Always with both ends: a region without its end would be the whole line.
    Json deleted(const SourceSpan& s) const {
        const std::string_view file = s.file.str();
        return {{"startLine", s.line},
                {"startColumn", code_point_column(report_.sources.line(file, s.line), s.column)},
                {"endLine", s.end_line},
                {"endColumn", code_point_column(report_.sources.line(file, s.end_line), s.end_column)}};
    }

    Json location(const SourceSpan& s) const {
        Json out;
        out["physicalLocation"]["artifactLocation"] = artifact(s.file.str());
        if (!s.known()) return out;
        Json region = {{"startLine", s.line}};
        const std::string_view line = report_.sources.line(s.file.str(), s.line);
        if (s.column) region["startColumn"] = code_point_column(line, s.column);
        if (s.column && s.end_line == s.line && s.end_column > s.column) {
            region["endColumn"] = code_point_column(line, s.end_column);
        } else if (s.end_line > s.line && s.end_column) {
            region["endLine"] = s.end_line;
            region["endColumn"] =
                code_point_column(report_.sources.line(s.file.str(), s.end_line), s.end_column);
        }
        out["physicalLocation"]["region"] = std::move(region);
        return out;
    }

    Json artifact(std::string_view path) const {
        return sarif::artifact(relative_path(path, report_.project_root));
    }

    // The notes in the order of the call chain, then the finding itself.
    Json code_flow(const Finding& f) const {
        Json steps = Json::array();
        auto add = [&](const SourceSpan& span, const std::string& text) {
            Json step = location(span);
            step["message"] = {{"text", text}};
            steps.push_back({{"location", std::move(step)}});
        };
        for (const Note& n : f.notes) {
            if (n.span.known() && steps.size() + 1 < kMostSteps) add(n.span, n.text);
        }
        add(f.span, f.message);
        return {{"threadFlows", Json::array({{{"locations", std::move(steps)}}})}};
    }

    std::string line_hash(const SourceSpan& s) {
        const std::string_view file = s.file.str();
        if (!s.known() || !report_.sources.has(file)) return {};
        const auto [it, added] = hashes_.try_emplace(std::string(file));
        if (added) it->second = line_hashes(report_.sources.text(file));
        return s.line <= it->second.size() ? it->second[s.line - 1] : std::string();
    }

    Json invocation() const {
        Json notifications = Json::array();
        for (const UnitResult* u : incomplete(report_)) {
            std::string text = std::string(name_of(u->state)) + ": " + u->path;
            if (!u->message.empty()) text += ": " + u->message;
            Json place;
            place["physicalLocation"]["artifactLocation"] = artifact(u->path);
            Json lost = notification(u->state == UnitState::partial ? "warning" : "error", text);
            lost["locations"] = Json::array({std::move(place)});
            notifications.push_back(std::move(lost));
        }
        for (const std::string& text : report_.warnings)
            notifications.push_back(notification("warning", text));
        // GitHub would drop them without a word.
        if (dropped_) {
            notifications.push_back(
                notification("warning", std::to_string(dropped_) + " results are left out: the " +
                                            std::to_string(kMostResults) + " most severe are listed"));
        }
        return sarif::invocation(report_.analysed_anything, std::move(notifications));
    }

    const Report& report_;
    Fingerprints fingerprints_;
    std::map<std::string_view, std::size_t> index_;
    std::map<std::string, std::vector<std::string>> hashes_;
    std::size_t dropped_ = 0;
};

}  // namespace

std::string sarif_report(const Report& report) { return sarif::written(SarifWriter(report).write()); }

}  // namespace mp::lint
