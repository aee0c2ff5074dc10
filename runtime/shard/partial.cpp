#include "runtime/shard/partial.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/numerics/divergence.hpp"
#include "runtime/shard/intervals.hpp"
#include "runtime/shard/parts.hpp"
#include "runtime/trace/display.hpp"

namespace mp::trace {
namespace {

constexpr std::size_t kMaxRankBits = 65'536;

double phi(double error_squares, double squares, std::uint64_t compared, DType dtype) {
    if (compared == 0) return -1;
    const double relative = error_squares == 0 ? 0 : std::sqrt(error_squares / squares);
    return floor_ratio(relative, dtype);
}

std::string layer_key(const std::string& layer, Phase phase) {
    return static_cast<char>(phase) + layer;
}

bool same_key(const OpRecord& a, const OpRecord& b) {
    return a.phase == b.phase && a.dtype == b.dtype && a.layer == b.layer && a.op == b.op;
}

// A causal mask is not a fault: without a twin only what an op itself made counts.
std::uint64_t nonfinite(const OpRecord& r) {
    if (r.compared || r.nonfinite_real || r.nonfinite_twin) return r.nonfinite_real;
    return r.origins ? r.nan + r.pos_inf + r.neg_inf : 0;
}

}  // namespace

void Partial::begin() {
    rank_ = {};
    facts_ = {};
    file_notes_.clear();
    wall_ns_ = 0;
    any_step_ = false;
}

void Partial::process(const ProcessRecord& p) {
    rank_ = p.rank;
    facts_.facts.process = p;
}

void Partial::note(const NoteRecord& n) {
    if (n.kind == NoteKind::end) facts_.facts.ended = true;
    if (n.kind == NoteKind::policy) {
        if (policies_.size() < kMaxNotes) policies_.emplace(n.text, true);
    } else if (n.kind != NoteKind::end) {
        const auto [at, fresh] = file_notes_.try_emplace({n.kind, n.text}, n);
        if (!fresh) at->second.count = n.count;  // the number so far
    }
    if (file_notes_.size() > kMaxNotes) file_notes_.erase(std::prev(file_notes_.end()));
}

void Partial::end(const Recording& told) {
    RankFacts& f = facts_.facts;
    if (told.has_process) f.process = told.process;
    f.path = told.path;
    f.problems = told.problems.size();
    for (const Problem& p : told.problems) {
        if (f.first_problems.size() == kMaxFirstProblems) break;
        f.first_problems.push_back("byte " + std::to_string(p.offset) + ": " + p.why);
    }
    for (const auto& [key, n] : file_notes_) {
        if (key.first == NoteKind::lossy) f.lost_records += n.count;
        auto& note = notes_.try_emplace(key, RunModel::Note{key.first, key.second, 0, 0, n.step}).first->second;
        note.count += n.count;
        ++note.processes;
        note.first = std::min(note.first, n.step);
    }
    while (notes_.size() > kMaxNotes) notes_.erase(std::prev(notes_.end()));
    total_wall_ns_ = std::max(total_wall_ns_, wall_ns_);
    ranks_.push_back(std::move(facts_));
    begin();
}

void Partial::step(const StepRecord& s) {
    RankFacts& f = facts_.facts;
    ++f.steps;
    f.last_step = std::max(f.last_step, s.step);
    facts_.first_step = any_step_ ? std::min(facts_.first_step, s.step) : s.step;
    if (__builtin_add_overflow(wall_ns_, s.wall_ns, &wall_ns_)) wall_ns_ = 0;
    add_coverage(coverage_, s.coverage);
    if (any_step_) {
        seeds_after_first_ += s.coverage.seeds;
        external_after_first_ += s.coverage.external;
    }
    any_step_ = true;
    if (s.optimizer == 0 && s.step.known()) add_step(s);
    for (std::size_t row = 0; row < s.ops.size(); ++row) {
        OpState* const op = op_of(s.ops[row], row);
        if (op) add(*op, s.ops[row], s.step);
        ops_left_out_ += op == nullptr;
    }
    for (const TensorRecord& t : s.tensors) add(t, s.step);
    for (const CollectiveRecord& c : s.collectives) add(c, s.step);
    for (const DTypePlace& p : s.places) add(p, s.step);
    for (const DTypeCount& d : s.dtypes) ops_by_dtype_[d.dtype] += d.ops;
}

std::string Partial::key_of(const OpRecord& r) {
    std::string key;
    key.reserve(r.layer.size() + r.op.size() + 3);
    key += static_cast<char>(r.phase);
    key += static_cast<char>(r.dtype);
    key.append(r.layer).append(1, '\0').append(r.op);
    return key;
}

std::size_t Partial::layer_of(const OpRecord& r) {
    const auto [at, fresh] = layer_ids_.try_emplace(layer_key(r.layer, r.phase), layers_.size());
    if (fresh) layers_.push_back({.layer = r.layer, .phase = r.phase, .order = r.first, .cells = {}});
    return at->second;
}

Partial::OpState* Partial::op_of(const OpRecord& r) {
    const std::string key = key_of(r);
    if (const auto found = op_ids_.find(key); found != op_ids_.end()) return &ops_[found->second];
    if (ops_.size() >= kMaxOps) return nullptr;
    op_ids_.emplace(key, ops_.size());
    OpState& state = ops_.emplace_back();
    state.sum.total.layer = r.layer;
    state.sum.total.op = r.op;
    state.sum.total.phase = r.phase;
    state.sum.total.dtype = r.dtype;
    state.layer = layer_of(r);
    return &state;
}

// Ops come in the same order in most steps.
Partial::OpState* Partial::op_of(const OpRecord& r, std::size_t row) {
    if (row < hints_.size() && same_key(ops_[hints_[row]].sum.total, r)) return &ops_[hints_[row]];
    OpState* const state = op_of(r);
    if (!state) return nullptr;
    const auto at = static_cast<std::size_t>(state - ops_.data());
    if (row >= hints_.size()) hints_.resize(row + 1, at);
    hints_[row] = at;
    return state;
}

void Partial::add(OpState& state, const OpRecord& r, Step step) {
    OpSum& sum = state.sum;
    const Place here{rank_, step};
    add_op_counts(sum.total, r);
    for (std::size_t i = 0; i < kSums; ++i) state.sums[i].add(r.*kOpSums[i]);
    const bool first = !sum.first_step.known() && sum.ranks == 0;
    if (first || std::tuple(step, r.first, rank_) < std::tuple(sum.first_step, sum.total.first, state.first_rank)) {
        sum.first_step = step;
        sum.total.first = r.first;
        sum.total.source = r.source;
        sum.total.guessed = r.guessed;
        state.first_rank = rank_;
    }
    sum.ranks = 1;  // counted from the bits in the end
    if (rank_.known() && static_cast<std::size_t>(rank_.value) < kMaxRankBits) {
        const auto bit = static_cast<std::size_t>(rank_.value);
        if (state.ranks.size() <= bit / 64) state.ranks.resize(bit / 64 + 1);
        state.ranks[bit / 64] |= std::uint64_t{1} << bit % 64;
    }
    if (r.origins) keep_origin(sum, here, r);
    const double loc = phi(r.loc_error_squares, r.loc_squares, r.loc_compared, r.dtype);
    const double cum = phi(r.error_squares, r.twin_squares, r.compared, r.dtype);
    keep_worst(sum.worst_loc_phi, sum.worst_loc, loc, here);
    keep_worst(sum.worst_cum_phi, sum.worst_cum, cum, here);
    add_to_map(state, r, loc, cum, step);
}

void Partial::add_to_map(const OpState& state, const OpRecord& r, double loc, double cum, Step step) {
    if (!step.known() || options_.columns == 0) return;
    LayerSteps& row = layers_[state.layer];
    row.order = std::min(row.order, r.first);
    std::int64_t wide = column_steps_;
    while (static_cast<std::uint64_t>(step.value / wide) >= options_.columns) wide *= 2;
    widen(wide);
    const auto column = static_cast<std::size_t>(step.value / column_steps_);
    if (row.cells.size() <= column) row.cells.resize(column + 1);
    Cell cell;
    // In floors of its own dtype the inherited error of an fp32 result would hide everything else.
    if (is_low_precision(r.dtype)) {
        cell.cum_phi = static_cast<float>(cum);
        cell.loc_phi = static_cast<float>(loc);
    }
    if (r.twin_abs > 0) cell.flush = static_cast<float>(r.flushed_abs / r.twin_abs);
    cell.nonfinite = static_cast<std::uint32_t>(std::min<std::uint64_t>(nonfinite(r), 0xffffffffu));
    keep_worse(row.cells[column], cell);
}

void Partial::widen(std::int64_t column_steps) {
    if (column_steps <= column_steps_) return;
    const auto times = static_cast<std::size_t>(column_steps / column_steps_);
    for (LayerSteps& row : layers_) {
        for (std::size_t i = 1; i < row.cells.size(); ++i) {
            const Cell cell = row.cells[i];
            if (i % times == 0) row.cells[i / times] = {};
            keep_worse(row.cells[i / times], cell);
        }
        row.cells.resize((row.cells.size() + times - 1) / times);
    }
    column_steps_ = column_steps;
}

Partial::StepState Partial::state_of(const StepRecord& s, Rank rank) {
    StepState state;
    StepSummary& m = state.summary;
    m.step = s.step;
    m.ranks = 1;
    m.skipped = s.skipped;
    m.wall_ns = s.wall_ns;
    m.sampled = s.sampled;
    m.coverage = s.coverage;
    m.has_loss_scale = s.has_loss_scale;
    m.loss_scale = s.loss_scale;
    state.scale_rank = rank;
    if (s.losses.empty()) return state;
    state.losses = 1;
    state.loss.add(s.losses.back().real);
    if (!s.losses.back().has_twin) return state;
    state.twins = 1;
    state.twin_loss.add(s.losses.back().twin);
    return state;
}

void Partial::add_step(const StepRecord& s) {
    insert(recorded_, s.step.value, s.step.value);
    if (s.step.value % steps_every_ == 0) {
        const auto [at, fresh] = steps_.try_emplace(s.step.value, state_of(s, rank_));
        if (!fresh) merge_step(at->second, state_of(s, rank_));
        thin();
    }
    if (s.skipped) add_skip(s);
}

void Partial::thin() {
    while (steps_.size() > std::max<std::size_t>(options_.steps, 1)) {
        steps_every_ *= 2;
        std::erase_if(steps_, [this](const auto& entry) { return entry.first % steps_every_ != 0; });
        if (steps_.size() == 1) break;
    }
}

void Partial::add_skip(const StepRecord& s) {
    insert(skipped_, s.step.value, s.step.value);
    SkipState skip;
    SkipFacts& f = skip.facts;
    f.step = s.step;
    f.skipped_by = {rank_};
    f.has_scale = s.has_loss_scale;
    f.loss_scale = s.loss_scale;
    skip.scale_rank = rank_;
    skip.step = state_of(s, rank_);
    for (const OpRecord& op : s.ops) {
        if (op.origins && (f.origin.op.empty() || op.first_origin < f.origin.first_origin)) {
            f.origin = op;
            f.origin_rank = rank_;
        }
    }
    for (const TensorRecord& t : s.tensors) {
        if (t.kind != TensorKind::gradient || t.nonfinite_real == 0) continue;
        note_gradient(skip, {t.name, rank_, t.dtype, t.nonfinite_real, t.elements, t.twin_amax, t.nonfinite_twin});
    }
    for (const CollectiveRecord& c : s.collectives) {
        if (c.made_nonfinite == 0) continue;
        f.reductions_made_nonfinite += c.made_nonfinite;
        if (f.reduction_op.empty() || c.op < f.reduction_op) f.reduction_op = c.op;
    }
    for (const LossRecord& l : s.losses) {
        f.loss_finite = f.loss_finite && std::isfinite(l.real);
        f.twin_loss_finite = f.twin_loss_finite && (!l.has_twin || std::isfinite(l.twin));
    }
    merge_skip(skip);
}

void Partial::add(const TensorRecord& r, Step step) {
    TensorState state;
    TensorSum& s = state.sum;
    s.kind = r.kind;
    s.name = r.name;
    s.last = r;
    s.last_step = step;
    const Place here{rank_, step};
    for (std::size_t i = 0; i < kTensorSums.size(); ++i) state.last[i].add(r.*kTensorSums[i]);
    if (r.compared) keep_worst(s.worst, s.worst_at, relative_l2(r), here);
    if (r.nonfinite_real) s.first_nonfinite = here;
    if (r.meant_to_move) {
        s.meant_to_move = r.meant_to_move;
        s.unmoved = r.unmoved;
        s.below_half_ulp = r.below_half_ulp;
        state.moved[0].add(r.wanted_squares);
        state.moved[1].add(r.moved_dot);
        s.samples = 1;
        s.frozen = r.unmoved >= r.meant_to_move;
        if (r.unmoved > r.meant_to_move / 2) s.first_stagnant = step;
    }
    if (r.hash) state.hashes[step.value] = {{r.elements, {rank_, r.hash}, false, {}}};
    merge_tensor(tensors_[{r.kind, r.name}], state);
}

void Partial::add(const CollectiveRecord& r, Step step) {
    CollectiveState& state = collectives_[{r.op, r.reduction, r.dtype, r.group}];
    CollectiveTotal& t = state.total;
    t.total.op = r.op;
    t.total.reduction = r.reduction;
    t.total.dtype = r.dtype;
    t.total.group = r.group;
    add_collective_counts(t.total, r);
    state.sums[0].add(r.error_squares);
    state.sums[1].add(r.sum_squares);
    keep_worst(t.worst_phi, t.worst_at, phi(r.error_squares, r.sum_squares, r.compared, r.dtype), {rank_, step});
    if (r.made_nonfinite) keep_earliest(t.first_nonfinite, step);
}

void Partial::add(const DTypePlace& p, Step step) {
    const auto [at, fresh] = places_.try_emplace({p.role, p.layer, p.phase, p.dtype}, PlaceTotal{p, step, step});
    if (!fresh) merge_place(at->second, {p, step, step});
}

}  // namespace mp::trace
