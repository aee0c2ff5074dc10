#include "analyzer/adopt/baseline.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <sys/stat.h>
#include <nlohmann/json.hpp>

#include "analyzer/report/display.hpp"
#include "analyzer/report/entries.hpp"
#include "analyzer/report/fingerprint.hpp"
#include "kernels/base/files.hpp"

namespace mp::lint {
namespace {

using Json = nlohmann::ordered_json;
constexpr int kVersion = 1;

BaselineEntry entry_of(const Report& report, const Finding& f) {
    return {.path = valid_utf8(relative_path(f.span.file.str(), report.project_root)),
            .rule = std::string(f.rule),
            .function = valid_utf8(f.function.str()),
            .fingerprint = fingerprint_of(report, f),
            .code = code_hash(report, f),
            .count = 1};
}

// Sorts the entries and adds up the counts of equal ones.
Baseline collected(Baseline entries) {
    std::sort(entries.begin(), entries.end());
    Baseline out;
    for (BaselineEntry& e : entries) {
        if (!out.empty() && out.back().fingerprint == e.fingerprint) {
            out.back().count += e.count;
        } else {
            out.push_back(std::move(e));
        }
    }
    return out;
}

std::string absolute_of(const Report& report, const std::string& path) {
    return path.starts_with('/') ? path : report.project_root + "/" + path;
}

class Matcher {
public:
    Matcher(const Baseline& baseline, const Report& report,
            const std::function<bool(const std::string&)>& exists)
        : report_(report), exists_(exists), left_(baseline) {
        for (BaselineEntry& e : left_) by_fingerprint_[e.fingerprint] = &e;
    }

    BaselineMatch run() {
        std::vector<const Finding*> unknown;
        for (const Finding& f : report_.findings) {
            const auto at = by_fingerprint_.find(fingerprint_of(report_, f));
            if (at != by_fingerprint_.end() && at->second->count > 0) {
                --at->second->count;
                keep(f);
            } else {
                unknown.push_back(&f);
            }
        }
        for (const Finding* f : unknown) {
            if (BaselineEntry* moved = moved_from(*f)) {
                --moved->count;
                keep(*f);
            } else {
                out_.introduced.push_back(*f);
            }
        }
        for (const BaselineEntry& e : left_) {
            if (e.count == 0) continue;
            (was_judged(e) ? out_.fixed : out_.remaining).push_back(e);
        }
        out_.remaining = collected(std::move(out_.remaining));
        const auto in_order = [](const Finding& a, const Finding& b) {
            return std::tuple(a.span.file.str(), a.span.line, a.span.column, a.rule) <
                   std::tuple(b.span.file.str(), b.span.line, b.span.column, b.rule);
        };
        std::sort(out_.preexisting.begin(), out_.preexisting.end(), in_order);
        return std::move(out_);
    }

private:
    void keep(const Finding& f) {
        out_.preexisting.push_back(f);
        out_.remaining.push_back(entry_of(report_, f));
    }

    BaselineEntry* moved_from(const Finding& f) {
        const std::string code = code_hash(report_, f);
        for (BaselineEntry& e : left_) {
            if (e.count > 0 && e.code == code && is_gone(e.path)) return &e;
        }
        return nullptr;
    }

    bool is_gone(const std::string& path) {
        const auto [at, added] = gone_.try_emplace(path, false);
        if (added) at->second = !exists_(absolute_of(report_, path));
        return at->second;
    }

    // Whether this run would have found the entry again, if it were still there.
    bool was_judged(const BaselineEntry& e) {
        const bool ran = std::ranges::find(report_.rules, e.rule, &RuleText::id) != report_.rules.end();
        if (!ran) return false;
        if (is_gone(e.path)) return true;
        const std::string path = absolute_of(report_, e.path);
        bool seen = false;
        for (const UnitResult& u : report_.units) {
            if (u.path != path) continue;
            if (u.state != UnitState::ok) return false;
            seen = true;
        }
        return seen;
    }

