#include "runtime/report/run_summary.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "kernels/base/figures.hpp"
#include "runtime/judge/floors.hpp"
#include "runtime/report/process_rows.hpp"
#include "runtime/report/sections.hpp"
#include "runtime/report/verdict_text.hpp"
#include "runtime/trace/note_texts.hpp"

namespace mp::trace {
namespace {

constexpr std::string_view kOurs = "mp-trace: ";
constexpr std::size_t kMaxLines = 8;

std::string first_line(const RunModel& model, const Judgement& judgement) {
    std::string out = counted(model.step_count, "step") + ", " + ranks_text(model);
    if (const std::string loss = loss_text(model, judgement); !loss.empty()) out += " · " + loss;
    if (model.skipped_steps) out += " · " + counted(model.skipped_steps, "step") + " skipped";
    if (model.step_count > 0 && outcome_of(judgement) == Outcome::pass)
        out += " · nothing found" + no_twin_text(model);
    return out;
}

// "blocks.2.mlp.up  aten::addmm  forward", without what is not known.
std::string place_of(const std::string& layer, const std::string& op, Phase phase) {
    return (layer.empty() ? "" : shown_short(layer, 60) + "  ") + shown_short(op, 40) +
           (phase == Phase::unknown ? "" : "  " + std::string(name_of(phase)));
}

std::string overflow_line(const FirstOverflow& o) {
    if (!o.found) return {};
    std::string out = "  first overflow   " + place_of(o.layer, o.op, o.phase);
    if (o.step.known()) out += "  step " + std::to_string(o.step.value);
    out += whose_text(o.rank, o.device);
    out += "  " + std::string(name_of(o.dtype));
    if (o.twin_amax > 0) out += "  (twin: " + figure(o.twin_amax) + ")";
    return out;
}

std::string skips_line(const Judgement& judgement) {
    std::string out;
    for (const auto& [cause, steps] : skips_by_cause(judgement))
        out += (out.empty() ? "  skipped          " : " · ") +
               std::string(steps.size() > 1 ? "steps " : "step ") + ranges_text(steps) + ": " +
               std::string(name_of(cause));
    return out;
}

std::string cause_line(const RunModel& model, const Judgement& judgement) {
    if (judgement.findings.empty() || judgement.findings[0].severity == Severity::note) return {};
    const Finding& f = judgement.findings[0];
    return "  first cause      " + shown_short(headline_of(model, judgement), kWhole) + " [" +
           shown_short(f.rule, 12) + "]";
}

std::string diverging_line(const Judgement& judgement) {
    const Rung* worst = nullptr;
    const auto is_kernel = [&](const Rung& r) {
        return std::ranges::any_of(judgement.findings, [&](const Finding& f) {
            return is_about_a_kernel(f) && f.op == r.op && f.phase == r.phase;
        });
    };
    for (const Rung& r : judgement.ladder) {
        // What the op's roundings cost in every sound run is no news.
        if (r.introduced < Limits{}.loc_warn_phi * expected_phi(r.op) || is_kernel(r)) continue;
        if (!worst || r.introduced > worst->introduced) worst = &r;
    }
    if (!worst) return {};
    return "  diverging most   " + place_of(worst->layer, worst->op, worst->phase) + "  " +
           phi_text(worst->introduced) + " introduced";
}

// The policies that the run violates. bf16 gradients, for example, are a fault only if a policy declares another dtype.
std::string policy_line(const Judgement& judgement) {
    std::string out;
    std::size_t more = 0;
    for (const Check& c : judgement.checks) {
        if (!c.violated) continue;
        if (out.empty()) {
            out = "  not so           " + shown_short(c.sentence, 90) + (c.evidence.empty() ? "" : ": ") +
                  shown_short(c.evidence, 90);
        } else {
            ++more;
        }
    }
    return more ? out + " (and " + std::to_string(more) + " more)" : out;
}

// Why the gate will not pass this run, and the share that the twin did not follow.
std::vector<std::string> unknown_lines(const RunModel& model, const Judgement& judgement) {
    constexpr std::size_t kMost = 3;
    std::vector<std::string> lines;
    const auto add = [&](const std::string& text) { lines.push_back("  not known        " + text); };
    for (std::size_t i = 0; i < judgement.inconclusive.size() && i < kMost; ++i)
        add(shown_short(judgement.inconclusive[i], 200));
    const double followed = fraction_of_ops(model.coverage);
    if (lines.empty() && followed >= 0 && model.coverage.unshadowed > 0)
        add(percent(1 - followed) + " of float ops not followed");
    return lines;
}

// What a program without torch did that was not seen, or seen by name alone.
std::vector<std::string> unseen_lines(const RunModel& model) {
    std::vector<std::string> lines;
    if (!is_raw(model)) return lines;
    std::uint64_t kernels = 0, others = 0;
    const RunModel::Note* first = nullptr;
    for (const RunModel::Note& note : model.notes) {
        if (note.kind != NoteKind::not_observed && note.kind != NoteKind::disarmed) continue;
        if (note.text == kLooseSums) continue;  // seen, and of the checked sentences
        if (note.text.starts_with(kSeenByName)) {
            ++kernels;
        } else if (!first) {
            first = &note;
        } else {
            ++others;
        }
    }
    if (first)
        lines.push_back("  not seen         " + shown_short(first->text, 150) +
                        (others > 0 ? " (and " + counted(others, "more note") + ")" : ""));
    if (kernels > 0)
        lines.push_back("  by name only     " + counted(kernels, "kernel") + " in " +
                        counted(model.coverage.by_name, "call") + ": their values are not known");
    return lines;
}

}  // namespace

std::string run_summary(const RunModel& model, const Judgement& judgement) {
    // The last line is never omitted, because it names the command that shows the rest.
    const std::string directory = shown_short(model.directory, 300);
    std::vector<std::string> lines{first_line(model, judgement)};
    for (std::string& line :
         std::vector<std::string>{cause_line(model, judgement), overflow_line(judgement.first_overflow),
                                  skips_line(judgement), diverging_line(judgement), policy_line(judgement)}) {
        if (!line.empty()) lines.push_back(std::move(line));
    }
    if (const std::string note = steps_note(model); !note.empty())
        lines.push_back("  steps            " + note);
    std::vector<std::string> unknown = unknown_lines(model, judgement);
    std::ranges::move(unseen_lines(model), std::back_inserter(unknown));
    for (std::string& line : unknown) {
        if (lines.size() + 1 < kMaxLines) lines.push_back(std::move(line));
    }
    lines.push_back("next: mp-trace report " + directory + " --html report.html");
    std::string out;
    for (const std::string& line : lines) out.append(kOurs).append(line).append("\n");
    return out;
}

}  // namespace mp::trace
