#include "runtime/fold/op_table.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/numerics/divergence.hpp"
#include "runtime/trace/bytes.hpp"

namespace mp::trace {
namespace {

// A column of a frame; one that was left out reads 0.
template <typename T>
struct ColumnOf {
    const char* at;
    T operator[](std::size_t row) const {
        return at ? std::bit_cast<T>(load_little<std::uint64_t>(at + 8 * row)) : T{};
    }
};
ColumnOf<std::uint64_t> column(const OpColumns& c, std::uint64_t OpRecord::* field) {
    return {c.columns[bit_of(field)]};
}

void add_counts(std::uint64_t* into, const char* from, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) into[i] += load_little<std::uint64_t>(from + 8 * i);
}

// ExactSum::add without a branch, which a compiler makes vectors of.
void add_exactly(double* high, double* low, const char* from, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        const double v = std::bit_cast<double>(load_little<std::uint64_t>(from + 8 * i));
        const double sum = high[i] + v;
        const double part = sum - high[i];
        const double more = low[i] + ((high[i] - (sum - part)) + (v - part));
        low[i] = sum - sum == 0 ? more : 0;
        high[i] = sum;
    }
}

void keep_largest(double* into, const char* from, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        const double v = std::bit_cast<double>(load_little<std::uint64_t>(from + 8 * i));
        into[i] = into[i] < v || v != v ? v : into[i];
    }
}

void keep_smallest(double* into, const char* from, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
        into[i] =
            smaller_above_zero(into[i], std::bit_cast<double>(load_little<std::uint64_t>(from + 8 * i)));
}

// phi() of each row; -1 where nothing was compared.
void phis(const char* errors, const char* squares, const char* compared, const double* floor, double* out,
          std::size_t count) {
    const ColumnOf<double> e{errors}, s{squares};
    const ColumnOf<std::uint64_t> n{compared};
    for (std::size_t i = 0; i < count; ++i) {
        const double relative = relative_error(e[i], s[i]);
        const double ratio = floor[i] > 0 ? relative / floor[i] : 0;
        out[i] = n[i] == 0 ? -1 : ratio;
    }
}

// A causal mask is not a fault: without a twin only what an op itself made counts.
std::uint64_t nonfinite(const OpColumns& c, std::size_t row) {
    const std::uint64_t real = column(c, &OpRecord::nonfinite_real)[row];
    if (column(c, &OpRecord::compared)[row] || real || column(c, &OpRecord::nonfinite_twin)[row]) return real;
    if (column(c, &OpRecord::origins)[row] == 0) return 0;
    return column(c, &OpRecord::nan)[row] + column(c, &OpRecord::pos_inf)[row] +
           column(c, &OpRecord::neg_inf)[row];
}

bool may_be_nonfinite(const OpColumns& c) {
    return column(c, &OpRecord::nonfinite_real).at || column(c, &OpRecord::origins).at;
}

void set_bit(std::vector<std::uint64_t>& bits, Rank rank) {
    if (!rank.known() || static_cast<std::size_t>(rank.value) >= kMaxRankBits) return;
    const auto bit = static_cast<std::size_t>(rank.value);
    if (bits.size() <= bit / 64) bits.resize(bit / 64 + 1);
    bits[bit / 64] |= std::uint64_t{1} << bit % 64;
}

const char* at_row(const char* column, std::size_t row) { return column ? column + 8 * row : nullptr; }

}  // namespace

double phi_of(double error_squares, double squares, std::uint64_t compared, DType dtype) {
    if (compared == 0) return -1;
    return floor_ratio(relative_error(error_squares, squares), dtype);
}

void OpTable::begin() { bound_ = false; }

std::size_t OpTable::new_slot(const Key& key, const Interner& names, std::uint64_t first) {
    const std::size_t slot = keys_.size();
    slots_.emplace(key, slot);
    keys_.push_back(key);
    for (auto& c : counts_) c.push_back(0);
    for (auto& v : values_) v.push_back(0);
    for (auto& l : low_) l.push_back(0);
    floor_.push_back(one_rounding_floor(key.dtype));
    worst_loc_.push_back(0);
    worst_cum_.push_back(0);
    low_precision_.push_back(is_low_precision(key.dtype));
    map_rows_.push_back(map_.row_of(names.text(key.layer), key.phase, first));
    earliest_.emplace_back();
    fresh_ = true;
    OpRecord& total = cold_.emplace_back().sum.total;
    total.layer = names.text(key.layer);
    total.op = names.text(key.op);
    total.phase = key.phase;
    total.dtype = key.dtype;
    return slot;
}

