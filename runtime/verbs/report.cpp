#include "runtime/verbs/report.hpp"

#include "kernels/base/stats.hpp"
#include "runtime/fold/symbols.hpp"
#include "runtime/gate/gate.hpp"
#include "runtime/judge/policy_text.hpp"
#include "runtime/report/json_report.hpp"
#include "runtime/report/page.hpp"
#include "runtime/report/run_summary.hpp"
#include "runtime/report/text_report.hpp"
#include "runtime/trace/display.hpp"
#include "runtime/verbs/run_stats.hpp"

namespace mp::trace {
namespace {

Error no_recording(const std::string& directory) {
    return {mp::trace::quoted(directory) + " holds no recording",
            "a process records from its first backward, optimizer step or collective on"};
}

Result<std::vector<LintFinding>> lint_of(const ReportRequest& request) {
    std::vector<LintFinding> out;
    for (const std::string& path : request.lint) {
        const auto found = read_lint(path);
        if (!found) return Error{"--lint: " + found.error().message, found.error().hint};
        out.insert(out.end(), found->begin(), found->end());
    }
    return out;
}

}  // namespace

Status check_report(const ReportRequest& request) {
    if ((request.json == "-") + (request.html == "-") + request.text > 1)
        return Error{"report: two reports go to standard output", "give one a file: --json run.json"};
    for (const std::string& text : request.policies) {
        const auto policy = parse_policy(text, "");
        if (!policy) return Error{"--policy: " + policy.error().message, policy.error().hint};
    }
    const auto lint = lint_of(request);
    return lint ? Status(Done{}) : lint.error();
}

Result<ReportRun> run_report(const ReportRequest& request) {
    const auto lint = lint_of(request);
    if (!lint) return lint.error();
    // The tables of text and JSON are of each process, which the model has folded together: only they need
    // the recordings themselves in memory.
    const bool text = request.text || (request.html.empty() && request.json.empty());
    const bool tables = text || !request.json.empty();
    Run whole;
    Result<RunModel> model =
        timed("fold", [&] { return fold_run(request.directory, {}, tables ? &whole : nullptr); });
    if (!model) return model.error();
    timed("symbols", [&] { launch::resolve_sources(*model); });
    count_run(*model);
    if (model->ranks.empty()) return no_recording(request.directory);
    Judgement judgement = timed("judge", [&] { return judge(*model, {}, request.policies); });
    join(judgement.findings, *lint);

    ReportRun out;
    out.warnings = model->unreadable;
    const auto add = [&out](const std::string& file, auto render) {
        out.texts.emplace_back(file == "-" ? "" : file, timed("render", render));
    };
    if (!request.html.empty()) add(request.html, [&] { return html_page(*model, judgement); });
    if (!request.json.empty())
        add(request.json, [&] { return json_text(json_report(whole, *model, judgement)); });
    if (text) add("", [&] { return text_report(whole, *model, judgement); });
    return out;
}

Result<std::string> summary_of(const std::string& directory) {
    Result<RunModel> model = fold_run(directory);
    if (!model) return model.error();
    launch::resolve_sources(*model);
    if (model->ranks.empty()) return no_recording(directory);
    return run_summary(*model, judge(*model));
}

}  // namespace mp::trace
