#include "analyzer/driver/lint.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "analyzer/cache/directory.hpp"
#include "analyzer/config/glob.hpp"
#include "analyzer/driver/discover.hpp"
#include "analyzer/driver/gather.hpp"
#include "analyzer/driver/judge.hpp"
#include "analyzer/driver/merge.hpp"
#include "analyzer/driver/named_devices.hpp"
#include "analyzer/driver/pool.hpp"
#include "analyzer/driver/result_cache.hpp"
#include "analyzer/report/display.hpp"
#include "analyzer/suppress/suppress.hpp"
#include "kernels/base/escape.hpp"
#include "kernels/base/figures.hpp"
#include "kernels/base/files.hpp"
#include "kernels/base/stats.hpp"
#include "kernels/base/version.hpp"
#include "kernels/numerics/torch_policies.hpp"

namespace mp::lint {
namespace {

// In bytes. Source text is read for carets and suppressions only, and larger files are generated.
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

// The files that were analysed completely. Only there a comment that silences nothing is known to be unused.
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

// Whether the hash of a name is one of these, sorted.
std::function<bool(std::string_view)> one_of(std::vector<std::uint64_t> hashes) {
    return [hashes = std::move(hashes)](std::string_view name) {
        return std::ranges::binary_search(hashes, hash_bytes(name));
    };
}

// What a run over a large tree fills memory with. Destroying it frees half a million facts one by one, so the next run
// destroys it, and that of the last run is never destroyed.
struct Memory {
    std::optional<FactStore> store;
    std::optional<Gatherer> gatherer;
    std::optional<Program> program;

    void clear() {
        program.reset();
        gatherer.reset();
        store.reset();
    }
};
Memory& memory_of_run() {
    static auto* const memory = new Memory;
    return *memory;
}

// Where the facts of the plan's units are stored: one store for a project.
std::string store_path(const Plan& plan, const LintOptions& options, const std::string& directory) {
    const std::string binary = own_binary();
    const std::array<std::string_view, 3> parts{
        "bodies and lines", binary,
        plan.project_root.empty() ? options.working_directory : plan.project_root};
    return directory + "/" + make_key(parts).hex() + ".pack";
}

// The directory below which a folder "tests" holds tests of the program: the project, else the working directory, else
// the directory that is analysed.
std::string root_of(const Plan& plan, const LintOptions& options) {
    if (!plan.project_root.empty()) return plan.project_root;
    std::string start = start_directory(options);
    const bool inside = !relative_path(start, options.working_directory).starts_with('/');
    return inside ? options.working_directory : start;
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
        root_ = root_of(*plan, options_);
        torch_ = plan->torch;
        project_.transformers = plan->transformers;

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
    // The findings of all rules, before suppressions: those of the last run if the facts are the same.
    Findings find(const Plan& plan, const Policies& policies) {
        report_.warnings = plan.warnings;
        if (const TorchVersion newest = Policies::newest(); policies.torch() > newest)
            report_.warnings.push_back(
                "torch " + options_.torch + ": the newest autocast lists known are those of " +
                std::to_string(newest.major) + "." + std::to_string(newest.minor) + ", and they are used");
        UnitPlanner planner(plan, options_, parts_);
        const std::string directory = open_cache();
        const std::vector<PlannedUnit> commands = planner.commands();
        ResultCache results(planner, rules_, directory);
        if (std::optional<CachedResults> last = timed("cache", [&] { return results.unchanged(commands); })) {
            mark_used(store_path(plan, options_, directory));
            report_.units = std::move(last->units);
            return std::move(last->findings);
        }
        memory_.clear();
        FactStore& store = memory_.store.emplace(store_path(plan, options_, directory),
                                                 options_.jobs.value_or(available_jobs()));
        Gatherer& gatherer = memory_.gatherer.emplace(planner, directory.empty() ? nullptr : &store);
        timed("extract", [&] { gatherer.run(commands); });
        std::optional<Findings> findings = timed("cache", [&] {
            std::optional<Findings> same = results.same_facts(gatherer);
            if (!same) gatherer.read_facts();
            close(store, gatherer, directory);
            return same;
        });
        if (!findings) {
            project_.is_whole = plan.is_whole;
            project_.is_package = plan.is_package;
            project_.is_imported_unread = one_of(gatherer.unread_imports());
            if (const auto& given = gatherer.given_options()) {
                project_.is_given = one_of(*given);
                project_.devices = project_.is_given(kNamesOlderDevice)      ? Devices::older
                                   : project_.is_given(kNamesDeviceWithBf16) ? Devices::with_bf16
                                                                             : Devices::none;
            }
            findings = judge_all(gatherer, policies);
        }
        timed("cache", [&] { results.save(commands, gatherer, *findings); });
        for (GatheredUnit& unit : gatherer.units()) {
            if (!unit.planned.command && !unit.head.inputs.files.empty())
                read_[unit.planned.path()] = unit.head.inputs.files.front().hash;
            report_.units.push_back(std::move(unit.result));
        }
        return *std::move(findings);
    }

    // The directory of the cache. Empty: there is none.
    std::string open_cache() {
        if (!options_.use_cache) return {};
        Result<std::string> directory = open_cache_directory(cache_directory(options_));
        if (directory) return *std::move(directory);
        report_.warnings.push_back(directory.error().message);
        return {};
    }

    void close(FactStore& store, Gatherer& gatherer, const std::string& directory) {
        if (directory.empty()) return;
        if (!gatherer.save())
            report_.warnings.push_back("cache: cannot write to " + directory + ": " + std::strerror(errno));
        if (store.damaged())
            report_.warnings.push_back("cache: damaged entries in " + directory + " were made anew");
        evict_old_files(directory);
    }

    Findings judge_all(Gatherer& gatherer, const Policies& policies) {
        std::vector<Unit> units;
        for (GatheredUnit& unit : gatherer.units()) units.push_back(std::move(unit.unit));
        const int threads = options_.jobs.value_or(available_jobs());
        const Program& program = memory_.program.emplace(
            timed("link", [&] { return Program::link(std::move(units), options_.regions, threads); }));
        return timed("rules", [&] {
            return merge_findings(judge_all(program, policies, threads), options_.working_directory);
        });
    }

    Findings judge_all(const Program& program, const Policies& policies, int threads) const {
        const RuleContext context{.program = program,
                                  .policies = policies,
                                  .inference = options_.inference.value_or(false),
                                  .torch = torch_,
                                  .device = options_.device,
                                  .assume = options_.assume,
                                  .root = root_,
                                  .project = project_};
        return judge(rules_, context, threads);
    }

    void load_source(const std::string& path) {
        Sources& sources = report_.sources;
        if (path.empty() || sources.has(path)) return;
        std::string text;
        read_file(path, text, kLargestSource);
        sources.add(path, std::move(text));
        if (path.ends_with(".ipynb") && parts_.cell_lines)
            sources.add_cells(path, parts_.cell_lines(sources.text(path)));
    }

    void load_sources(const Findings& findings) {
        for (const Finding& f : findings) {
            load_source(std::string(f.span.file.str()));
            for (const Edit& e : f.edits) load_source(std::string(e.at.file.str()));
        }
    }

    void sort_out(Findings findings, const std::vector<std::string>& named) {
        load_sources(findings);
        Suppressions suppressions(report_.sources);
        for (Finding& f : findings) sort_out(std::move(f), named, suppressions);
        for (const std::string& path : whole_files(report_)) {
            load_source(path);
            for (Finding& f : suppressions.problems(path, rules_, parts_.rules))
                sort_out(std::move(f), named, suppressions);
        }
        std::sort(report_.findings.begin(), report_.findings.end(), stands_before);
    }

    void sort_out(Finding f, const std::vector<std::string>& named, Suppressions& suppressions) {
        const auto rule =
            std::find_if(rules_.begin(), rules_.end(), [&](const Rule* r) { return r->id == f.rule; });
        const std::string file(f.span.file.str());
        // The Python code of a notebook is text inside JSON, so edits cannot be applied to the file.
        const bool in_notebook = file.ends_with(".ipynb") && !f.edits.empty();
        if (in_notebook) f.edits.clear();
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
        if (in_notebook && !silenced) ++report_.fixes_in_notebooks;
        (silenced ? report_.suppressed : report_.findings).push_back(std::move(f));
    }

    // Whether the file still has the text from which the facts were extracted. Edits refer to places in that text.
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
        report_.homepage = MP_HOMEPAGE;
        report_.working_directory = options_.working_directory;
        report_.project_root = plan.project_root.empty() ? options_.working_directory : plan.project_root;
        describe_commands(plan);
        report_.analysed_anything = !files.empty();
    }