std::size_t OpTable::slot_of(const Key& key, const Interner& names, std::uint64_t first) {
    if (const auto found = slots_.find(key); found != slots_.end()) return found->second;
    return keys_.size() < kMaxOps ? new_slot(key, names, first) : kNone;
}

// Ops come in the same order in most recordings, so a row is first looked for where it was in the one before.
void OpTable::bind(const OpColumns& c, Interner& names, const NameList& list, Rank rank) {
    stretches_.clear();
    bound_left_out_ = 0;
    row_slots_.resize(std::max(row_slots_.size(), c.rows.size()), kNone);
    const auto firsts = column(c, &OpRecord::first);
    for (std::size_t row = 0; row < c.rows.size(); ++row) {
        const OpColumns::Row& r = c.rows[row];
        const Key key{names.id(r.layer, list), names.id(r.op, list), r.phase, r.dtype};
        std::size_t& slot = row_slots_[row];
        if (slot == kNone || !(keys_[slot] == key)) slot = slot_of(key, names, firsts[row]);
        if (slot == kNone) {
            ++bound_left_out_;
            continue;
        }
        set_bit(cold_[slot].ranks, rank);
        Stretch* const last = stretches_.empty() ? nullptr : &stretches_.back();
        if (last && last->row + last->count == row && last->slot + last->count == slot) {
            ++last->count;
        } else {
            stretches_.push_back({row, slot, 1});
        }
    }
    bound_ = true;
    bound_version_ = c.version;
}

void OpTable::add(const OpColumns& c, Interner& names, const NameList& list, Rank rank) {
    if (!bound_ || bound_version_ != c.version) bind(c, names, list, rank);
    left_out_ += bound_left_out_;
    if (fresh_ || c.step <= latest_first_) note_first(c, list, rank);
    const auto column = map_.column_of(c.step);
    for (const Stretch& s : stretches_) {
        add_sums(c, s);
        add_measures(c, s, rank, column);
        add_origins(c, list, s, rank);
        add_stillness(c, s);
    }
}

void OpTable::add_sums(const OpColumns& c, const Stretch& s) {
    for (unsigned i = 0; i < kOpCountColumns; ++i) {
        const char* const from = at_row(c.columns[kOpCounts[i].bit], s.row);
        if (from && kOpCounts[i].merge == Merge::sum) add_counts(counts_[i].data() + s.slot, from, s.count);
    }
    for (unsigned i = 0; i < kOpValueColumns; ++i) {
        const char* const from = at_row(c.columns[kOpValues[i].bit], s.row);
        if (!from) continue;
        double* const into = values_[i].data() + s.slot;
        const Merge merge = kOpValues[i].merge;
        if (merge == Merge::sum) add_exactly(into, low_[i].data() + s.slot, from, s.count);
        if (merge == Merge::largest) keep_largest(into, from, s.count);
        if (merge == Merge::smallest) keep_smallest(into, from, s.count);
    }
}

void OpTable::keep_worst_at(std::size_t slot, bool loc, double value, const Place& here) {
    OpSum& sum = cold_[slot].sum;
    double& worst = loc ? sum.worst_loc_phi : sum.worst_cum_phi;
    keep_worst(worst, loc ? sum.worst_loc : sum.worst_cum, value, here);
    (loc ? worst_loc_ : worst_cum_)[slot] = worst;
}

