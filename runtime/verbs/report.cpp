#include "runtime/verbs/report.hpp"

#include "kernels/base/stats.hpp"
#include "runtime/fold/symbols.hpp"
#include "runtime/report/json_report.hpp"
#include "runtime/report/page.hpp"
#include "runtime/report/run_summary.hpp"
#include "runtime/report/text_report.hpp"
#include "runtime/trace/display.hpp"
#include "runtime/verbs/inputs.hpp"
#include "runtime/verbs/run_stats.hpp"

namespace mp::trace {
namespace {

Error no_recording(const std::string& directory) {
    return {mp::trace::quoted(directory) + " holds no recording",
            "a process records from its first backward, optimizer step or collective on"};
}

}  // namespace

Result<ReportInputs> read_inputs(const ReportRequest& request) {
    if ((request.json == "-") + (request.html == "-") + request.text > 1)
        return Error{"report: two reports go to standard output", "give one a file: --json run.json"};
    if (const Status good = check_policies(request.policies); !good) return good.error();
    auto lint = read_lint_files(request.lint);
    if (!lint) return lint.error();
    return ReportInputs{*std::move(lint)};
}

Result<ReportRun> run_report(const ReportRequest& request, const ReportInputs& inputs) {
    const bool text = request.text || (request.html.empty() && request.json.empty());
    const FoldOptions options{.tables = text || !request.json.empty()};
    Result<RunModel> model = timed("fold", [&] { return fold_run(request.directory, options); });
    if (!model) return model.error();
    timed("symbols", [&] { launch::resolve_sources(*model); });
    count_run(*model);
    if (model->ranks.empty()) return no_recording(request.directory);
    Judgement judgement = timed("judge", [&] { return judge(*model, {}, request.policies); });
    join(judgement.findings, inputs.lint);

    ReportRun out;
    out.warnings = model->unreadable;
    const auto add = [&out](const std::string& file, auto render) {
        out.texts.emplace_back(file == "-" ? "" : file, timed("render", render));
    };
    if (!request.html.empty()) add(request.html, [&] { return html_page(*model, judgement); });
    if (!request.json.empty()) add(request.json, [&] { return json_text(json_report(*model, judgement)); });
    if (text) add("", [&] { return text_report(*model, judgement); });
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
