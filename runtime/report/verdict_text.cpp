#include "runtime/report/verdict_text.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/base/figures.hpp"
#include "kernels/base/text.hpp"
#include "runtime/report/process_rows.hpp"
#include "runtime/report/sections.hpp"
#include "runtime/trace/display.hpp"
#include "runtime/trace/note_texts.hpp"

namespace mp::trace {
namespace {

constexpr double kFarInAStep = 0.02;  // a user sees that two losses differ
constexpr std::size_t kMaxFindings = 12, kMaxScales = 12, kMaxSkips = 12, kMaxRanges = 8;

std::string upper(std::string_view text) {
    std::string out(text);
    for (char& c : out) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    return out;
}

// "+0.12 %"
std::string signed_percent(double share) {
    if (std::fabs(share) < 1e-4) return "within 0.01 %";
    return (share < 0 ? "-" : "+") + percent(std::fabs(share));
}

std::string agreement_text(const LossAgreement& a) {
    using Answer = LossAgreement::Answer;
    const std::string last = " over the last " + counted(a.steps, "step");
    const std::string times =
        a.twin > 0 && a.loss > 0 ? figure(std::round(100 * a.loss / a.twin) / 100) + " times" : "not";
    const std::string from =
        a.begins.known() ? ", apart from step " + std::to_string(a.begins.value) + " on" : "";
    switch (a.answer) {
        case Answer::agrees:
            if (a.farthest >= kFarInAStep && a.one_sided)
                return "is on one side of the fp32 loss (" + signed_percent(a.apart) + last + ")";
            if (a.farthest >= kFarInAStep)
                return "scatters around the fp32 loss (" + signed_percent(a.apart) + last + ", " +
                       percent(a.farthest) + " in one of them)";
            return "is the fp32 loss (" + signed_percent(a.apart) + last + ")";
        case Answer::scattered:
            return "scatters around the fp32 loss (" + signed_percent(a.apart) + last + ")";
        case Answer::above:
        case Answer::below:
            return "is " + times + " the fp32 loss" + last + from;
        case Answer::lost:
            return "is lost, the fp32 loss is not";
        case Answer::lost_in_both:
            return "is lost, also in fp32";
        case Answer::lost_in_twin:
            return "is finite, the fp32 loss is not";
        case Answer::not_compared:
            break;
    }
    return {};
}

std::string strip_text(const RunModel& model, const Judgement& judgement) {
    std::string out = upper(name_of(outcome_of(judgement))) + "  " +
                      shown_short(headline_of(model, judgement), kWhole) + "\n      " +
                      counted(model.step_count, "step") + ", " + ranks_text(model);
    const double followed = fraction_of_ops(model.coverage);
    if (followed >= 0) out += ", twin of " + percent(followed) + " of the float ops";
    out += no_twin_text(model);
    if (model.skipped_steps) out += ", " + std::to_string(model.skipped_steps) + " skipped";
    out += "\n";
    if (const std::string loss = loss_text(model, judgement); !loss.empty()) out += "      " + loss + "\n";
    if (const std::string note = steps_note(model); !note.empty()) out += "      steps: " + note + "\n";
    for (const std::string& why : judgement.inconclusive)
        out += "      inconclusive: " + shown_short(why) + "\n";
    return out;
}

// "8.0 φ introduced, 1.2 φ inherited, 8.1 φ in total (fp16)"
std::string rung_text(const Rung& rung) {
    std::string out;
    const auto add = [&out](double value, const char* what) {
        if (value >= 0) out += (out.empty() ? "" : ", ") + phi_text(value) + what;
    };
    add(rung.introduced, " introduced");
    add(rung.inherited, " inherited");
    add(rung.total, " in total");
    return (out.empty() ? "no error was measured" : out) + " (" + std::string(name_of(rung.dtype)) + ")";
}

std::string cause_text(const RunModel& model, const Judgement& judgement) {
    if (judgement.findings.empty() || judgement.findings[0].severity == Severity::note) return {};
    const Finding& f = judgement.findings[0];
    std::string out = "\nfirst cause  " + where_text(f) + "\n";
    const std::string indent(13, ' ');
    if (const Rung* rung = rung_of(judgement, f)) out += indent + rung_text(*rung) + "\n";
    if (const OpSum* sum = op_of(model, f)) {
        const OpRecord& at = sum->first_origin.step.known() ? sum->at_origin : sum->total;
        const std::uint64_t bad = at.nan + at.pos_inf + at.neg_inf;
        out += indent + "output up to " + figure(at.amax);
        if (bad) out += ", " + std::to_string(bad) + " of " + std::to_string(at.elements) + " not finite";
        if (at.compared) out += "; twin up to " + figure(at.twin_amax);
        if (at.input_amax > 0) out += "; inputs up to " + figure(at.input_amax);
        out += "\n";
    }
    if (!f.confirmed_by.empty())
        out += indent + "also found by mp-lint: " + shown_short(f.confirmed_by[0]) + "\n";
    if (!f.advice.empty()) out += indent + "change: " + shown_short(f.advice, kWhole) + "\n";
    return out;
}

std::string findings_text(const Judgement& judgement) {
    std::vector<const Finding*> all;
    for (const Finding& f : judgement.findings) {
        if (!is_about_a_kernel(f)) all.push_back(&f);
    }
    if (all.size() < 2) return {};
    std::string out = "\nfindings\n";
    for (std::size_t i = 0; i < all.size() && i < kMaxFindings; ++i) {
        const Finding& f = *all[i];
        const std::string basis =
            f.basis == Basis::unknown ? "" : "  (" + std::string(name_of(f.basis)) + ")";
        out += "  " + std::string(name_of(f.severity)) + "  " + shown_short(f.rule + " " + f.name) + "  " +
               where_text(f) + basis + "\n           " + shown_short(f.message, kWhole) + "\n";
    }
    if (all.size() > kMaxFindings)
        out += "  and " + std::to_string(all.size() - kMaxFindings) + " more: --json has all\n";
    return out;
}

std::string kernels_text(const Judgement& judgement) {
    std::string out;
    for (const Finding& f : judgement.findings) {
        if (is_about_a_kernel(f)) out += "  " + shown_short(f.message, 300) + "\n";
    }
    return out.empty() ? out : "\nkernels of this torch on this device, not of the program\n" + out;
}

// "65536 from step 0, 32768 from 17, ... 4096 from 36"
std::string scales_text(const RunModel& model) {
    std::vector<std::string> changes;
    double last = std::nan("");
    for (const StepSummary& s : model.steps) {
        if (!s.has_loss_scale || s.loss_scale == last) continue;
        last = s.loss_scale;
        changes.push_back(figure(last) + " from step " + std::to_string(s.step.value));
    }
    if (changes.empty()) return {};
    std::string out = "  scale    ";
    for (std::size_t i = 0; i < changes.size(); ++i) {
        if (i + 1 < changes.size() && i + 1 == kMaxScales) out += ", ...";
        if (i + 1 < changes.size() && i + 1 >= kMaxScales) continue;
        out += (i ? ", " : "") + changes[i];
    }
    return out + "\n";
}

std::string skips_text(const RunModel& model, const Judgement& judgement) {
    std::string out = scales_text(model);
    for (const auto& [cause, steps] : skips_by_cause(judgement))
        out += "  skipped  " + ranges_text(steps) + ": " + std::string(name_of(cause)) + "\n";
    for (std::size_t i = 0; i < judgement.skips.size() && i < kMaxSkips; ++i) {
        const SkipVerdict& s = judgement.skips[i];
        out += "  step " + std::to_string(s.step.value);
        out += whose_text(s.rank, s.device);
        for (const std::string* part : {&s.layer, &s.op, &s.parameter}) {
            if (!part->empty()) out += "  " + shown_short(*part, 80);
        }
        if (s.ranks_disagree) out += "  (the ranks disagree)";
        out += s.why.empty() ? "\n" : "\n           " + shown_short(s.why, kWhole) + "\n";
    }
    if (judgement.skips.size() > kMaxSkips)
        out += "  and " + std::to_string(judgement.skips.size() - kMaxSkips) +
               " more skipped steps: --json has all\n";
    return out.empty() ? out : "\nloss scale\n" + out;
}

std::string checks_text(const Judgement& judgement) {
    if (judgement.checks.empty()) return {};
    std::string out = "\nchecked\n";
    for (const Check& c : judgement.checks) {
        // Only a declared policy makes an answer a fault. Otherwise it is a fact, as for bf16 gradients.
        const char* answer = c.violated                       ? "  NO   "
                             : c.answer == Check::Answer::yes ? "  yes  "
                             : c.answer == Check::Answer::no  ? "  no   "
                                                              : "  -    ";
        const bool seen = c.answer != Check::Answer::not_observed || !c.evidence.empty();
        out += answer + shown_short(c.sentence) +
               (!seen                ? " (none was seen)"
                : c.evidence.empty() ? ""
                                     : " (" + shown_short(c.evidence) + ")") +
               "\n";
    }
    return out;
}

// Whether the two are further apart than sound runs of a hundred steps are, so that a noise floor would tell more.
bool parts_from_twin(LossAgreement::Answer answer) {
    using Answer = LossAgreement::Answer;
    return answer == Answer::scattered || answer == Answer::above || answer == Answer::below;
}

}  // namespace

std::string verdict_text(const RunModel& model, const Judgement& judgement) {
    return strip_text(model, judgement) + cause_text(model, judgement) + findings_text(judgement) +
           skips_text(model, judgement) + kernels_text(judgement) + checks_text(judgement);
}

bool is_about_a_kernel(const Finding& f) { return f.severity == Severity::note && f.rule == "MPT023"; }

std::string loss_text(const RunModel& model, const Judgement& judgement) {
    const StepSummary* last = nullptr;
    for (const StepSummary& s : model.steps)
        if (s.has_loss) last = &s;
    // After the last step the loss may be that of an evaluation.
    const bool left =
        model.unfinished && model.unfinished->has_loss && !std::isfinite(model.unfinished->loss);
    if (left) last = &*model.unfinished;
    if (!last) return {};
    // A run with several losses shows the one that is farthest from its twin's.
    const std::string which = left ? std::string() : which_loss(judgement.loss);
    const LossAgreement& a = judgement.loss;
    const bool is_another = !which.empty() && a.answer != LossAgreement::Answer::not_compared;
    const bool has_twin = is_another || last->has_twin;
    const std::int32_t backwards = is_another ? a.last_backwards : last->backwards;
    std::string out =
        "loss " + figure(is_another ? a.last_loss : last->loss) + (which.empty() ? "" : " (" + which + ")");
    if (left) out += " in step " + std::to_string(last->step.value) + ", which did not end";
    if (backwards > 1) out += " (sum of " + counted(backwards, "backward() call") + ")";
    if (twin_starts_anew(model)) return out;
    if (has_twin) out += ", fp32 twin " + figure(is_another ? a.last_twin : last->twin_loss);
    const std::string agreement = agreement_text(a);
    if (!agreement.empty()) out += ": it " + agreement;
    if (a.noise >= 0)
        out += "; one rounding changes the twin's by " + percent(a.noise);
    else if (has_twin && model.coverage.flips > 0)
        out += "; the twin takes " + counted(model.coverage.flips, "choice") +
               " of the run, so it may not be the fp32 run (--free-ints)";
    else if (parts_from_twin(a.answer))
        out += "; no noise floor was measured (--twin-noise)";
    return out;
}

std::string no_twin_text(const RunModel& model) {
    const bool has_none = model.mode == Mode::watch && model.step_count > 0 && !is_raw(model);
    return has_none ? ", no twin (--mode trajectory compares with fp32)" : "";
}

std::string steps_note(const RunModel& model) {
    for (const RunModel::Note& note : model.notes) {
        if (note.text.starts_with(kCountsAgain) || note.text.starts_with(kPartOfAStep))
            return shown_short(note.text, 200);
    }
    return {};
}

std::vector<std::pair<SkipCause, std::vector<std::int64_t>>> skips_by_cause(const Judgement& judgement) {
    std::vector<std::pair<SkipCause, std::vector<std::int64_t>>> out;
    for (const SkipVerdict& s : judgement.skips) {
        auto at = std::ranges::find(out, s.cause, [](const auto& group) { return group.first; });
        if (at == out.end()) at = out.insert(at, {s.cause, {}});
        at->second.push_back(s.step.value);
    }
    return out;
}

std::string phi_text(double value) { return value < 0 ? "not measured" : phi(value); }

std::string ranges_text(std::vector<std::int64_t> values) {
    std::sort(values.begin(), values.end());
    std::string out;
    std::size_t ranges = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (ranges++ == kMaxRanges) return out + ", ...";
        const std::int64_t from = values[i];
        while (i + 1 < values.size() && values[i + 1] - values[i] <= 1) ++i;
        out += (out.empty() ? "" : ", ") + std::to_string(from);
        if (values[i] != from) out += "-" + std::to_string(values[i]);
    }
    return out;
}

std::string whose_text(Rank rank, int device) {
    return (rank.known() ? "  rank " + std::to_string(rank.value) : "") +
           (device >= 0 ? "  device " + std::to_string(device) : "");
}

std::string where_text(const Finding& f) {
    std::string out = f.layer.empty() ? "the run as a whole" : shown_short(f.layer, 80);
    if (!f.op.empty()) out += "  " + shown_short(f.op, 60);
    if (f.phase != Phase::unknown) out += "  " + std::string(name_of(f.phase));
    if (f.step.known()) out += "  step " + std::to_string(f.step.value);
    out += whose_text(f.rank, f.device);
    if (!f.source.empty()) out += "  " + shown_short(f.source, 80);
    return out;
}

std::string shown_short(std::string_view text, std::size_t length) {
    std::string safe = shown(text);
    if (safe.size() <= length) return safe;
    // Keeps both ends, which tell names apart better than the beginning alone.
    return std::string(utf8_prefix(safe, length * 2 / 3)) + " ... " +
           std::string(utf8_suffix(safe, length > 18 ? length / 3 - 5 : 1));
}

}  // namespace mp::trace
