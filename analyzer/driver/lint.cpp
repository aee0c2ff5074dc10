#include "analyzer/driver/lint.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "analyzer/cache/file_state.hpp"
#include "analyzer/config/glob.hpp"
#include "analyzer/driver/discover.hpp"
#include "analyzer/driver/gather.hpp"
#include "analyzer/driver/judge.hpp"
#include "analyzer/driver/merge.hpp"
#include "analyzer/driver/pool.hpp"
#include "analyzer/driver/python_files.hpp"
#include "analyzer/driver/replay.hpp"
#include "analyzer/report/display.hpp"
#include "analyzer/suppress/suppress.hpp"
#include "kernels/base/escape.hpp"
#include "kernels/base/stats.hpp"
#include "kernels/base/version.hpp"
#include "kernels/numerics/torch_policies.hpp"

namespace mp::lint {
namespace {

// Source text is read for carets and suppressions only; past this size nobody wrote it by hand.
constexpr std::uint64_t kLargestSource = std::uint64_t{64} << 20;

bool ignored_in_file(const LintOptions& options, const Finding& f, const Rule& rule) {
    const std::string relative = relative_path(f.span.file.str(), options.config_directory);
    for (const PerFileIgnore& entry : options.per_file_ignores) {
        if (relative.starts_with('/') || !path_matches(entry.pattern, relative)) continue;
        for (const std::string& word : entry.rules) {
            if (names_rule(word, rule)) return true;
        }
    }
    return false;
}

void load_source(const std::string& path, Sources& sources) {
    if (path.empty() || sources.has(path)) return;
    std::string text;
    read_file(path, text, kLargestSource);
    sources.add(path, std::move(text));
}

void load_sources(const Findings& findings, Sources& sources) {
    for (const Finding& f : findings) {
        load_source(std::string(f.span.file.str()), sources);
        for (const Edit& e : f.edits) load_source(std::string(e.at.file.str()), sources);
    }
}

// Files of which everything was analysed: only there it is known what a comment silences.
std::set<std::string> whole_files(const Report& report) {
    std::set<std::string> out, lost;
    for (const UnitResult& u : report.units) {
        if (u.state != UnitState::ok) lost.insert(u.path);
        if (u.may_suppress) out.insert(u.path);
    }
    for (const std::string& path : lost) out.erase(path);
    return out;
}

bool stands_before(const Finding& a, const Finding& b) {
    const auto place = [](const Finding& f) {
        return std::tuple(f.span.file.str(), f.span.line, f.span.column, f.rule, std::string_view(f.message));
    };
    return place(a) < place(b);
}

// Freeing half a million facts one by one takes longer than all that a run has still to do: its program
// stays until the next run begins, and the last one until the process ends.
std::optional<Program>& last_program() {
    static auto* const last = new std::optional<Program>;
    return *last;
}

// One run from plan to report.
class Linter {
public:
    Linter(const LintOptions& options, const FrontEnds& parts) : options_(options), parts_(parts) {}

    Result<Report> run() {
        const auto start = std::chrono::steady_clock::now();
        Result<Policies> policies = Policies::load(options_.torch, options_.policy_files,
                                                   options_.device.empty() ? "cuda" : options_.device);
        if (!policies) return policies.error();
        if (options_.hmp.given()) {
            Result<Policy> lists = Policy::from_hmp_files(options_.hmp.bf16, options_.hmp.fp32);
            if (!lists) return lists.error();
            policies->set("hmp", *std::move(lists));
        }
        const Result<Plan> plan = timed("discover", [&] { return make_plan(options_, parts_); });
        if (!plan) return plan.error();

        rules_ = select_rules(parts_.rules, options_.select, options_.ignore);
        for (const Rule* rule : rules_) {
            report_.rules.push_back({rule->id, rule->name, rule->severity, parts_.rule_page(rule->id)});
        }
        sort_out(find(*plan, *policies), plan->named);
        describe(*plan);
        report_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        return std::move(report_);
    }

private:
    // What the rules say: as in the last run, when nothing has changed since.
    Findings find(const Plan& plan, const Policies& policies) {
        Replay replay(plan, options_, parts_, rules_);
        std::unique_ptr<FactsPack> pack = pack_of(plan, options_);
        if (std::optional<Replayed> last = timed("cache", [&] { return replay.load(*pack); })) {
            report_.units = std::move(last->units);
            for (const ReadFile& file : last->read) read_[file.path] = file.hash;
            return std::move(last->findings);
        }
        last_program().reset();
        Gathered gathered = timed("extract", [&] { return gather(plan, options_, parts_, *pack); });
        pack.reset();
        report_.units = std::move(gathered.results);
        report_.warnings = std::move(gathered.warnings);
        for (const ReadFile& file : gathered.python) read_[file.path] = file.hash;
        const int threads = options_.jobs.value_or(available_jobs());
        const Program& program = last_program().emplace(timed(
            "link", [&] { return Program::link(std::move(gathered.units), options_.regions, threads); }));
        Findings merged = timed("rules", [&] {
            return merge_findings(judge_all(program, policies, threads), options_.working_directory);
        });
        replay.save({.files = std::move(gathered.python),
                     .absent = std::move(gathered.absent),
                     .low_names = std::move(gathered.low_names)},
                    report_.units, merged);
        return merged;
    }

