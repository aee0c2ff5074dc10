#include "analyzer/adopt/adopt.hpp"

#include <sys/stat.h>

#include <array>
#include <optional>
#include <utility>

#include "analyzer/adopt/baseline.hpp"
#include "analyzer/adopt/changed_lines.hpp"
#include "analyzer/report/entries.hpp"
#include "kernels/base/figures.hpp"
#include "kernels/base/files.hpp"
#include "kernels/base/suggest.hpp"

namespace mp::lint {
namespace {

bool file_exists(const std::string& path) {
    struct stat info{};
    return ::stat(path.c_str(), &info) == 0;
}

Status save(const Baseline& baseline, const std::string& path) {
    Result<OutputFile> file = OutputFile::open(path);
    if (!file) return Error{path + ": cannot be written: " + file.error().message, ""};
    const Status saved = file->commit(print_baseline(baseline));
    return saved ? saved : Error{path + ": " + saved.error().message, ""};
}

// Lints everything. An incomplete report would make an incomplete baseline, so it is an error when nothing
// was analysed.
Result<Report> whole_run(const LintOptions& options, const FrontEnds& parts) {
    Result<Report> report = run_lint(options, parts);
    if (report && !report->analysed_anything)
        return Error{"nothing could be analysed", "'mp-lint --verbose' says more"};
    return report;
}

Result<BaselineAnswer> make(const std::string& path, const LintOptions& options, const FrontEnds& parts) {
    const Result<Report> report = whole_run(options, parts);
    if (!report) return report.error();
    const Status saved = save(make_baseline(*report), path);
    if (!saved) return saved.error();
    return BaselineAnswer{
        .out = {}, .said = path + ": " + counted(report->findings.size(), "finding"), .code = 0};
}

Result<BaselineAnswer> compare(const std::string& path, bool update, const LintOptions& options,
                               const FrontEnds& parts) {
    const Result<Baseline> baseline = load_baseline(path);
    if (!baseline) return baseline.error();
    const Result<Report> report = whole_run(options, parts);
    if (!report) return report.error();
    BaselineMatch match = match_baseline(*baseline, *report, file_exists);
    BaselineAnswer out;
    if (!update) {
        out.out = baseline_diff(match, *report);
        Report introduced;
        introduced.findings = std::move(match.introduced);
        out.code = exit_code(introduced, false);
        return out;
    }
    const Status saved = save(match.remaining, path);
    if (!saved) return saved.error();
    std::size_t fixed = 0;
    for (const BaselineEntry& e : match.fixed) fixed += e.count;
    out.said = path + ": " + std::to_string(fixed) + " removed, " +
               counted(match.introduced.size(), "new finding") + " not added";
    return out;
}

}  // namespace

Result<Report> run_adopted(const LintOptions& options, const FrontEnds& parts, const AdoptOptions& adopt,
                           FixOutcome& outcome) {
    std::optional<Baseline> baseline;
    if (!adopt.baseline.empty()) {
        Result<Baseline> read = load_baseline(adopt.baseline);
        if (!read) return read.error();
        baseline.emplace(std::move(*read));
    }
    const auto lint = [&]() -> Result<Report> {
        Result<Report> report = run_lint(options, parts);
        if (!report) return report;
        if (baseline) apply_baseline(*report, *baseline, adopt.baseline);
        if (adopt.diff_base.empty()) return report;
        // Computed again after a fix, because lines have moved.
        const Result<ChangedLines> lines = ChangedLines::since(adopt.diff_base, options.working_directory);
        if (!lines) return lines.error();
        lines->filter(*report);
        return report;
    };
    return adopt.fix ? lint_and_fix(lint, adopt.how, outcome) : lint();
}

Result<BaselineAnswer> run_baseline(const std::vector<std::string>& words, const LintOptions& options,
                                    const FrontEnds& parts) {
    static constexpr std::array<std::string_view, 3> kVerbs{"make", "update", "diff"};
    const std::string verb = words.empty() ? "" : words[0];
    if (verb != kVerbs[0] && verb != kVerbs[1] && verb != kVerbs[2]) {
        std::string hint = did_you_mean(verb, kVerbs);
        if (hint.empty()) hint = "mp-lint baseline make FILE, update FILE or diff FILE";
        return Error{"baseline: '" + verb + "' is none of make, update, diff", hint};
    }
    if (words.size() < 2)
        return Error{"baseline " + verb + ": which file?",
                     "mp-lint baseline " + verb + " mp-lint-baseline.json"};
    if (verb == "make") return make(words[1], options, parts);
    return compare(words[1], verb == "update", options, parts);
}

}  // namespace mp::lint
