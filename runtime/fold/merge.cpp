#include <algorithm>
#include <cmath>
#include <tuple>

#include "runtime/fold/partial.hpp"
#include "runtime/fold/parts.hpp"

namespace mp::trace {
namespace {

// The loss scale of the lowest rank counts. Of two of one rank a NaN counts, else the smaller one.
std::tuple<Rank, bool, double> scale_order(Rank rank, double scale) {
    const bool number = !std::isnan(scale);
    return {rank, number, number ? scale : 0};
}

}  // namespace

void Partial::merge_step(StepState& into, const StepState& other) {
    if (other.restart < into.restart) return;
    if (other.restart > into.restart) {
        into = other;
        return;
    }
    StepSummary& m = into.summary;
    const StepSummary& o = other.summary;
    m.wall_ns = std::max(m.wall_ns, o.wall_ns);
    m.backwards = std::max(m.backwards, o.backwards);
    m.sampled = m.sampled || o.sampled;
    m.lost_gradients += o.lost_gradients;
    merge_fields(m.coverage, o.coverage);
    if (o.has_loss_scale && (!m.has_loss_scale || scale_order(other.scale_rank, o.loss_scale) <
                                                      scale_order(into.scale_rank, m.loss_scale))) {
        m.loss_scale = o.loss_scale;
        m.has_loss_scale = true;
        into.scale_rank = other.scale_rank;
    }
    into.loss.add(other.loss);
    into.twin_loss.add(other.twin_loss);
    into.gradient_error.add(other.gradient_error);
    into.gradient_twin.add(other.gradient_twin);
    into.losses += other.losses;
    into.twins += other.twins;
}

// Keeps the unfinished step of the last attempt, and of the rank that came farthest.
void Partial::add_unfinished(const StepState& other) {
    const auto order = [](const StepState& s) { return std::tuple(s.restart, s.summary.step); };
    if (!unfinished_ || order(*unfinished_) < order(other)) {
        unfinished_ = other;
    } else if (order(*unfinished_) == order(other)) {
        merge_step(*unfinished_, other);
    }
}

void Partial::note_gradient(SkipState& skip, const SkipFacts::Gradient& g) {
    const auto [at, fresh] = skip.gradients.try_emplace(g.name, g);
    // One rank of each name: the lowest.
    if (!fresh && std::tuple(g.rank, g.nonfinite) < std::tuple(at->second.rank, at->second.nonfinite))
        at->second = g;
    if (skip.gradients.size() > kMaxGradients) skip.gradients.erase(std::prev(skip.gradients.end()));
}

void Partial::merge_skip(const SkipState& other) {
    const std::int64_t step = other.facts.step.value;
    const auto [at, fresh] = skips_.try_emplace(step, other);
    if (!fresh) {
        SkipState& into = at->second;
        SkipFacts& f = into.facts;
        const SkipFacts& o = other.facts;
        if (o.has_scale && (!f.has_scale || scale_order(other.scale_rank, o.loss_scale) <
                                                scale_order(into.scale_rank, f.loss_scale))) {
            f.has_scale = true;
            f.loss_scale = o.loss_scale;
            into.scale_rank = other.scale_rank;
        }
        if (!o.origin.op.empty() && (f.origin.op.empty() || origin_order(o.origin, other.facts.origin_rank) <
                                                                origin_order(f.origin, f.origin_rank))) {
            f.origin = o.origin;
            f.origin_rank = o.origin_rank;
        }
        for (const auto& [name, gradient] : other.gradients) note_gradient(into, gradient);
        f.forward_origins += o.forward_origins;
        f.backward_origins += o.backward_origins;
        f.reductions_made_nonfinite += o.reductions_made_nonfinite;
        f.finite_reductions += o.finite_reductions;
        f.lost_reductions += o.lost_reductions;
        if (f.reduction_op.empty() || (!o.reduction_op.empty() && o.reduction_op < f.reduction_op))
            f.reduction_op = o.reduction_op;
        f.loss_finite = f.loss_finite && o.loss_finite;
        f.twin_loss_finite = f.twin_loss_finite && o.twin_loss_finite;
        merge_step(into.step, other.step);
    }
    // The first ones: a step that is left out here is not among the first of the whole run either.
    if (skips_.size() > kMaxSkips) skips_.erase(std::prev(skips_.end()));
}

void Partial::merge(const Partial& other) {
    ops_.merge(other.ops_, names_, other.names_);
    tensors_.merge(other.tensors_, names_, other.names_);
    steps_every_ = std::max(steps_every_, other.steps_every_);
    for (const auto& [step, state] : other.steps_) {
        const auto [at, fresh] = steps_.try_emplace(step, state);
        if (!fresh) merge_step(at->second, state);
    }
    for (const auto& [key, state] : other.others_) {
        const auto [at, fresh] = others_.try_emplace(key, state);
        if (!fresh) merge_step(at->second, state);
    }
    drop_between();
    thin();
    if (other.unfinished_) add_unfinished(*other.unfinished_);
    for (const auto& [step, skip] : other.skips_) merge_skip(skip);
    for (const auto& [key, from] : other.collectives_) {
        const auto [at, fresh] = collectives_.try_emplace(key, from);
        if (fresh) continue;
        CollectiveTotal& into = at->second.total;
        merge_fields(into.total, from.total.total);
        keep_texts(into.total, from.total.total);
        for (std::size_t i = 0; i < from.sums.size(); ++i) at->second.sums[i].add(from.sums[i]);
        keep_worst(into.worst_phi, into.worst_at, from.total.worst_phi, from.total.worst_at);
        keep_earliest(into.first_nonfinite, from.total.first_nonfinite);
        keep_lost(into, from.total.first_lost, from.total.lost_by);
    }
    sketches_.merge(other.sketches_);
    products_.merge(other.products_);
    for (const auto& [key, matmul] : other.matmuls_) add(matmul);
    for (const auto& [key, time] : other.times_) {
        auto& [kernels, ns] = times_[key];
        kernels += time.first;
        ns += time.second;
    }
    for (const auto& [their_key, place] : other.places_) {
        PlaceKey key = their_key;
        std::get<1>(key) = names_.id(other.names_.text(std::get<1>(key)));
        const auto [at, fresh] = places_.try_emplace(key, place);
        if (!fresh) merge_place(at->second, place);
    }
    for (const auto& [key, exponents] : other.exponents_) keep_exponents(key, exponents);
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
    coverage_.merge(other.coverage_);
    total_wall_ns_ = std::max(total_wall_ns_, other.total_wall_ns_);
}

}  // namespace mp::trace
