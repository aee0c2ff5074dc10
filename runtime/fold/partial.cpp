#include "runtime/fold/partial.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/fold/intervals.hpp"
#include "runtime/fold/parts.hpp"
#include "runtime/trace/bytes.hpp"
#include "runtime/trace/encode.hpp"
#include "runtime/trace/note_texts.hpp"

namespace mp::trace {
void Partial::begin(std::uint64_t tables_room) {
    names_.begin();
    ops_.begin();
    rank_ = {};
    facts_ = {};
    file_notes_.clear();
    wall_ns_ = 0;
    first_step_ = {};
    tables_.reset();
    if (options_.tables) tables_.emplace(tables_room);
}

void Partial::process(const ProcessRecord& p) {
    rank_ = p.rank;
    ops_.begin();
    facts_.facts.process = p;
}

void Partial::note(const NoteRecord& n) {
    if (n.kind == NoteKind::end) {
        facts_.facts.ended = n.text != kInTask;
        facts_.facts.ended_by = facts_.facts.ended ? n.text : "";
    }
    if (n.kind == NoteKind::policy && policies_.size() < kMaxNotes) policies_.emplace(n.text, true);
    const auto [at, fresh] = file_notes_.try_emplace({n.kind, n.text}, n);
    if (!fresh) at->second.count = n.count;  // the number so far
    if (tables_) tables_->note(n);
    if (file_notes_.size() <= kMaxNotes) return;
    file_notes_.erase(std::prev(file_notes_.end()));
    if (tables_) tables_->leave_out();
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
        auto& note =
            notes_.try_emplace(key, RunModel::Note{key.first, key.second, 0, 0, n.step}).first->second;
        note.count += n.count;
        ++note.processes;
        note.first = std::min(note.first, n.step);
    }
    while (notes_.size() > kMaxNotes) notes_.erase(std::prev(notes_.end()));
    total_wall_ns_ = std::max(total_wall_ns_, wall_ns_);
    if (tables_) f.tables = tables_->finish(told);
    ranks_.push_back(std::move(facts_));
    begin();
}

void Partial::step(const StepRecord& s) {
    NameTable table;
    std::string ops, bytes, names;
    encode_ops(s, table, ops);
    encode(s, table, true, bytes);
    table.encode(0, names);
    NameList list;
    list.add(names);
    StepDecoding how{.names = list, .room = ~std::size_t{0}};
    StepRows rows;
    OpColumns columns;
    decode(ops, how, columns);
    decode(bytes, how, rows);
    // Its names have numbers of their own.
    names_.begin();
    ops_.begin();
    step(rows, &columns, list);
}

void Partial::step(const StepRows& rows, const OpColumns* ops, const NameList& list) {
    const StepRecord& s = rows.record;
    RankFacts& f = facts_.facts;
    f.steps += s.optimizer != kNoOptimizer;
    f.last_step = std::max(f.last_step, s.step);
    if (__builtin_add_overflow(wall_ns_, s.wall_ns, &wall_ns_)) wall_ns_ = 0;
    if (!first_step_.known()) first_step_ = s.step;
    coverage_.add(s.coverage, s.step == first_step_);
    if (tables_) tables_->step(rows, list);
    if (s.optimizer == 0 && s.step.known()) add_step(rows, ops, list);
    if (s.optimizer > 0 && s.step.known() && !s.skipped && !s.losses.empty()) add_other(s);
    if (s.optimizer == kNoOptimizer && (ops || !s.losses.empty() || !s.tensors.empty()))
        add_unfinished(state_of(s));
    if (ops) ops_.add(*ops, names_, list, rank_);
    if (ops) add_exponents(*ops, list);
    for (std::size_t i = 0; i < s.tensors.size(); ++i)
        tensors_.add(i, s.tensors[i], names_.id(rows.tensors[i], list), rank_, s.step, s.sampled);
    for (const CollectiveRecord& c : s.collectives) add(c, s.step);
    for (const SketchRecord& r : s.sketches) sketches_.add(r, s.step, rank_);
    for (const ProductRecord& r : s.products) products_.add(r, {rank_, s.step});
    for (const MatmulRecord& r : s.matmuls) add(r);
    for (const TimeRecord& t : s.times) {
        auto& [kernels, ns] = times_[{t.layer, t.phase}];
        kernels += t.kernels;
        ns += t.device_ns;
    }
    add_places(rows, list);
    for (const DTypeCount& d : s.dtypes) ops_by_dtype_[d.dtype] += d.ops;
}

