#include "runtime/fold/tensor_table.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

#include "runtime/trace/display.hpp"

namespace mp::trace {
namespace {

struct Change {
    double TensorRecord::* of_record;
    double TensorSum::* of_sum;
};
constexpr std::array kChange{Change{&TensorRecord::change_squares, &TensorSum::change_squares},
                             Change{&TensorRecord::twin_change_squares, &TensorSum::twin_change_squares},
                             Change{&TensorRecord::change_error_squares, &TensorSum::change_error_squares}};

}  // namespace

std::uint32_t TensorTable::slot_of(TensorKind kind, std::uint32_t name) {
    const std::uint64_t key = std::uint64_t{name} << 8 | static_cast<std::uint64_t>(kind);
    const auto [at, fresh] = slots_.try_emplace(key, static_cast<std::uint32_t>(states_.size()));
    if (fresh) {
        State& state = states_.emplace_back();
        state.sum.kind = kind;
        state.name = name;
        // Before any step, the unknown one included.
        state.sum.last_step = Step{std::numeric_limits<std::int64_t>::min()};
    }
    return at->second;
}

void TensorTable::keep_last(State& state, const TensorRecord& r, Step step) {
    TensorSum& s = state.sum;
    if (step < s.last_step) return;
    if (step > s.last_step) {
        s.last = r;
        s.last_step = step;
        state.last = {};
    } else {
        merge_fields(s.last, r);
    }
    for (std::size_t i = 0; i < kDoubleSums<TensorRecord>.size(); ++i)
        state.last[i].add(r.*kDoubleSums<TensorRecord>[i]);
}

void TensorTable::keep_first(State& state, const std::array<ExactSum, 2>& sums, Step step) {
    Step& first = state.sum.first_sample;
    if (!step.known() || (first.known() && step > first)) return;
    if (!first.known() || step < first) state.first = {};
    first = step;
    for (std::size_t i = 0; i < sums.size(); ++i) state.first[i].add(sums[i]);
}

// Tensors come in the same order in most steps and recordings.
void TensorTable::add(std::size_t row, const TensorRecord& r, std::uint32_t name, Rank rank, Step step,
                      bool sampled) {
    if (row >= hints_.size() || states_[hints_[row]].name != name ||
        states_[hints_[row]].sum.kind != r.kind) {
        const std::uint32_t slot = slot_of(r.kind, name);
        if (row >= hints_.size()) hints_.resize(row + 1, slot);
        hints_[row] = slot;
    }
    State& state = states_[hints_[row]];
    TensorSum& s = state.sum;
    const Place here{rank, step};
    keep_last(state, r, step);
    if (r.compared) {
        const double flushed = static_cast<double>(r.flushed) / static_cast<double>(r.compared);
        keep_worst(s.worst, s.worst_at, relative_l2(r), here);
        keep_worst(s.most_flushed, s.most_flushed_at, flushed, here);
    }
    if (sampled && r.compared) {
        std::array<ExactSum, 2> sums;
        sums[0].add(r.error_squares);
        sums[1].add(r.twin_squares);
        for (std::size_t i = 0; i < sums.size(); ++i) state.sampled[i].add(sums[i]);
        keep_first(state, sums, step);
    }
    if (r.nonfinite_real) keep_earliest(s.first_nonfinite, here);
    s.mastered += r.mastered;
    for (std::size_t i = 0; i < kChange.size(); ++i) state.change[i].add(r.*kChange[i].of_record);
    if (r.rounded) {
        keep_earliest(s.first_rounded, step);
        s.last_rounded = std::max(s.last_rounded, step);
        s.narrow = std::max(s.narrow, r.narrow);
        state.rounded[0].add(r.rounding_squares);
        state.rounded[1].add(r.twin_change_squares);
    }
    if (r.meant_to_move) {
        s.meant_to_move += r.meant_to_move;
        s.unmoved += r.unmoved;
        s.below_half_ulp += r.below_half_ulp;
        state.moved[0].add(r.wanted_squares);
        state.moved[1].add(r.moved_dot);
        ++s.samples;
        s.frozen += r.unmoved >= r.meant_to_move;
        if (r.unmoved > r.meant_to_move / 2) keep_earliest(s.first_stagnant, step);
    }
    const double twin = r.compared ? r.twin_squares : 0;
    if (r.hash) note_hash(state, {step.value, r.elements, {rank, r.hash}, false, {}, twin, twin, false});
}

void TensorTable::note_hash(State& state, const Hashes& other) {
    std::vector<Hashes>& all = state.hashes;
    const auto key = [](const Hashes& h) { return std::tuple(h.step, h.elements); };
    auto at = all.begin() + static_cast<std::ptrdiff_t>(std::min(state.next_hash, all.size()));
    if (at == all.end() || key(*at) != key(other))
        at = std::lower_bound(all.begin(), all.end(), other,
                              [&](const Hashes& a, const Hashes& b) { return key(a) < key(b); });
    state.next_hash = static_cast<std::size_t>(at - all.begin()) + 1;
    if (at == all.end() || key(*at) != key(other)) {
        all.insert(at, other);
        // The first steps: whole steps are left out, the last first.
        if (all.size() <= kMaxHashedSteps) return;
        std::size_t steps = 1;
        for (std::size_t i = 1; i < all.size(); ++i) steps += all[i].step != all[i - 1].step;
        if (steps > kMaxHashedSteps) {
            const std::int64_t last = all.back().step;
            while (all.back().step == last) all.pop_back();
        }
        return;
    }
    at->twin_low = smaller(at->twin_low, other.twin_low);
    at->twin_high = larger(at->twin_high, other.twin_high);
    at->several = at->several || other.several || at->lowest.first != other.lowest.first;
    if (!other.mismatch && other.lowest.second == at->lowest.second && other.lowest.first >= at->lowest.first)
        return;
    // Keep the lowest rank, and the lowest rank whose bytes differ from it.
    std::vector seen{at->lowest, other.lowest};
    if (at->mismatch) seen.push_back(at->differs);
    if (other.mismatch) seen.push_back(other.differs);
    std::sort(seen.begin(), seen.end());
    const auto differs = std::find_if(seen.begin(), seen.end(),
                                      [&seen](const auto& s) { return s.second != seen.front().second; });
    at->lowest = seen.front();
    at->mismatch = differs != seen.end();
    if (at->mismatch) at->differs = *differs;
}

void TensorTable::merge_state(State& into, const State& other) {
    TensorSum& s = into.sum;
    const TensorSum& o = other.sum;
    if (o.last_step > s.last_step) {
        s.last = o.last;
        s.last_step = o.last_step;
        into.last = other.last;
    } else if (o.last_step == s.last_step) {
        merge_fields(s.last, o.last);
        for (std::size_t i = 0; i < into.last.size(); ++i) into.last[i].add(other.last[i]);
    }
    keep_worst(s.worst, s.worst_at, o.worst, o.worst_at);
    keep_worst(s.most_flushed, s.most_flushed_at, o.most_flushed, o.most_flushed_at);
    keep_earliest(s.first_nonfinite, o.first_nonfinite);
    s.meant_to_move += o.meant_to_move;
    s.unmoved += o.unmoved;
    s.below_half_ulp += o.below_half_ulp;
    for (std::size_t i = 0; i < into.moved.size(); ++i) {
        into.moved[i].add(other.moved[i]);
        into.sampled[i].add(other.sampled[i]);
    }
    for (std::size_t i = 0; i < into.change.size(); ++i) into.change[i].add(other.change[i]);
    keep_earliest(s.first_rounded, o.first_rounded);
    s.last_rounded = std::max(s.last_rounded, o.last_rounded);
    s.narrow = std::max(s.narrow, o.narrow);
    for (std::size_t i = 0; i < into.rounded.size(); ++i) into.rounded[i].add(other.rounded[i]);
    keep_first(into, other.first, o.first_sample);
    s.mastered += o.mastered;
    s.samples += o.samples;
    s.frozen += o.frozen;
    keep_earliest(s.first_stagnant, o.first_stagnant);
    for (const Hashes& h : other.hashes) note_hash(into, h);
}

void TensorTable::merge(const TensorTable& other, Interner& names, const Interner& theirs) {
    for (const State& state : other.states_)
        merge_state(states_[slot_of(state.sum.kind, names.id(theirs.text(state.name)))], state);
}

void TensorTable::put(RunModel& m, const Interner& names) const {
    for (const State& state : states_) {
        TensorSum& t = m.tensors.emplace_back(state.sum);
        t.name = t.last.name = names.text(state.name);
        for (std::size_t i = 0; i < kDoubleSums<TensorRecord>.size(); ++i)
            t.last.*kDoubleSums<TensorRecord>[i] = state.last[i].value();
        t.wanted_squares = state.moved[0].value();
        t.moved_dot = state.moved[1].value();
        for (std::size_t i = 0; i < kChange.size(); ++i) t.*kChange[i].of_sum = state.change[i].value();
        t.rounding_squares = state.rounded[0].value();
        t.rounded_change_squares = state.rounded[1].value();
        t.sampled_error_squares = state.sampled[0].value();
        t.sampled_twin_squares = state.sampled[1].value();
        t.first_error_squares = state.first[0].value();
        t.first_twin_squares = state.first[1].value();
        // One mismatch a step; of several sizes the lowest rank names it.
        for (std::size_t i = 0; i < state.hashes.size();) {
            const std::int64_t step = state.hashes[i].step;
            const Hashes* named = nullptr;
            bool replicas = false, parted = false;
            for (; i < state.hashes.size() && state.hashes[i].step == step; ++i) {
                const Hashes& h = state.hashes[i];
                if (h.mismatch && (!named || h.differs < named->differs)) named = &h;
                const bool agree = h.several && h.twin_low > 0 && h.twin_low == h.twin_high;
                replicas = replicas || agree;
                parted = parted || (agree && h.mismatch);
            }
            t.replicas += replicas;
            if (!named) continue;
            const Place here{named->differs.first, Step{step}};
            ++t.hash_mismatches;
            keep_earliest(t.first_mismatch, here);
            t.replica_mismatches += parted;
            if (parted) keep_earliest(t.first_replica_mismatch, here);
        }
    }
    std::sort(m.tensors.begin(), m.tensors.end(), [](const TensorSum& a, const TensorSum& b) {
        return std::tie(a.kind, a.name) < std::tie(b.kind, b.name);
    });
}

}  // namespace mp::trace
