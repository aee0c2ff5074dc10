#include <algorithm>
#include <bit>
#include <set>

#include "runtime/shard/intervals.hpp"
#include "runtime/shard/partial.hpp"
#include "runtime/shard/parts.hpp"

// From what was folded to the model that reports and the gate read.

namespace mp::trace {

StepSummary Partial::summary_of(const StepState& state) {
    StepSummary m = state.summary;
    m.has_loss = state.losses > 0;
    m.has_twin = state.twins > 0;
    if (m.has_loss) m.loss = state.loss.value() / static_cast<double>(state.losses);
    if (m.has_twin) m.twin_loss = state.twin_loss.value() / static_cast<double>(state.twins);
    return m;
}

// Who did not skip: every rank whose recording spans the step.
SkipFacts Partial::facts_of(const SkipState& skip) const {
    SkipFacts f = skip.facts;
    std::sort(f.skipped_by.begin(), f.skipped_by.end());
    f.skipped_by.erase(std::unique(f.skipped_by.begin(), f.skipped_by.end()), f.skipped_by.end());
    std::set<Rank> stepped;
    const auto kept = steps_.find(f.step.value);
    const bool all = kept != steps_.end() && kept->second.summary.ranks == kept->second.summary.skipped;
    for (const RankState& r : ranks_) {
        if (all || r.facts.steps == 0 || f.step < r.first_step || f.step > r.facts.last_step) continue;
        const Rank rank = r.facts.process.rank;
        if (!std::binary_search(f.skipped_by.begin(), f.skipped_by.end(), rank)) stepped.insert(rank);
    }
    f.stepped_by.assign(stepped.begin(), stepped.end());
    for (const auto& [name, gradient] : skip.gradients) f.gradients.push_back(gradient);
    return f;
}

void Partial::put_steps(RunModel& m) const {
    m.steps_every = steps_every_;
    m.step_count = size_of(recorded_);
    m.skipped_steps = size_of(skipped_);
    std::map<std::int64_t, StepSummary> steps;
    for (const auto& [step, state] : steps_) steps.emplace(step, summary_of(state));
    for (const auto& [step, skip] : skips_) {
        steps.try_emplace(step, summary_of(skip.step));
        m.skips.push_back(facts_of(skip));
    }
    for (const auto& [step, summary] : steps) m.steps.push_back(summary);
}

void Partial::put_ops(RunModel& m) const {
    for (const OpState& state : ops_) {
        OpSum sum = state.sum;
        for (std::size_t i = 0; i < kSums; ++i) sum.total.*kOpSums[i] = state.sums[i].value();
        std::uint64_t ranks = 0;
        for (const std::uint64_t bits : state.ranks) ranks += static_cast<std::uint64_t>(std::popcount(bits));
        sum.ranks = std::max<std::uint64_t>(ranks, 1);
        m.ops.push_back(std::move(sum));
    }
    std::sort(m.ops.begin(), m.ops.end(), [](const OpSum& a, const OpSum& b) {
        return std::tie(a.total.phase, a.total.first, a.total.layer, a.total.op, a.total.dtype) <
               std::tie(b.total.phase, b.total.first, b.total.layer, b.total.op, b.total.dtype);
    });
    m.column_steps = column_steps_;
    m.map = layers_;
    std::size_t columns = 0;
    for (const LayerSteps& row : m.map) columns = std::max(columns, row.cells.size());
    for (LayerSteps& row : m.map) row.cells.resize(columns);
    std::sort(m.map.begin(), m.map.end(), [](const LayerSteps& a, const LayerSteps& b) {
        return std::tie(a.phase, a.order, a.layer) < std::tie(b.phase, b.order, b.layer);
    });
}

void Partial::put_ranks(RunModel& m) const {
    std::set<std::int32_t> seen;
    std::int32_t world = 0;
    m.mode = Mode::off;
    for (const RankState& r : ranks_) {
        const ProcessRecord& p = r.facts.process;
        m.ranks.push_back(r.facts);
        m.mode = std::max(m.mode, p.mode);
        world = std::max(world, p.world_size);
        if (p.rank.known()) seen.insert(p.rank.value);
    }
    if (ranks_.empty()) m.mode = Mode::watch;
    std::sort(m.ranks.begin(), m.ranks.end(), [](const RankFacts& a, const RankFacts& b) {
        return precedes(a.process, a.path, b.process, b.path);
    });
    m.missing = missing_ranks(world, seen);
}

RunModel Partial::model(const std::string& directory) const {
    RunModel m;
    m.directory = directory;
    put_ranks(m);
    put_steps(m);
    put_ops(m);
    for (const auto& [key, state] : tensors_) {
        TensorSum t = state.sum;
        for (std::size_t i = 0; i < kTensorSums.size(); ++i) t.last.*kTensorSums[i] = state.last[i].value();
        t.wanted_squares = state.moved[0].value();
        t.moved_dot = state.moved[1].value();
        for (const auto& [step, hashes] : state.hashes) {
            const Hashes* named = nullptr;
            for (const Hashes& h : hashes) {
                if (h.mismatch && (!named || h.differs < named->differs)) named = &h;
            }
            if (!named) continue;
            ++t.hash_mismatches;
            keep_earliest(t.first_mismatch, {named->differs.first, Step{step}});
        }
        m.tensors.push_back(std::move(t));
    }
    for (const auto& [key, state] : collectives_) {
        CollectiveTotal c = state.total;
        c.total.error_squares = state.sums[0].value();
        c.total.sum_squares = state.sums[1].value();
        m.collectives.push_back(std::move(c));
    }
    for (const auto& [key, place] : places_) m.places.push_back(place);
    m.ops_by_dtype = ops_by_dtype_;
    for (const auto& [text, used] : policies_) m.policies.push_back(text);
    for (const auto& [key, note] : notes_) m.notes.push_back(note);
    if (ops_left_out_)
        m.unreadable.push_back({std::to_string(ops_left_out_) + " ops are not counted: more than " +
                                    std::to_string(kMaxOps) + " different ones",
                                {}});
    m.unreadable.insert(m.unreadable.end(), unreadable_.begin(), unreadable_.end());
    std::sort(m.unreadable.begin(), m.unreadable.end(),
              [](const Error& a, const Error& b) { return a.message < b.message; });
    m.coverage = coverage_;
    m.seeds_after_first = seeds_after_first_;
    m.external_after_first = external_after_first_;
    m.total_wall_ns = total_wall_ns_;
    return m;
}

}  // namespace mp::trace