void Partial::add(const MatmulRecord& r) {
    const auto [at, fresh] = matmuls_.try_emplace({r.layer, r.op, r.phase, r.a, r.b, r.result, r.how}, r);
    if (!fresh) merge_fields(at->second, r);
}

Partial::StepState Partial::state_of(const StepRecord& s) const {
    StepState state;
    state.restart = facts_.facts.process.restart;
    StepSummary& m = state.summary;
    m.step = s.step;
    m.wall_ns = s.wall_ns;
    m.sampled = s.sampled;
    m.coverage = s.coverage;
    m.has_loss_scale = s.has_loss_scale;
    m.loss_scale = s.loss_scale;
    state.scale_rank = rank_;
    for (const TensorRecord& t : s.tensors) {
        if (t.kind != TensorKind::gradient) continue;
        if (s.optimizer == kNoOptimizer && t.nonfinite_real > 0)
            m.lost_gradients += t.compared > 0 ? t.nonfinite_twin : t.nonfinite_real;
        if (t.compared == 0) continue;
        state.gradient_error.add(t.error_squares);
        state.gradient_twin.add(t.twin_squares);
    }
    m.backwards = static_cast<std::int32_t>(std::min<std::size_t>(s.losses.size(), 1u << 30));
    const std::optional<LossRecord> loss = loss_of(s.losses);
    if (!loss) return state;
    state.losses = 1;
    state.loss.add(loss->real);
    if (!loss->has_twin) return state;
    state.twins = 1;
    state.twin_loss.add(loss->twin);
    return state;
}

void Partial::add_step(const StepRows& rows, const OpColumns* ops, const NameList& list) {
    const StepRecord& s = rows.record;
    insert(facts_.recorded, s.step.value, s.step.value);
    if (s.step.value % steps_every_ == 0) {
        const auto [at, fresh] = steps_.try_emplace(s.step.value, state_of(s));
        if (!fresh) merge_step(at->second, state_of(s));
        thin();
    }
    if (!s.skipped) return;
    insert(facts_.skipped, s.step.value, s.step.value);
    add_skip(rows, ops, list);
}

void Partial::add_other(const StepRecord& s) {
    if (s.step.value % steps_every_ != 0) return;
    const auto [at, fresh] = others_.try_emplace({s.optimizer, s.step.value}, state_of(s));
    if (!fresh) merge_step(at->second, state_of(s));
    thin();
}

void Partial::drop_between() {
    std::erase_if(steps_, [this](const auto& entry) { return entry.first % steps_every_ != 0; });
    std::erase_if(others_, [this](const auto& entry) { return entry.first.second % steps_every_ != 0; });
}

void Partial::thin() {
    constexpr std::int64_t kFewest = std::int64_t{1} << 40;  // more optimizers than steps that are kept
    const std::size_t most = std::max<std::size_t>(options_.steps, 1);
    while (steps_every_ < kFewest && (steps_.size() > most || others_.size() > most)) {
        steps_every_ *= 2;
        drop_between();
    }
}

namespace {

bool is_finite(const LossRecord& l) {
    return std::isfinite(l.real) && (!l.has_twin || std::isfinite(l.twin));
}

bool is_lost_in_twin(const TensorRecord& t) { return t.kind == TensorKind::gradient && t.nonfinite_twin > 0; }

// Whether what the twin's forward has too did no harm: its loss and its gradients are finite. Example: the logarithm of
// a distance of 0 that a where() replaces.
bool twin_is_sound(const StepRecord& s) {
    return !s.losses.empty() && std::ranges::all_of(s.losses, is_finite) &&
           std::ranges::none_of(s.tensors, is_lost_in_twin);
}

bool only_as_in_twin(const OpRecord& op) {
    return op.phase == Phase::forward && op.compared > 0 && op.nonfinite_real == 0;
}

}  // namespace

