#include "runtime/verbs/gate.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <optional>
#include <string_view>

#include "kernels/base/cli/command_line.hpp"
#include "kernels/base/stats.hpp"
#include "runtime/fold/symbols.hpp"
#include "runtime/gate/dates.hpp"
#include "runtime/gate/gate.hpp"
#include "runtime/trace/display.hpp"
#include "runtime/verbs/inputs.hpp"
#include "runtime/verbs/run_stats.hpp"

namespace mp::trace {
namespace {

constexpr std::array<std::string_view, 5> kFormats{"text", "json", "junit", "sarif", "github"};
constexpr const char* kDefaultRules = "mp-gate.toml";

Result<Rules> rules_of(const std::string& asked) {
    if (!asked.empty()) return read_rules(asked);
    struct stat info{};
    return ::stat(kDefaultRules, &info) == 0 ? read_rules(kDefaultRules) : Result<Rules>(Rules{});
}

std::string today() {
    const std::time_t now = std::time(nullptr);
    std::tm date{};
    ::gmtime_r(&now, &date);
    return date_text(date.tm_year + 1900, static_cast<unsigned>(date.tm_mon) + 1,
                     static_cast<unsigned>(date.tm_mday));
}

// One of the jobs that the command started.
struct Job {
    std::string directory;
    bool may_have_trained = false;
    GateResult result;
};

// A process that was killed may have taken steps that were not written.
bool may_have_trained(const RunModel& model) {
    return model.step_count > 0 || !model.unreadable.empty() ||
           !std::ranges::all_of(model.ranks, &RankFacts::ended);
}

// A launcher may record a collective or a backward of its own. If any job trained, only such jobs count.
void keep_trained(std::vector<Job>& jobs) {
    if (std::ranges::any_of(jobs, &Job::may_have_trained))
        std::erase_if(jobs, [](const Job& j) { return !j.may_have_trained; });
}

// Failed is worse than inconclusive.
int worse(int one, int other) { return one == 1 || other == 1 ? 1 : std::max(one, other); }

std::string written(std::string_view format, const std::vector<Job>& jobs, bool color) {
    const Job& first = jobs.front();
    if (format == "json") return gate_json(first.result, first.directory);
    if (format == "junit") return gate_junit(first.result, first.directory);
    if (format == "sarif") return gate_sarif(first.result, first.directory);
    if (format == "github") return gate_github(first.result, first.directory);
    std::string out;
    for (const Job& job : jobs) {
        if (jobs.size() > 1) out += (out.empty() ? "" : "\n") + shown(job.directory) + "\n";
        out += gate_text(job.result, color);
    }
    return out;
}

}  // namespace

Result<GateRun> run_gate(const GateRequest& request) {
    const Result<std::vector<cli::Destination>> outputs =
        cli::destinations("--output", request.outputs, kFormats);
    if (!outputs) return outputs.error();
    Result<Rules> rules = rules_of(request.rules);
    if (!rules) return rules.error();
    std::vector<std::string> policies = rules->policies;
    if (const Status good = check_policies(request.policies); !good) return good.error();
    policies.insert(policies.end(), request.policies.begin(), request.policies.end());
    const auto lint = read_lint_files(request.lint);
    if (!lint) return lint.error();
    std::vector<Job> jobs;
    for (const std::string& directory : jobs_in(request.directory)) {
        Result<RunModel> model = timed("fold", [&] { return fold_run(directory); });
        if (!model) return model.error();
        if (const Status good = add_noise(*model, request.noise); !good) return good.error();
        timed("symbols", [&] { launch::resolve_sources(*model); });
        count_run(*model);
        const Judgement judgement = timed("judge", [&] { return judge(*model, rules->limits, policies); });
        jobs.push_back(
            {directory, may_have_trained(*model), gate(judgement, *rules, *lint, today(), request.strict)});
    }
    keep_trained(jobs);
    GateRun out;
    for (const Job& job : jobs) out.exit = worse(out.exit, exit_code(job.result));
    for (const cli::Destination& o : *outputs) {
        const std::string_view format = kFormats[o.format];
        if (jobs.size() > 1 && format != "text")
            return Error{"--output " + std::string(format) + ": " + mp::trace::quoted(request.directory) +
                             " holds " + std::to_string(jobs.size()) + " jobs",
                         "one at a time: mp-trace gate " + jobs.back().directory};
        out.texts.emplace_back(
            o.file, timed("render", [&] { return written(format, jobs, request.color && o.file.empty()); }));
    }
    return out;
}

}  // namespace mp::trace