    Findings judge_all(const Program& program, const Policies& policies, int threads) const {
        const RuleContext context{.program = program,
                                  .policies = policies,
                                  .inference = options_.inference.value_or(false),
                                  .torch = policies.torch(),
                                  .device = options_.device};
        return judge(rules_, context, threads);
    }

    void sort_out(Findings findings, const std::vector<std::string>& named) {
        load_sources(findings, report_.sources);
        Suppressions suppressions(report_.sources);
        for (Finding& f : findings) sort_out(std::move(f), named, suppressions);
        for (const std::string& path : whole_files(report_)) {
            load_source(path, report_.sources);
            for (Finding& f : suppressions.problems(path, rules_, parts_.rules))
                sort_out(std::move(f), named, suppressions);
        }
        std::sort(report_.findings.begin(), report_.findings.end(), stands_before);
    }

    void sort_out(Finding f, const std::vector<std::string>& named, Suppressions& suppressions) {
        const auto rule =
            std::find_if(rules_.begin(), rules_.end(), [&](const Rule* r) { return r->id == f.rule; });
        const std::string file(f.span.file.str());
        // What is Python to a rule is text in JSON there: nobody may paste into it.
        if (file.ends_with(".ipynb")) f.edits.clear();
        for (const Edit& e : f.edits) {
            if (!is_as_analysed(std::string(e.at.file.str()))) {
                f.edits.clear();
                break;
            }
        }
        const bool asked_for = std::find(named.begin(), named.end(), file) != named.end();
        if (!asked_for && is_excluded(options_, file)) return;
        if (rule != rules_.end() && ignored_in_file(options_, f, **rule)) return;
        const bool silenced = rule != rules_.end() && suppressions.silences(f.span, **rule);
        (silenced ? report_.suppressed : report_.findings).push_back(std::move(f));
    }

    // Edits are places in the text that the facts are of.
    bool is_as_analysed(const std::string& path) {
        const auto read = read_.find(path);
        if (read == read_.end() || read->second == 0) return true;
        if (hash_bytes(report_.sources.text(path)) == read->second) return true;
        std::string said = path + ": changed while it was analysed, run mp-lint again";
        std::vector<std::string>& warnings = report_.warnings;
        if (std::find(warnings.begin(), warnings.end(), said) == warnings.end())
            warnings.push_back(std::move(said));
        return false;
    }

    void describe(const Plan& plan) {
        std::set<std::string_view> files;
        for (const UnitResult& u : report_.units) {
            if (u.state == UnitState::ok || u.state == UnitState::partial) files.insert(u.path);
        }
        report_.files = files.size();
        const auto cached = std::count_if(report_.units.begin(), report_.units.end(),
                                          [](const UnitResult& u) { return u.cached; });
        Stats::of_process().add_count("files", report_.files);
        Stats::of_process().add_count("units", report_.units.size());
        Stats::of_process().add_count("cache hits", static_cast<std::uint64_t>(cached));
        Stats::of_process().add_count("cache misses",
                                      report_.units.size() - static_cast<std::size_t>(cached));
        report_.tool_version = std::string(kVersion);
        report_.working_directory = options_.working_directory;
        report_.project_root = plan.project_root.empty() ? options_.working_directory : plan.project_root;
        report_.analysed_anything = !files.empty();
    }

    const LintOptions& options_;
    const FrontEnds& parts_;
    std::vector<const Rule*> rules_;
    std::unordered_map<std::string, std::uint64_t> read_;  // hashes of the texts behind the facts
    Report report_;
};

std::string shell_line(const std::vector<std::string>& words) {
    std::string out;
    for (const std::string& word : words) out += (out.empty() ? "" : " ") + shell_word(word);
    return out + "\n";
}

}  // namespace

Result<Report> run_lint(const LintOptions& options, const FrontEnds& parts) {
    return Linter(options, parts).run();
}

Result<std::vector<Unit>> run_facts(const LintOptions& options, const FrontEnds& parts) {
    const Result<Plan> plan = make_plan(options, parts);
    if (!plan) return plan.error();
    return gather(*plan, options, parts, *pack_of(*plan, options)).units;
}

Result<std::string> show_command(const LintOptions& options, const FrontEnds& parts) {
    const Result<Plan> plan = make_plan(options, parts);
    if (!plan) return plan.error();
    const ExtractOptions extract = extract_options(options, *plan);
    std::string out;
    if (!plan->database.empty()) out += "# database " + escape_controls(plan->database) + "\n";
    for (const CompileCommand& command : plan->commands) {
        const Invocation in = parts.translate(command, extract);
        out += "# " + escape_controls(in.file) + (in.headers.empty() ? "" : ", CUDA headers: " + in.headers) +
               "\n";
        for (const std::string& warning : in.warnings) out += "# " + escape_controls(warning) + "\n";
        if (!in.flags.empty()) out += "# noted, not passed on: " + shell_line(in.flags);
        out += shell_line(in.host);
        if (!in.device.empty()) out += "# when the code tests __CUDA_ARCH__, also:\n" + shell_line(in.device);
    }
    return out;
}

int exit_code(const Report& report, bool strict) {
    if (!report.analysed_anything || (strict && !incomplete(report).empty())) return 2;
    const bool loud = count(report.findings, Severity::error) + count(report.findings, Severity::warning) > 0;
    return loud ? 1 : 0;
}

}  // namespace mp::lint