    const Report& report_;
    const std::function<bool(const std::string&)>& exists_;
    Baseline left_;  // count: number of findings not matched yet
    std::map<std::string_view, BaselineEntry*> by_fingerprint_;
    std::map<std::string, bool> gone_;
    BaselineMatch out_;
};

bool file_exists(const std::string& path) {
    struct stat info{};
    return ::stat(path.c_str(), &info) == 0;
}

Error damaged(const std::string& path, const std::string& why) {
    return {path + ": is not a baseline: " + why, "'mp-lint baseline make " + path + "' writes one"};
}

}  // namespace

Baseline make_baseline(const Report& report) {
    Baseline out;
    for (const Finding& f : report.findings) out.push_back(entry_of(report, f));
    return collected(std::move(out));
}

std::string print_baseline(const Baseline& baseline) {
    std::string out = "{\n\"version\": " + std::to_string(kVersion) + ",\n\"entries\": [";
    for (std::size_t i = 0; i < baseline.size(); ++i) {
        const BaselineEntry& e = baseline[i];
        const Json entry = {{"path", e.path},         {"rule", e.rule},
                            {"function", e.function}, {"fingerprint", e.fingerprint},
                            {"code", e.code},         {"count", e.count}};
        out += (i ? ",\n" : "\n") + entry.dump(-1, ' ', false, Json::error_handler_t::replace);
    }
    return out + "\n]\n}\n";
}

Result<Baseline> parse_baseline(std::string_view text, const std::string& path) {
    const Json json = Json::parse(text, nullptr, false);
    if (!json.is_object()) return damaged(path, "not a JSON object");
    const auto version = json.find("version");
    if (version == json.end() || *version != kVersion)
        return damaged(path, "this mp-lint reads version " + std::to_string(kVersion));
    const auto entries = json.find("entries");
    if (entries == json.end() || !entries->is_array()) return damaged(path, "no 'entries'");
    Baseline out;
    for (const Json& e : *entries) {
        const auto text_of = [&e](const char* key) {
            const bool there = e.is_object() && e.contains(key) && e[key].is_string();
            return there ? e[key].get<std::string>() : std::string();
        };
        BaselineEntry entry{.path = text_of("path"),
                            .rule = text_of("rule"),
                            .function = text_of("function"),
                            .fingerprint = text_of("fingerprint"),
                            .code = text_of("code"),
                            .count = 0};
        if (entry.path.empty() || entry.fingerprint.empty() || !e.contains("count") ||
            !e["count"].is_number_unsigned())
            return damaged(path, "entry " + std::to_string(out.size() + 1) + " is not complete");
        entry.count = e["count"].get<std::size_t>();
        out.push_back(std::move(entry));
    }
    return collected(std::move(out));
}

Result<Baseline> load_baseline(const std::string& path) {
    std::string text;
    if (!read_file(path, text))
        return Error{path + ": cannot be read", "'mp-lint baseline make " + path + "' writes it"};
    return parse_baseline(text, path);
}

BaselineMatch match_baseline(const Baseline& baseline, const Report& report,
                             const std::function<bool(const std::string&)>& exists) {
    return Matcher(baseline, report, exists).run();
}

void apply_baseline(Report& report, const Baseline& baseline, const std::string& path) {
    BaselineMatch match = match_baseline(baseline, report, file_exists);
    report.findings = std::move(match.introduced);
    report.baselined = std::move(match.preexisting);
    report.used_baseline = true;
    if (match.fixed.empty()) return;
    const std::size_t n = match.fixed.size();
    report.warnings.push_back(path + ": " + std::to_string(n) + (n == 1 ? " entry is" : " entries are") +
                              " no longer found; 'mp-lint baseline update " + path + "' removes them");
}

std::string baseline_diff(const BaselineMatch& match, const Report& report) {
    std::string out;
    for (const Finding& f : match.introduced) {
        out += "+ " + escape_controls(relative_path(f.span.file.str(), report.working_directory)) + ":" +
               std::to_string(f.span.line) + ": " + std::string(name_of(f.severity)) + ": " +
               escape_controls(f.message) + " [" + std::string(f.rule) + "]\n";
    }
    std::size_t fixed = 0;
    for (const BaselineEntry& e : match.fixed) {
        fixed += e.count;
        out += "- " + escape_controls(e.path) + ": " + escape_controls(e.rule);
        if (!e.function.empty()) out += " in " + escape_controls(e.function);
        out += e.count > 1 ? ", " + std::to_string(e.count) + " times\n" : "\n";
    }
    return out + std::to_string(match.introduced.size()) + " introduced, " + std::to_string(fixed) +
           " fixed, " + std::to_string(match.preexisting.size()) + " preexisting\n";
}

}  // namespace mp::lint
