#include "runtime/verbs/inputs.hpp"

#include "runtime/judge/policy_text.hpp"

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

}  // namespace mp::trace