    // What would make the analysis of C++ more complete.
    void describe_commands(const Plan& plan) {
        std::set<std::string_view> commands(plan.headers.begin(), plan.headers.end());
        for (const UnitResult& u : report_.units) {
            if (commands.contains(u.path) && u.coverage.uninstantiated > 0)
                report_.lone_headers.push_back(u.path);
        }
        for (const CompileCommand& c : plan.commands) commands.insert(c.file);
        const auto lacks_headers = [&](const UnitResult& u) {
            return !u.coverage.missing_headers.empty() && commands.contains(u.path);
        };
        if (std::ranges::none_of(report_.units, lacks_headers)) return;
        report_.lacks_database = plan.database.empty() && !options_.flags;
        const std::vector<std::string> absent = absent_submodules(report_.project_root);
        if (absent.empty()) return;
        std::string said = "git submodules are absent: ";
        for (const std::string& path : absent) said += (&path == &absent.front() ? "" : ", ") + path;
        report_.warnings.push_back(said + " ('git submodule update --init' brings their headers)");
    }

    const LintOptions& options_;
    const FrontEnds& parts_;
    Memory& memory_ = memory_of_run();
    std::string root_;
    TorchVersion torch_;
    Project project_;
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
    UnitPlanner planner(*plan, options, parts);
    std::string directory;
    if (options.use_cache) {
        const Result<std::string> opened = open_cache_directory(cache_directory(options));
        if (opened) directory = *opened;
    }
    FactStore store(store_path(*plan, options, directory));
    Gatherer gatherer(planner, directory.empty() ? nullptr : &store);
    gatherer.run(planner.commands());
    gatherer.read_facts();
    gatherer.save();
    std::vector<Unit> units;
    for (GatheredUnit& unit : gatherer.units()) units.push_back(std::move(unit.unit));
    return units;
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
    if (!plan->python.empty())
        out += "# " + counted(plan->python.size(), "Python file") + " without a command\n";
    return out;
}

int exit_code(const Report& report, bool strict) {
    if (!report.analysed_anything || (strict && !incomplete(report).empty())) return 2;
    const bool loud = count(report.findings, Severity::error) + count(report.findings, Severity::warning) > 0;
    return loud ? 1 : 0;
}

}  // namespace mp::lint