void OpTable::add_measures(const OpColumns& c, const Stretch& s, Rank rank, std::optional<std::size_t> at) {
    auto from = [&](auto field) { return at_row(c.columns[bit_of(field)], s.row); };
    if (loc_.size() < s.count) loc_.resize(s.count), cum_.resize(s.count), flush_.resize(s.count);
    const char* const loc_compared = from(&OpRecord::loc_compared);
    const char* const compared = from(&OpRecord::compared);
    const double* const floor = floor_.data() + s.slot;
    if (loc_compared)
        phis(from(&OpRecord::loc_error_squares), from(&OpRecord::loc_squares), loc_compared, floor,
             loc_.data(), s.count);
    if (compared)
        phis(from(&OpRecord::error_squares), from(&OpRecord::twin_squares), compared, floor, cum_.data(),
             s.count);
    const ColumnOf<double> flushed{from(&OpRecord::flushed_abs)}, twin{from(&OpRecord::twin_abs)};
    const ColumnOf<std::uint64_t> firsts{from(&OpRecord::first)};
    for (std::size_t i = 0; i < s.count; ++i)
        flush_[i] = twin[i] <= 0 ? -1 : static_cast<float>(flushed[i] / twin[i]);
    const bool bad = may_be_nonfinite(c);
    const Place here{rank, c.step};
    for (std::size_t i = 0; i < s.count; ++i) {
        const std::size_t slot = s.slot + i;
        Cell cell;
        const double loc = loc_compared ? loc_[i] : -1, cum = compared ? cum_[i] : -1;
        if (!(loc < worst_loc_[slot])) keep_worst_at(slot, true, loc, here);
        if (!(cum < worst_cum_[slot])) keep_worst_at(slot, false, cum, here);
        if (!at) continue;
        // In floors of its own dtype the inherited error of an fp32 result would hide everything else.
        if (low_precision_[slot]) {
            cell.cum_phi = static_cast<float>(cum);
            cell.loc_phi = static_cast<float>(loc);
        }
        cell.flush = flush_[i];
        if (bad)
            cell.nonfinite =
                static_cast<std::uint32_t>(std::min<std::uint64_t>(nonfinite(c, s.row + i), 0xffffffffu));
        map_.keep(map_rows_[slot], *at, firsts[i], cell);
    }
}

void OpTable::add_origins(const OpColumns& c, const NameList& list, const Stretch& s, Rank rank) {
    const auto origins = column(c, &OpRecord::origins);
    if (!origins.at) return;
    for (std::size_t i = 0; i < s.count; ++i) {
        if (origins[s.row + i] == 0) continue;
        keep_origin(cold_[s.slot + i].sum, {rank, c.step}, record_of(c, s.row + i, list));
    }
}

void OpTable::add_stillness(const OpColumns& c, const Stretch& s) {
    const auto added = column(c, &OpRecord::added), absorbed = column(c, &OpRecord::absorbed);
    if (!added.at) return;
    for (std::size_t i = 0; i < s.count; ++i) {
        if (added[s.row + i] == 0) continue;
        OpSum& sum = cold_[s.slot + i].sum;
        if (absorbed[s.row + i] < added[s.row + i]) {
            sum.last_moved = std::max(sum.last_moved, c.step);
            continue;
        }
        ++sum.still;
        keep_earliest(sum.first_still, c.step);
    }
}

void OpTable::keep_first(std::size_t slot, const Earliest& other, const std::string& source, bool guessed) {
    earliest_[slot] = other;
    OpRecord& total = cold_[slot].sum.total;
    total.source = source;
    total.guessed = guessed;
}

void OpTable::note_first(const OpColumns& c, const NameList& list, Rank rank) {
    const auto firsts = column(c, &OpRecord::first);
    for (const Stretch& s : stretches_) {
        for (std::size_t i = 0; i < s.count; ++i) {
            const std::size_t row = s.row + i;
            const Earliest& e = earliest_[s.slot + i];
            if (e.seen && std::tuple(c.step, firsts[row], rank) >= std::tuple(e.step, e.first, e.rank))
                continue;
            keep_first(s.slot + i, {true, c.step, firsts[row], rank}, text_of(c.rows[row].source, list),
                       c.rows[row].guessed);
        }
    }
    fresh_ = false;
    latest_first_ = {};
    for (const Earliest& e : earliest_) {
        fresh_ = fresh_ || !e.seen;
        latest_first_ = std::max(latest_first_, e.step);
    }
}

