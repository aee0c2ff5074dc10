#include "runtime/verbs/inputs.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/judge/policy_text.hpp"
#include "runtime/trace/display.hpp"

namespace mp::trace {

Status check_policies(const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
        const auto policy = parse_policy(text, "");
        if (!policy) return Error{"--policy: " + policy.error().message, policy.error().hint};
    }
    return Done{};
}

Result<std::vector<LintFinding>> read_lint_files(const std::vector<std::string>& paths) {
    std::vector<LintFinding> out;
    for (const std::string& path : paths) {
        const auto found = read_lint(path);
        if (!found) return Error{"--lint: " + found.error().message, found.error().hint};
        out.insert(out.end(), found->begin(), found->end());
    }
    return out;
}

Status add_noise(RunModel& model, const std::string& directory) {
    if (directory.empty()) return Done{};
    constexpr double kSameStart = 1e-3;  // of a loss, on a device whose sums have no fixed order
    const Result<RunModel> disturbed = fold_run(directory);
    if (!disturbed) return Error{"--noise: " + disturbed.error().message, disturbed.error().hint};
    const auto fault = [&](const std::string& what) {
        return Error{
            "--noise: " + quoted(directory) + " " + what,
            "record the same command once more: mp-trace --mode trajectory --twin-noise -o DIR -- ..."};
    };
    bool first = true, differs = false;
    for (StepSummary& s : model.steps) {
        const auto other = std::ranges::find(disturbed->steps, s.step, &StepSummary::step);
        if (other == disturbed->steps.end() || !s.has_twin || !other->has_twin) continue;
        if (std::exchange(first, false) && std::fabs(s.loss - other->loss) > kSameStart * std::fabs(s.loss))
            return fault("is another training: its first loss differs");
        s.noise = std::fabs(s.twin_loss - other->twin_loss);
        differs = differs || s.noise > 0;
    }
    return differs ? Status(Done{}) : fault("has the same twin");
}

}  // namespace mp::trace
