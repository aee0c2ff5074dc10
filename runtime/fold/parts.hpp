#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>

#include "runtime/fold/run_model.hpp"

// How each part of a model is merged with another of its kind. Ties go to the earlier step, then to the lower
// rank, so that the order of reading never shows.

namespace mp::trace {

// The doubles of a record that are added up, from its field list. They are added in ExactSums.
template <class Record>
inline constexpr auto kDoubleSums = [] {
    constexpr auto each = [](auto&& v) {
        fields(
            [&v](const Field& f, auto member) {
                if constexpr (std::is_same_v<decltype(member), double Record::*>) {
                    if (f.merge == Merge::sum) v(member);
                }
            },
            Of<Record>{});
    };
    constexpr std::size_t count = [each] {
        std::size_t n = 0;
        each([&n](auto) { ++n; });
        return n;
    }();
    std::array<double Record::*, count> out{};
    std::size_t at = 0;
    each([&](double Record::* member) { out[at++] = member; });
    return out;
}();

// The words of two lists "a, b", each once, in their order.
inline std::string united(const std::string& a, const std::string& b) {
    std::set<std::string> words;
    for (const std::string* list : {&a, &b})
        for (std::size_t at = 0; at < list->size();) {
            const std::size_t end = std::min(list->find(", ", at), list->size());
            words.insert(list->substr(at, end - at));
            at = end + 2;
        }
    std::string out;
    for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
    return out;
}

// The texts of a collective: any one place, the first in their order, and all algorithms.
inline void keep_texts(CollectiveRecord& into, const CollectiveRecord& from) {
    if (into.memory.empty() || (!from.memory.empty() && from.memory < into.memory)) into.memory = from.memory;
    if (into.algorithms != from.algorithms) into.algorithms = united(into.algorithms, from.algorithms);
}

// Merges all else as the field list says: counts, extremes, and what has to agree.
template <class Record>
void merge_fields(Record& into, const Record& other) {
    fields(
        [&](const Field& f, auto member) {
            auto& to = into.*member;
            const auto& from = other.*member;
            using T = std::remove_cvref_t<decltype(to)>;
            if constexpr (std::is_same_v<T, double>) {
                if (f.merge == Merge::largest) to = larger(to, from);
                if (f.merge == Merge::smallest) to = smaller_above_zero(to, from);
            } else if constexpr (std::is_same_v<T, std::uint64_t>) {
                if (f.merge == Merge::sum) to += from;
                if (f.merge == Merge::largest) to = std::max(to, from);
                if (f.merge == Merge::agree && to != from) to = 0;
            } else if constexpr (std::is_enum_v<T>) {
                if (f.merge == Merge::largest) to = std::max(to, from);
            }
        },
        Of<Record>{});
}

// The relative L2 error from sums of squares; 0/0 is 0, a NaN stays one.
inline double relative_error(double error_squares, double squares) {
    return error_squares == 0 ? 0 : std::sqrt(error_squares / squares);
}

inline bool earlier(const Place& a, const Place& b) {
    return std::tuple(a.step, a.rank) < std::tuple(b.step, b.rank);
}

inline bool precedes(const Place& a, const Member& whose, const Place& b, const Member& other) {
    return std::tie(a.step, a.rank, whose.communicator, whose.rank) <
           std::tie(b.step, b.rank, other.communicator, other.rank);
}

// The worse value and where it was seen. A NaN is the worst; a value below 0 was not measured.
inline void keep_worst(double& worst, Place& at, double value, const Place& where) {
    if (value < 0 || is_worse(worst, value)) return;
    if (!is_worse(value, worst) && at.step.known() && !earlier(where, at)) return;
    worst = larger(value, value);  // the one NaN
    at = where;
}

inline void keep_earliest(Step& kept, Step other) {
    if (other.known() && (!kept.known() || other < kept)) kept = other;
}
inline void keep_earliest(Place& kept, const Place& other) {
    if (other.step.known() && (!kept.step.known() || earlier(other, kept))) kept = other;
}

inline void keep_lost(CollectiveTotal& into, const Place& at, const Member& whose) {
    if (!at.step.known()) return;
    if (into.first_lost.step.known() && !precedes(at, whose, into.first_lost, into.lost_by)) return;
    into.first_lost = at;
    into.lost_by = whose;
}

inline void keep_worse(Cell& into, const Cell& other) {
    into.cum_phi = larger(into.cum_phi, other.cum_phi);
    into.loc_phi = larger(into.loc_phi, other.loc_phi);
    into.flush = larger(into.flush, other.flush);
    into.nonfinite = std::max(into.nonfinite, other.nonfinite);
}

inline void keep_origin(OpSum& into, const Place& where, const OpRecord& r) {
    const bool none = into.at_origin.origins == 0;
    const auto order = [](const Place& p, const OpRecord& o) {
        return std::tuple(p.step, o.first_origin, p.rank,
                          std::isnan(o.input_amax) ? -HUGE_VAL : -o.input_amax);
    };
    if (!none && order(into.first_origin, into.at_origin) <= order(where, r)) return;
    into.first_origin = where;
    into.at_origin = r;
    into.total.first_origin = r.first_origin;
}

// Sorts ops by their time in a step: by phase, then by ordinal. Ordinals of two ranks cannot be compared.
inline std::tuple<bool, Phase, std::uint64_t, Rank> origin_order(const OpRecord& op, Rank rank) {
    return {op.phase == Phase::unknown, op.phase, op.first_origin, rank};
}

// Elements summed over ranks, of the last step that said it.
inline void merge_place(PlaceTotal& into, const PlaceTotal& other) {
    keep_earliest(into.first_step, other.first_step);
    if (other.last_step < into.last_step) return;
    if (other.last_step > into.last_step) {
        into.place.tensors = other.place.tensors;
        into.place.elements = other.place.elements;
        into.last_step = other.last_step;
    } else {
        merge_fields(into.place, other.place);
    }
}

}  // namespace mp::trace
