#include "analyzer/fix/fix.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "analyzer/fix/edits.hpp"
#include "analyzer/fix/files.hpp"
#include "analyzer/report/display.hpp"

namespace mp::lint {
namespace {

// Whether every unit of this file parsed without errors.
bool is_clean(const Report& report, const std::string& path) {
    return std::ranges::none_of(
        report.units, [&](const UnitResult& u) { return u.path == path && u.state != UnitState::ok; });
}

class Fixer {
public:
    Fixer(const std::function<Result<Report>()>& lint, const FixOptions& options, FixOutcome& outcome)
        : lint_(lint), options_(options), outcome_(outcome) {}

    Result<Report> run() {
        Result<Report> first = lint_();
        if (!first) return first;
        FixPlan plan = plan_fixes(*first, options_.with_unsafe);
        outcome_.fixed = plan.fixed;
        outcome_.need_unsafe = plan.need_unsafe;
        outcome_.conflicting = plan.conflicting;
        outcome_.left_alone = plan.not_ours + first->fixes_in_notebooks;
        if (first->fixes_in_notebooks)
            outcome_.messages.push_back(
                "notebooks are not edited, because their code is text inside JSON: change " +
                std::to_string(first->fixes_in_notebooks) + " finding(s) there by hand");
        if (plan.files.empty()) return first;
        tell_needs(*first);
        if (options_.only_show) {
            const Status shown = show(*first, plan);
            if (!shown) return shown.error();
            return first;
        }
        write(plan);
        if (written_.empty()) return first;
        Result<Report> second = lint_();
        if (!second || !restored(*first, *second)) return second;
        return lint_();
    }

private:
    // "use torch.amp.GradScaler('cuda', ...), which needs PyTorch 2.3": the program now runs with no older one.
    void tell_needs(const Report& report) {
        constexpr std::string_view kNeeds = "which needs ";
        std::set<std::string_view> needed;
        for (const Finding& f : report.findings) {
            const std::size_t at = f.fix.find(kNeeds);
            if (at != std::string::npos && !f.edits.empty() && (f.safe_edits || options_.with_unsafe))
                needed.insert(std::string_view(f.fix).substr(at + kNeeds.size()));
        }
        for (const std::string_view version : needed)
            outcome_.messages.push_back("the fixed code needs " + std::string(version) + " or newer");
    }

    Status show(const Report& report, const FixPlan& plan) {
        for (const FixedFile& file : plan.files) {
            const Result<std::string> diff =
                unified_diff(file, relative_path(file.path, report.working_directory));
            if (!diff) return diff.error();
            outcome_.diff += *diff;
        }
        return Done{};
    }

    void write(FixPlan& plan) {
        for (FixedFile& file : plan.files) {
            const Status done = replace_unchanged(file.path, file.before, file.after);
            if (done) {
                written_.push_back(std::move(file));
            } else {
                give_up(file, done.error().message);
            }
        }
    }

    void give_up(const FixedFile& file, const std::string& why) {
        outcome_.messages.push_back(why);
        outcome_.fixed -= std::min(outcome_.fixed, file.findings);
        outcome_.left_alone += file.findings;
    }

    bool restored(const Report& first, const Report& second) {
        bool any = false;
        for (const FixedFile& file : written_) {
            if (!is_clean(first, file.path) || is_clean(second, file.path)) continue;
            const Status done = replace_unchanged(file.path, file.after, file.before);
            any |= static_cast<bool>(done);
            give_up(file,
                    done ? file.path + ": does not parse after its fixes, restored" : done.error().message);
        }
        return any;
    }

    const std::function<Result<Report>()>& lint_;
    FixOptions options_;
    FixOutcome& outcome_;
    std::vector<FixedFile> written_;
};

}  // namespace

Result<Report> lint_and_fix(const std::function<Result<Report>()>& lint, const FixOptions& options,
                            FixOutcome& outcome) {
    return Fixer(lint, options, outcome).run();
}

std::string fix_summary(const FixOutcome& o, const FixOptions& options) {
    const std::string done = options.only_show ? "would be fixed" : "fixed";
    std::string out;
    for (const auto& [n, what] : {std::pair{o.fixed, done.c_str()},
                                  {o.need_unsafe, "need --unsafe-fixes"},
                                  {o.conflicting, "conflicting"},
                                  {o.left_alone, "left alone"}}) {
        if (n) out += (out.empty() ? "" : ", ") + std::to_string(n) + " " + what;
    }
    return out;
}

}  // namespace mp::lint
