#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

// The vocabulary of the field lists in records.hpp. Each record has one list, fields(visitor, Of<Record>), and the
// encoder, the decoder, the dump, the fold and the JSON report follow it. A visitor is called once per field:
//   v(Field{"seeds", sum}, &Coverage::seeds)
//
// To add a field to a record: add the member to the struct, add the line to the end of its list with the next
// generation, and name it in docs/trace_format.md. Tests compare the list with the struct and with the document.

namespace mp::trace {

// How two values of a field are merged when recordings are folded.
enum class Merge : std::uint8_t {
    key,       // the same in all records that are merged
    sum,       // doubles use runtime/fold/exact_sum.hpp, so that the order does not matter
    largest,   // a NaN is the largest
    smallest,  // above zero; a NaN is the smallest
    agree,     // 0 where they differ
    place,     // belongs to one record; the fold keeps it with the rank and step of that record
};

// How `mp-trace dump` shows a field.
enum class Show : std::uint8_t { keyed, bare, hidden };

// The line of `mp-trace dump` that shows a field of an op.
enum class Part : std::uint8_t { all, cum, loc, sums };

struct Field {
    std::string_view name;
    Merge merge = Merge::key;
    // Generation 0 is what version 1 of the format had. In a recording all fields of a generation come before those
    // of the next one, so a reader of an older file reads the fields it has and leaves the rest at their defaults.
    unsigned generation = 0;
    Show show = Show::keyed;
    Part part = Part::all;
    int bit = -1;         // in the byte of flags that is stored where bit 0 is; -1: not a flag
    bool stored = true;   // in the payload of its record; false: in a separate frame
    bool report = false;  // in the JSON report under its own name; of coverage every field is

    constexpr Field since(unsigned v) const {
        Field f = *this;
        f.generation = v;
        return f;
    }
    constexpr Field bare() const {
        Field f = *this;
        f.show = Show::bare;
        return f;
    }
    constexpr Field hidden() const {
        Field f = *this;
        f.show = Show::hidden;
        return f;
    }
    constexpr Field in(Part v) const {
        Field f = *this;
        f.part = v;
        return f;
    }
    constexpr Field flag(int v) const {
        Field f = *this;
        f.bit = v;
        return f;
    }
    constexpr Field elsewhere() const {
        Field f = *this;
        f.stored = false;
        return f;
    }
    constexpr Field reported() const {
        Field f = *this;
        f.report = true;
        return f;
    }
};

template <class Record>
struct Of {};

// How many generations the list of a record has.
template <class Record>
constexpr unsigned generations() {
    unsigned last = 0;
    fields([&last](const Field& f, auto) { last = std::max(last, f.generation); }, Of<Record>{});
    return last + 1;
}

// Calls v(field, member) for the stored fields in the order in which a recording holds them.
template <class Record, class V>
constexpr void stored_fields(V&& v) {
    for (unsigned g = 0; g < generations<Record>(); ++g) {
        fields(
            [&](const Field& f, auto member) {
                if (f.stored && f.generation == g) v(f, member);
            },
            Of<Record>{});
    }
}

// One policy for NaN: a NaN is the worst value, so it wins every comparison. The result has the same bits
// for every order of NaNs.
inline double larger(double a, double b) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
    return a < b ? b : a;
}
inline float larger(float a, float b) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<float>::quiet_NaN();
    return a < b ? b : a;
}
inline double smaller(double a, double b) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
    return b < a ? b : a;
}
// Values of 0 and below mean "not measured".
inline double smaller_above_zero(double a, double b) {
    if (a <= 0) return b;
    return b <= 0 ? a : smaller(a, b);
}
// Whether `value` takes the place of `worst`; equal values and two NaNs do not.
inline bool is_worse(double value, double worst) {
    return !std::isnan(worst) && (std::isnan(value) || value > worst);
}

}  // namespace mp::trace