void Partial::add_skip(const StepRows& rows, const OpColumns* ops, const NameList& list) {
    const StepRecord& s = rows.record;
    SkipState skip;
    SkipFacts& f = skip.facts;
    f.step = s.step;
    f.has_scale = s.has_loss_scale;
    f.loss_scale = s.loss_scale;
    skip.scale_rank = rank_;
    skip.step = state_of(s);
    const bool sound = twin_is_sound(s);
    const char* const origins = ops ? ops->columns[bit_of(&OpRecord::origins)] : nullptr;
    for (std::size_t row = 0; origins && row < ops->rows.size(); ++row) {
        if (load_little<std::uint64_t>(origins + 8 * row) == 0) continue;
        OpRecord op = record_of(*ops, row, list);
        if (sound && only_as_in_twin(op)) continue;
        f.forward_origins += op.phase == Phase::forward;
        f.backward_origins += op.phase == Phase::backward;
        if (!f.origin.op.empty() && origin_order(op, rank_) >= origin_order(f.origin, f.origin_rank))
            continue;
        f.origin = std::move(op);
        f.origin_rank = rank_;
    }
    for (std::size_t i = 0; i < s.tensors.size(); ++i) {
        const TensorRecord& t = s.tensors[i];
        if (t.kind != TensorKind::gradient || t.nonfinite_real == 0) continue;
        note_gradient(skip, {text_of(rows.tensors[i], list), rank_, t.dtype, t.nonfinite_real, t.elements,
                             t.twin_amax, t.nonfinite_twin});
    }
    for (const CollectiveRecord& c : s.collectives) {
        f.finite_reductions += c.finite_inputs;
        f.lost_reductions += c.lost_inputs;
        if (c.made_nonfinite == 0 && c.finite_inputs == 0) continue;
        f.reductions_made_nonfinite += c.made_nonfinite;
        if (f.reduction_op.empty() || c.op < f.reduction_op) f.reduction_op = c.op;
    }
    for (const LossRecord& l : s.losses) {
        f.loss_finite = f.loss_finite && std::isfinite(l.real);
        f.twin_loss_finite = f.twin_loss_finite && (!l.has_twin || std::isfinite(l.twin));
    }
    merge_skip(skip);
}

void Partial::add(const CollectiveRecord& r, Step step) {
    CollectiveState& state = collectives_[{r.op, r.reduction, r.dtype, r.group, r.ranks}];
    CollectiveTotal& t = state.total;
    t.total.op = r.op;
    t.total.reduction = r.reduction;
    t.total.dtype = r.dtype;
    t.total.group = r.group;
    t.total.ranks = r.ranks;
    merge_fields(t.total, r);
    keep_texts(t.total, r);
    for (std::size_t i = 0; i < state.sums.size(); ++i)
        state.sums[i].add(r.*kDoubleSums<CollectiveRecord>[i]);
    keep_worst(t.worst_phi, t.worst_at, phi_of(r.error_squares, r.sum_squares, r.compared, r.dtype),
               {rank_, step});
    if (r.made_nonfinite > 0 || r.lost_results > 0) keep_earliest(t.first_nonfinite, step);
    if (r.lost_results > 0)
        keep_lost(t, {rank_, step}, {r.communicator, Rank{known_number(r.member)}, known_number(r.device)});
}

void Partial::add_exponents(const OpColumns& ops, const NameList& list) {
    for (const auto& [at, exponents] : ops.exponents) {
        const OpColumns::Row& row = ops.rows[at];
        keep_exponents({text_of(row.layer, list), row.phase, row.dtype}, exponents);
    }
}

// The first by name: what is left out here is not among the first of the whole run either.
void Partial::keep_exponents(const ExponentsKey& key, const Exponents& exponents) {
    exponents_[key].add(exponents);
    if (exponents_.size() > kMaxExponents) exponents_.erase(std::prev(exponents_.end()));
}

// They come in the same order in most recordings.
void Partial::add_places(const StepRows& rows, const NameList& list) {
    const Step step = rows.record.step;
    for (std::size_t i = 0; i < rows.places.size(); ++i) {
        const DTypePlace& p = rows.record.places[i];
        const PlaceKey key{p.role, names_.id(rows.places[i], list), p.phase, p.dtype};
        if (i >= place_hints_.size() || place_hints_[i]->first != key) {
            const auto [at, fresh] = places_.try_emplace(key);
            if (fresh) at->second = {p, step, step}, at->second.place.layer = names_.text(std::get<1>(key));
            place_hints_.resize(std::max(place_hints_.size(), i + 1), at);
            place_hints_[i] = at;
            if (fresh) continue;
        }
        merge_place(place_hints_[i]->second, {p, step, step});
    }
}

}  // namespace mp::trace