void OpTable::merge(const OpTable& other, Interner& names, const Interner& theirs) {
    map_.merge(other.map_);
    left_out_ += other.left_out_;
    for (std::size_t from = 0; from < other.keys_.size(); ++from) {
        Key key = other.keys_[from];
        key.layer = names.id(theirs.text(key.layer));
        key.op = names.id(theirs.text(key.op));
        const Earliest& theirs_first = other.earliest_[from];
        const std::size_t slot = slot_of(key, names, theirs_first.first);
        if (slot == kNone) {
            ++left_out_;
            continue;
        }
        for (unsigned i = 0; i < kOpCountColumns; ++i) counts_[i][slot] += other.counts_[i][from];
        for (unsigned i = 0; i < kOpValueColumns; ++i) {
            double& into = values_[i][slot];
            const double value = other.values_[i][from];
            if (kOpValues[i].merge == Merge::sum) {
                ExactSum sum{into, low_[i][slot]};
                sum.add(ExactSum{value, other.low_[i][from]});
                into = sum.high;
                low_[i][slot] = sum.low;
            } else {
                into = kOpValues[i].merge == Merge::smallest ? smaller_above_zero(into, value)
                                                             : larger(into, value);
            }
        }
        const OpSum& o = other.cold_[from].sum;
        const Earliest& mine = earliest_[slot];
        if (theirs_first.seen &&
            (!mine.seen || std::tuple(theirs_first.step, theirs_first.first, theirs_first.rank) <
                               std::tuple(mine.step, mine.first, mine.rank)))
            keep_first(slot, theirs_first, o.total.source, o.total.guessed);
        latest_first_ = std::max(latest_first_, earliest_[slot].step);
        if (o.at_origin.origins) keep_origin(cold_[slot].sum, o.first_origin, o.at_origin);
        OpSum& sum_here = cold_[slot].sum;
        sum_here.still += o.still;
        keep_earliest(sum_here.first_still, o.first_still);
        sum_here.last_moved = std::max(sum_here.last_moved, o.last_moved);
        keep_worst_at(slot, true, o.worst_loc_phi, o.worst_loc);
        keep_worst_at(slot, false, o.worst_cum_phi, o.worst_cum);
        const std::vector<std::uint64_t>& bits = other.cold_[from].ranks;
        std::vector<std::uint64_t>& into = cold_[slot].ranks;
        if (into.size() < bits.size()) into.resize(bits.size());
        for (std::size_t i = 0; i < bits.size(); ++i) into[i] |= bits[i];
    }
}

OpRecord OpTable::totals(std::size_t slot) const {
    OpRecord r = cold_[slot].sum.total;
    for (unsigned i = 0; i < kOpCountColumns; ++i) {
        if (kOpCounts[i].merge == Merge::sum) r.*kOpCounts[i].field = counts_[i][slot];
    }
    for (unsigned i = 0; i < kOpValueColumns; ++i)
        r.*kOpValues[i].field = ExactSum{values_[i][slot], low_[i][slot]}.value();
    r.first = earliest_[slot].first;
    return r;
}

void OpTable::put(RunModel& m) const {
    for (std::size_t slot = 0; slot < keys_.size(); ++slot) {
        if (!earliest_[slot].seen) continue;
        OpSum sum = cold_[slot].sum;
        sum.total = totals(slot);
        sum.first_step = earliest_[slot].step;
        std::uint64_t ranks = 0;
        for (const std::uint64_t bits : cold_[slot].ranks)
            ranks += static_cast<std::uint64_t>(std::popcount(bits));
        sum.ranks = std::max<std::uint64_t>(ranks, 1);
        m.ops.push_back(std::move(sum));
    }
    std::sort(m.ops.begin(), m.ops.end(), [](const OpSum& a, const OpSum& b) {
        return std::tie(a.total.phase, a.total.first, a.total.layer, a.total.op, a.total.dtype) <
               std::tie(b.total.phase, b.total.first, b.total.layer, b.total.op, b.total.dtype);
    });
    m.column_steps = map_.column_steps();
    m.map = map_.sorted();
}

}  // namespace mp::trace
