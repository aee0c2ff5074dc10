#include "runtime/verbs/report.hpp"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "kernels/base/stats.hpp"
#include "runtime/fold/symbols.hpp"
#include "runtime/report/json_report.hpp"
#include "runtime/report/page.hpp"
#include "runtime/report/run_summary.hpp"
#include "runtime/report/text_report.hpp"
#include "runtime/trace/display.hpp"
#include "runtime/trace/identity.hpp"
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
    if (const Status good = add_noise(*model, request.noise); !good) return good.error();
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
    const std::vector<std::string> jobs = jobs_in(request.directory);
    if (jobs.size() > 1)
        out.warnings.push_back({"this is the first of " + std::to_string(jobs.size()) +
                                    " jobs of one command; the last is " + mp::trace::quoted(jobs.back()),
                                {}});
    return out;
}

namespace {

constexpr int kLooks = 5;

// Whether a process that recorded no end is known to be alive. On another host that cannot be known, so it may be.
void look_for_running(RunModel& model) {
    const std::string host = identity_of_process([](const char*) { return nullptr; }).host;
    for (RankFacts& r : model.ranks)
        r.running = !r.ended && (r.process.host != host || ::kill(static_cast<pid_t>(r.process.pid), 0) == 0);
}

// The ranks of a job end at about the same time, and the lowest one prints the summary.
Result<RunModel> fold_when_ended(const std::string& directory) {
    auto pause = std::chrono::milliseconds(100);
    for (int look = 1;; ++look, pause *= 2) {
        Result<RunModel> model = fold_run(directory);
        if (!model) return model;
        look_for_running(*model);
        if (look == kLooks || std::ranges::none_of(model->ranks, &RankFacts::running)) return model;
        std::this_thread::sleep_for(pause);
    }
}

}  // namespace

Result<std::string> summary_of(const std::string& directory) {
    Result<RunModel> model = fold_when_ended(directory);
    if (!model) return model.error();
    launch::resolve_sources(*model);
    if (model->ranks.empty()) return no_recording(directory);
    return run_summary(*model, judge(*model));
}

}  // namespace mp::trace
