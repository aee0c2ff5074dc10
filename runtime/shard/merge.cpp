#include <algorithm>

#include "runtime/shard/intervals.hpp"
#include "runtime/shard/partial.hpp"
#include "runtime/shard/parts.hpp"

namespace mp::trace {

void Partial::merge_step(StepState& into, const StepState& other) {
    StepSummary& m = into.summary;
    const StepSummary& o = other.summary;
    m.ranks += o.ranks;
    m.skipped += o.skipped;
    m.wall_ns = std::max(m.wall_ns, o.wall_ns);
    m.sampled = m.sampled || o.sampled;
    add_coverage(m.coverage, o.coverage);
    if (o.has_loss_scale &&
        (!m.has_loss_scale || std::tuple(other.scale_rank, o.loss_scale) < std::tuple(into.scale_rank, m.loss_scale))) {
        m.loss_scale = o.loss_scale;
        m.has_loss_scale = true;
        into.scale_rank = other.scale_rank;
    }
    into.loss.add(other.loss);
    into.twin_loss.add(other.twin_loss);
    into.losses += other.losses;
    into.twins += other.twins;
}

void Partial::note_gradient(SkipState& skip, const SkipFacts::Gradient& g) {
    const auto [at, fresh] = skip.gradients.try_emplace(g.name, g);
    // One rank of each name: the lowest.
    if (!fresh && std::tuple(g.rank, g.nonfinite) < std::tuple(at->second.rank, at->second.nonfinite)) at->second = g;
    if (skip.gradients.size() > kMaxGradients) skip.gradients.erase(std::prev(skip.gradients.end()));
}

void Partial::merge_skip(const SkipState& other) {
    const std::int64_t step = other.facts.step.value;
    const auto [at, fresh] = skips_.try_emplace(step, other);
    if (!fresh) {
        SkipState& into = at->second;
        SkipFacts& f = into.facts;
        const SkipFacts& o = other.facts;
        f.skipped_by.insert(f.skipped_by.end(), o.skipped_by.begin(), o.skipped_by.end());
        if (o.has_scale && (!f.has_scale || other.scale_rank < into.scale_rank)) {
            f.has_scale = true;
            f.loss_scale = o.loss_scale;
            into.scale_rank = other.scale_rank;
        }
        const bool none = f.origin.op.empty();
        if (!o.origin.op.empty() && (none || std::tuple(o.origin.first_origin, o.origin_rank) <
                                                 std::tuple(f.origin.first_origin, f.origin_rank))) {
            f.origin = o.origin;
            f.origin_rank = o.origin_rank;
        }
        for (const auto& [name, gradient] : other.gradients) note_gradient(into, gradient);
        f.reductions_made_nonfinite += o.reductions_made_nonfinite;
        if (f.reduction_op.empty() || (!o.reduction_op.empty() && o.reduction_op < f.reduction_op))
            f.reduction_op = o.reduction_op;
        f.loss_finite = f.loss_finite && o.loss_finite;
        f.twin_loss_finite = f.twin_loss_finite && o.twin_loss_finite;
        merge_step(into.step, other.step);
    }
    // The first ones: a step that is left out here is not among the first of the whole run either.
    if (skips_.size() > kMaxSkips) skips_.erase(std::prev(skips_.end()));
}

void Partial::merge_hash(TensorState& into, std::int64_t step, const Hashes& other) {
    std::vector<Hashes>& here = into.hashes[step];
    const auto same = std::find_if(here.begin(), here.end(),
                                   [&other](const Hashes& h) { return h.elements == other.elements; });
    if (same == here.end()) {
        here.push_back(other);
    } else {
        // Of both sides the lowest rank, and the lowest of those that differ from it.
        std::vector seen{same->lowest, other.lowest};
        if (same->mismatch) seen.push_back(same->differs);
        if (other.mismatch) seen.push_back(other.differs);
        std::sort(seen.begin(), seen.end());
        const auto differs = std::find_if(seen.begin(), seen.end(),
                                          [&seen](const auto& s) { return s.second != seen.front().second; });
        same->lowest = seen.front();
        same->mismatch = differs != seen.end();
        if (same->mismatch) same->differs = *differs;
    }
    if (into.hashes.size() > kMaxHashedSteps) into.hashes.erase(std::prev(into.hashes.end()));
}

void Partial::merge_tensor(TensorState& into, const TensorState& other) {
    TensorSum& s = into.sum;
    const TensorSum& o = other.sum;
    if (s.name.empty() && !s.last_step.known() && into.sum.last.elements == 0) {
        into = other;
        return;
    }
    if (o.last_step > s.last_step) {
        s.last = o.last;
        s.last_step = o.last_step;
        into.last = other.last;
    } else if (o.last_step == s.last_step) {
        add_tensor_counts(s.last, o.last);
        for (std::size_t i = 0; i < into.last.size(); ++i) into.last[i].add(other.last[i]);
    }
    keep_worst(s.worst, s.worst_at, o.worst, o.worst_at);
    keep_earliest(s.first_nonfinite, o.first_nonfinite);
    s.meant_to_move += o.meant_to_move;
    s.unmoved += o.unmoved;
    s.below_half_ulp += o.below_half_ulp;
    for (std::size_t i = 0; i < into.moved.size(); ++i) into.moved[i].add(other.moved[i]);
    s.samples += o.samples;
    s.frozen += o.frozen;
    keep_earliest(s.first_stagnant, o.first_stagnant);
    for (const auto& [step, hashes] : other.hashes) {
        for (const Hashes& h : hashes) merge_hash(into, step, h);
    }
}

void Partial::merge_op(const OpState& other) {
    OpState* const state = op_of(other.sum.total);
    if (!state) {
        ++ops_left_out_;
        return;
    }
    OpSum& sum = state->sum;
    const OpSum& o = other.sum;
    add_op_counts(sum.total, o.total);
    for (std::size_t i = 0; i < kSums; ++i) state->sums[i].add(other.sums[i]);
    if (sum.ranks == 0 || std::tuple(o.first_step, o.total.first, other.first_rank) <
                              std::tuple(sum.first_step, sum.total.first, state->first_rank)) {
        sum.first_step = o.first_step;
        sum.total.first = o.total.first;
        sum.total.source = o.total.source;
        sum.total.guessed = o.total.guessed;
        state->first_rank = other.first_rank;
    }
    sum.ranks = 1;
    if (state->ranks.size() < other.ranks.size()) state->ranks.resize(other.ranks.size());
    for (std::size_t i = 0; i < other.ranks.size(); ++i) state->ranks[i] |= other.ranks[i];
    if (o.at_origin.origins) keep_origin(sum, o.first_origin, o.at_origin);
    keep_worst(sum.worst_loc_phi, sum.worst_loc, o.worst_loc_phi, o.worst_loc);
    keep_worst(sum.worst_cum_phi, sum.worst_cum, o.worst_cum_phi, o.worst_cum);
}

void Partial::merge(const Partial& other) {
    widen(other.column_steps_);
    for (const OpState& op : other.ops_) merge_op(op);
    const auto times = static_cast<std::size_t>(column_steps_ / other.column_steps_);
    for (const auto& [key, at] : other.layer_ids_) {
        const LayerSteps& from = other.layers_[at];
        const auto [mine, fresh] = layer_ids_.try_emplace(key, layers_.size());
        if (fresh) layers_.push_back({.layer = from.layer, .phase = from.phase, .order = from.order, .cells = {}});
        LayerSteps& into = layers_[mine->second];
        into.order = std::min(into.order, from.order);
        into.cells.resize(std::max(into.cells.size(), (from.cells.size() + times - 1) / times));
        for (std::size_t i = 0; i < from.cells.size(); ++i) keep_worse(into.cells[i / times], from.cells[i]);
    }
    steps_every_ = std::max(steps_every_, other.steps_every_);
    for (const auto& [step, state] : other.steps_) {
        const auto [at, fresh] = steps_.try_emplace(step, state);
        if (!fresh) merge_step(at->second, state);
    }
    std::erase_if(steps_, [this](const auto& entry) { return entry.first % steps_every_ != 0; });
    thin();
    for (const auto& [first, last] : other.recorded_) insert(recorded_, first, last);
    for (const auto& [first, last] : other.skipped_) insert(skipped_, first, last);
    for (const auto& [step, skip] : other.skips_) merge_skip(skip);
    for (const auto& [key, tensor] : other.tensors_) merge_tensor(tensors_[key], tensor);
    for (const auto& [key, from] : other.collectives_) {
        const auto [at, fresh] = collectives_.try_emplace(key, from);
        if (fresh) continue;
        CollectiveTotal& into = at->second.total;
        add_collective_counts(into.total, from.total.total);
        for (std::size_t i = 0; i < from.sums.size(); ++i) at->second.sums[i].add(from.sums[i]);
        keep_worst(into.worst_phi, into.worst_at, from.total.worst_phi, from.total.worst_at);
        keep_earliest(into.first_nonfinite, from.total.first_nonfinite);
    }
    for (const auto& [key, place] : other.places_) {
        const auto [at, fresh] = places_.try_emplace(key, place);
        if (!fresh) merge_place(at->second, place);
    }
    for (const auto& [dtype, count] : other.ops_by_dtype_) ops_by_dtype_[dtype] += count;
    policies_.insert(other.policies_.begin(), other.policies_.end());
    for (const auto& [key, note] : other.notes_) {
        const auto [at, fresh] = notes_.try_emplace(key, note);
        if (fresh) continue;
        at->second.count += note.count;
        at->second.processes += note.processes;
        at->second.first = std::min(at->second.first, note.first);
    }
    while (notes_.size() > kMaxNotes) notes_.erase(std::prev(notes_.end()));
    ranks_.insert(ranks_.end(), other.ranks_.begin(), other.ranks_.end());
    unreadable_.insert(unreadable_.end(), other.unreadable_.begin(), other.unreadable_.end());
    add_coverage(coverage_, other.coverage_);
    seeds_after_first_ += other.seeds_after_first_;
    external_after_first_ += other.external_after_first_;
    total_wall_ns_ = std::max(total_wall_ns_, other.total_wall_ns_);
    ops_left_out_ += other.ops_left_out_;
}

}  // namespace mp::trace
