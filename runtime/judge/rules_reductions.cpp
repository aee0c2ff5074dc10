// MPT050, MPT051, MPT073, MPT076, MPT077, and the reasons for an inconclusive verdict (MPT090).

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "kernels/base/figures.hpp"
#include "kernels/numerics/convert.hpp"
#include "kernels/numerics/divergence.hpp"
#include "runtime/judge/floors.hpp"
#include "runtime/judge/importance.hpp"
#include "runtime/judge/rule_pack.hpp"
#include "runtime/judge/rules.hpp"
#include "runtime/trace/communicator_text.hpp"
#include "runtime/trace/display.hpp"
#include "runtime/trace/note_texts.hpp"

namespace mp::trace {
namespace {

constexpr std::uint64_t kFewest = 1024;

std::string layer_of(const std::string& parameter) {
    const std::size_t dot = parameter.rfind('.');
    return dot == std::string::npos ? parameter : parameter.substr(0, dot);
}

// "rank 1 of communicator 9f3c": a rank of another communicator may have the same number.
std::string member_text(const Member& member) {
    return "rank " + std::to_string(member.rank.value) +
           (member.communicator != 0 ? " of " + communicator_text(member.communicator) : "") +
           (member.device >= 0 ? " on device " + std::to_string(member.device) : "");
}

// In three digits, because such a share is small: "+0.195 %".
std::string signed_percent(double share) {
    return (share < 0 ? "-" : "+") + figure(std::abs(share) * 100) + " %";
}

bool is_skipped(Step step, const Case& c) {
    return std::ranges::any_of(c.out.skips, [&](const SkipVerdict& v) { return v.step == step; });
}

// NCCL averages by multiplying every input with 1/N first, which it rounds to the format of the values. Where N is not
// a power of two, every result has the same relative error, and no scheme of rounding takes it away.
void judge_average(Case& c, const CollectiveTotal& t) {
    const CollectiveRecord& r = t.total;
    if (r.reduction != "avg" || r.ranks < 2 || !is_low_precision(r.dtype)) return;
    const auto ranks = static_cast<double>(r.ranks);
    const std::optional<double> factor = round_to(r.dtype, 1 / ranks);
    const double gain = factor ? *factor * ranks - 1 : 0;
    if (!(std::abs(gain) > c.limits.average_gain)) return;
    Finding f = finding("MPT073", Severity::warning);
    f.op = r.op;
    f.value = std::abs(gain);
    f.limit = c.limits.average_gain;
    f.unit = "share";
    f.basis = Basis::inferred;
    f.importance = importance::kAverageGain(std::abs(gain));
    f.message = shown(r.op) + " averages over " + counted(r.ranks, "rank") + " in " +
                std::string(name_of(r.dtype)) + ": NCCL multiplies by 1/" + std::to_string(r.ranks) +
                " rounded to that format, so every result is " + signed_percent(gain) + " off (inferred, " +
                counted(r.calls, "call") + ")";
    f.advice =
        "reduce with ncclSum and multiply by 1/" + std::to_string(r.ranks) + " in fp32, or reduce in fp32";
    c.out.findings.push_back(std::move(f));
}

// Without a twin: the inputs were finite on every rank, as each of them measured, and a result was not.
void judge_lost_reduction(Case& c, const CollectiveTotal& t) {
    const CollectiveRecord& r = t.total;
    const bool all_ranks = r.ranks > 0 && c.model.missing.empty() && ranks_of(c.model) >= r.ranks;
    if (has_twin(c.model) || r.lost_results == 0 || r.lost_inputs > 0 || !all_ranks) return;
    if (is_skipped(t.first_nonfinite, c)) return;
    Finding f = finding("MPT050", Severity::error);
    f.op = r.op;
    f.rank = t.first_lost.rank;
    f.step = t.first_nonfinite;
    f.source = r.memory;
    f.value = static_cast<double>(r.lost_results);
    f.importance = importance::kReductionOverflow();
    f.message = shown(r.op) + " in " + std::string(name_of(r.dtype)) +
                " gave values that are not finite in " + counted(r.lost_results, "call") +
                " from inputs that are finite on every rank" +
                (t.lost_by.rank.known() ? ", first on " + member_text(t.lost_by) : "");
    f.advice = "reduce in fp32, or divide by the number of ranks before the sum";
    c.out.findings.push_back(std::move(f));
}

void judge_beyond(Case& c, const CollectiveTotal& t) {
    const CollectiveRecord& r = t.total;
    if (r.beyond == 0) return;
    Finding f = finding("MPT076", Severity::error);
    f.op = r.op;
    f.source = r.memory;
    f.value = static_cast<double>(r.beyond);
    f.unit = "calls";
    f.importance = importance::kBeyond();
    f.message = shown(r.op) + " in " + std::string(name_of(r.dtype)) +
                " moves more elements than its buffers have: " + counted(r.beyond, "call") +
                " read or wrote past the end of an allocation";
    f.advice = "the count of a collective is in elements: do not multiply it by sizeof";
    c.out.findings.push_back(std::move(f));
}

// All ranks of an all_reduce receive the same bits.
void judge_differing(Case& c, const CollectiveTotal& t) {
    if (t.differing == 0 || t.total.op != "all_reduce") return;
    Finding f = finding("MPT077", Severity::error);
    f.op = t.total.op;
    f.rank = t.differs_at.rank;
    f.step = t.differs_at.step;
    f.value = static_cast<double>(t.differing);
    f.unit = "blocks";
    f.basis = Basis::sampled;
    f.importance = importance::kReductionError();
    f.message = shown(t.total.op) + " in " + std::string(name_of(t.total.dtype)) + " gave " +
                member_text(t.differs_for) +
                " other values than the other ranks (sampled: " + counted(t.differing, "block") + ")";
    f.advice = "look for work on another stream that writes the buffer without waiting for the collective";
    c.out.findings.push_back(std::move(f));
}

// Where the largest part of the error of a reduction is; nothing without blocks.
std::string worst_block_of(const CollectiveTotal& t) {
    const auto& worst = t.worst_block;
    if (t.sketched == 0 || worst.length == 0) return {};
    return "; " + percent(worst.share) + " of the squared error is in elements " +
           std::to_string(worst.first) + " to " + std::to_string(worst.first + worst.length - 1) + " of " +
           std::to_string(worst.elements) + " in step " + std::to_string(worst.step.value);
}

// The parameters whose gradients were not finite for the first time in that step: what DDP summed in its buckets.
std::vector<std::string> lost_gradients(const RunModel& m, Step step) {
    std::vector<std::string> names;
    for (const TensorSum& t : m.tensors)
        if (t.kind == TensorKind::gradient && t.first_nonfinite.step == step) names.push_back(t.name);
    return names;
}

void judge_reduction(Case& c, const CollectiveTotal& t) {
    const CollectiveRecord& r = t.total;
    const std::string name = shown(r.op) + " in " + std::string(name_of(r.dtype));
    if (overflows(t, c)) {
        Finding f = finding("MPT050", Severity::error);
        f.op = r.op;
        f.step = t.first_nonfinite;
        f.value = static_cast<double>(r.made_nonfinite);
        const std::vector<std::string> lost = lost_gradients(c.model, t.first_nonfinite);
        if (!lost.empty()) f.layer = layer_of(lost.front());
        f.message = name + of_gradients(lost) + " made " + counted(r.made_nonfinite, "non-finite value") +
                    " from inputs that are finite on every rank";
        f.advice = "reduce in fp32, or divide by the number of ranks before the sum";
        f.importance = importance::kReductionOverflow();
        c.out.findings.push_back(std::move(f));
    }
    judge_average(c, t);
    judge_lost_reduction(c, t);
    if (r.compared < kFewest || !is_low_precision(r.dtype)) return;
    const double floors = floor_ratio(relative(r.error_squares, r.sum_squares), r.dtype);
    if (!(floors > c.limits.reduction_phi)) return;
    Finding f = finding("MPT050", Severity::error);
    f.op = r.op;
    f.rank = t.worst_at.rank;
    f.step = t.worst_at.step;
    f.value = floors;
    f.limit = c.limits.reduction_phi;
    f.unit = "phi";
    if (t.sketched > 0) f.basis = Basis::sampled;
    f.importance = importance::kReductionError();
    const std::string reference =
        t.sketched > 0
            ? "exact sum of what the ranks sent (sampled: " + counted(t.sketched, "block") + ", limit "
            : "fp32 reduction of the same inputs (limit ";
    f.message = name + " errs by " + phi(floors) + " against the " + reference + phi(f.limit) + "), over " +
                counted(r.calls, "call") + (r.algorithms.empty() ? "" : " with " + shown(r.algorithms)) +
                worst_block_of(t);
    f.advice = "reduce in fp32 (FSDP: MixedPrecision(reduce_dtype=torch.float32))";
    c.out.findings.push_back(std::move(f));
}

bool runs_ddp(const RunModel& model) {
    bool ddp = false;
    for (const std::string& text : model.policies) {
        if (text.starts_with("fsdp")) return false;
        ddp = ddp || text == "ddp" || text.starts_with("ddp:") || text.starts_with("ddp@");
    }
    return ddp;
}

struct Mismatch {
    std::uint64_t steps = 0;
    Place first;
};

// Under DDP the bytes must agree. Elsewhere shards and their twins differ by design. If the twins of
// all ranks agree and the bytes do not, the tensors are replicas that differ because of precision.
Mismatch mismatch_of(const TensorSum& t, bool ddp) {
    if (t.kind != TensorKind::parameter) return {};
    return ddp ? Mismatch{t.hash_mismatches, t.first_mismatch}
               : Mismatch{t.replica_mismatches, t.first_replica_mismatch};
}

void judge_replicas(Case& c) {
    const bool ddp = runs_ddp(c.model);
    const TensorSum* first = nullptr;
    Mismatch worst;
    std::uint64_t others = 0;
    for (const TensorSum& t : c.model.tensors) {
        const Mismatch m = mismatch_of(t, ddp);
        if (m.steps == 0) continue;
        if (first) ++others;
        if (!first || m.first.step < worst.first.step) first = &t, worst = m;
    }
    if (!first) return;
    Finding f = finding("MPT051", Severity::error);
    f.layer = layer_of(first->name);
    f.phase = Phase::optimizer;
    f.rank = worst.first.rank;
    f.step = worst.first.step;
    f.value = static_cast<double>(worst.steps);
    f.unit = "steps";
    f.importance = importance::kReplicaMismatch();
    f.message =
        "ranks hold different bytes of " + shown(first->name) + " on " + counted(worst.steps, "sampled step");
    if (!ddp) f.message += " where their fp32 twins hold the same values";
    if (others > 0) f.message += ", and of " + counted(others, "other parameter");
    f.advice =
        "find what only some ranks do: a skipped step, a clip by a local norm, an unsynchronised update";
    c.out.findings.push_back(std::move(f));
}

std::string process_text(const RankFacts& r) {
    return r.process.rank.known() ? "rank " + std::to_string(r.process.rank.value)
                                  : "process " + std::to_string(r.process.pid);
}

// Adds "rank 1, rank 3: what they have in common" for the processes that `has` selects.
template <typename Has>
void judge_ends(Case& c, const std::string& common, const Has& has) {
    constexpr std::size_t kMost = 8;
    std::string who;
    std::size_t count = 0;
    for (const RankFacts& r : c.model.ranks) {
        if (!has(r) || ++count > kMost) continue;
        who += (who.empty() ? "" : ", ") + process_text(r);
        if (r.last_step.known()) who += " (step " + std::to_string(r.last_step.value) + ")";
    }
    if (count > kMost) who += " and " + std::to_string(count - kMost) + " more";
    if (count > 0) c.out.inconclusive.push_back(common + who);
}

// `by`: the name of an exception, or "exit status 1".
std::string ended_text(const std::string& by) {
    constexpr std::string_view kExit = "exit ";
    return by.starts_with(kExit) ? "the program ended with " + shown(by.substr(kExit.size()))
                                 : "ended by " + shown(by);
}

// A run that did not come to its end is not a run without findings. After a restart only the last attempt counts.
void judge_ends(Case& c) {
    std::map<Rank, std::int32_t> attempts;
    std::set<std::string> exceptions;
    for (const RankFacts& r : c.model.ranks) {
        std::int32_t& last = attempts[r.process.rank];
        last = std::max(last, r.process.restart);
        if (!r.ended_by.empty()) exceptions.insert(r.ended_by);
    }
    const auto is_last = [&](const RankFacts& r) {
        return !r.process.rank.known() || r.process.restart == attempts[r.process.rank];
    };
    for (const std::string& e : exceptions)
        judge_ends(c, ended_text(e) + ": ",
                   [&](const RankFacts& r) { return r.ended_by == e && is_last(r); });
    judge_ends(c, "killed, crashed or still running: ", [&](const RankFacts& r) {
        return !r.ended && !r.running && is_last(r);
    });
}

// What a CUDA graph computes is in no record of a program without torch.
void judge_graphs(Case& c) {
    for (const RunModel::Note& note : c.model.notes)
        if (note.text == std::string(kSeenByName) + kGraph)
            c.out.inconclusive.push_back(counted(note.count, "CUDA graph") +
                                         " ran, and what is in them was not seen");
}

// A program without torch that calls no library: what its kernels compute is in no record.
void judge_names_alone(Case& c) {
    const auto& coverage = c.model.coverage;
    if (is_raw(c.model) && coverage.by_name > 0 && coverage.by_name == coverage.ops)
        c.out.inconclusive.push_back(counted(coverage.by_name, "kernel") +
                                     " ran without a call of cuBLAS or NCCL: names were seen, and no values");
}

void judge_outside(Case& c) {
    const std::uint64_t outside = c.model.coverage.outside;
    if (outside == 0) return;
    const bool compiled = std::ranges::any_of(c.model.notes, [](const RunModel::Note& n) {
        return n.kind == NoteKind::not_observed && n.text.starts_with("torch.compile:");
    });
    c.out.inconclusive.push_back(
        counted(outside, "value") + " came from code that is not observed" +
        (compiled ? " (torch.compile): run with --eager to observe it" : " (custom kernels, numpy, ctypes)"));
}

// A model ran, and nothing was differentiated.
bool is_inference(const RunModel& m) {
    const auto ran = [&](Phase phase) {
        return std::ranges::any_of(m.ops, [phase](const OpSum& s) { return s.total.phase == phase; });
    };
    return ran(Phase::forward) && !ran(Phase::backward);
}

// A twin that lost its values shows nothing about a run that kept them.
void judge_twin(Case& c) {
    const bool lost = std::ranges::any_of(c.model.steps, [](const StepSummary& s) {
        return s.has_loss && s.has_twin && std::isfinite(s.loss) && !std::isfinite(s.twin_loss);
    });
    if (!lost) return;
    const OpSum* first = nullptr;
    for (const OpSum& s : c.model.ops)
        if (s.total.nonfinite_twin > 0 && (!first || s.total.first < first->total.first)) first = &s;
    c.out.inconclusive.push_back("the loss of the fp32 twin is not finite, the loss of the run is" +
                                 (first ? "; first in " + place_text(first->total) : ""));
}

// What was compared before is true; the rest of the run was not compared.
void judge_given_up(Case& c) {
    for (const RunModel::Note& n : c.model.notes)
        if (n.kind == NoteKind::given_up)
            c.out.inconclusive.push_back("from step " + std::to_string(n.first.value) +
                                         " on: " + shown(n.text));
}

void judge_observed(Case& c) {
    const RunModel& m = c.model;
    auto& out = c.out.inconclusive;
    if (m.ranks.empty()) out.push_back("no recording was found");
    if (m.step_count == 0 && !is_inference(m)) out.push_back("no step was recorded");
    if (!m.missing.empty()) {
        std::string list;
        for (std::size_t i = 0; i < m.missing.size() && i < 8; ++i)
            list += (i ? ", " : "") + std::to_string(m.missing[i].value);
        out.push_back(counted(m.missing.size(), "rank") + " left no recording: " + list +
                      (m.missing.size() > 8 ? ", ..." : ""));
    }
    for (const Error& error : m.unreadable) out.push_back("unreadable: " + shown(error.message));
    std::uint64_t problems = 0, lost = 0;
    for (const RankFacts& r : m.ranks) problems += r.problems, lost += r.lost_records;
    if (problems > 0) out.push_back("recordings are damaged in " + counted(problems, "place"));
    if (lost > 0) out.push_back(counted(lost, "record") + " were dropped while recording");
    judge_ends(c);
    judge_graphs(c);
    judge_names_alone(c);
    judge_outside(c);
    judge_twin(c);
    judge_given_up(c);
    const std::uint64_t asked = m.coverage.shadowed + m.coverage.unshadowed;
    if (!has_twin(m) || asked == 0) return;
    const double share = static_cast<double>(m.coverage.shadowed) / static_cast<double>(asked);
    if (share < c.limits.coverage_ops)
        out.push_back("the twin followed " + percent(share) + " of the float ops (at least " +
                      percent(c.limits.coverage_ops) + " wanted)");
}

bool any_op(const RunModel& m, bool (*has)(const OpRecord&)) {
    return std::ranges::any_of(m.ops, [&](const OpSum& s) { return has(s.total); });
}

std::string why_not_run(const Case& c, Needs needs) {
    const RunModel& m = c.model;
    switch (needs) {
        case Needs::nothing:
            return {};
        case Needs::twin:
            return any_op(m, [](const OpRecord& o) { return o.compared > 0; })
                       ? ""
                       : "needs a twin (--mode trajectory)";
        case Needs::local:
            return any_op(m, [](const OpRecord& o) { return o.loc_compared > 0; })
                       ? ""
                       : "needs sampled steps with --mode local, step or trajectory";
        case Needs::collective:
            return std::ranges::any_of(m.collectives,
                                       [](const CollectiveTotal& t) { return t.total.compared > 0; })
                       ? ""
                       : "no low-precision reduction was compared";
        case Needs::ddp: {
            const bool replicas =
                std::ranges::any_of(m.tensors, [](const TensorSum& t) { return t.replicas > 0; });
            return runs_ddp(m) || replicas ? "" : "no ranks were seen to hold the same parameters";
        }
        case Needs::torch:
            return is_raw(m) ? "needs a program of torch" : "";
        case Needs::policy:
            return {};  // judge_policies has already reported it
    }
    return {};
}

}  // namespace

bool overflows(const CollectiveTotal& t, const Case& c) {
    return t.total.made_nonfinite > 0 && t.first_nonfinite.known() && !is_skipped(t.first_nonfinite, c);
}

void judge_reductions(Case& c) {
    for (const CollectiveTotal& t : c.model.collectives) {
        judge_reduction(c, t);
        judge_beyond(c, t);
        judge_differing(c, t);
    }
    judge_replicas(c);
}

void judge_coverage(Case& c) {
    judge_observed(c);
    for (const RuleInfo& rule : rule_pack()) {
        std::string why = c.model.ranks.empty() ? "nothing was recorded" : why_not_run(c, rule.needs);
        const bool found =
            std::ranges::any_of(c.out.findings, [&](const Finding& f) { return f.rule == rule.id; });
        if (!why.empty() && !found) c.out.not_run.push_back({std::string(rule.id), std::move(why)});
    }
}

}  // namespace mp::trace
