#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include "runtime/trace/records.hpp"

namespace mp::trace {

// The columns of 8 bytes in an ops frame, from the field list of OpRecord. Bits of the mask, in order: the counts and
// then the values of generations 0 and 1, the exponents, then the fields of later generations in the order of the list.

namespace columns {

constexpr bool is_column(const auto& member) {
    using Member = std::remove_cvref_t<decltype(member)>;
    return std::is_same_v<Member, std::uint64_t OpRecord::*> || std::is_same_v<Member, double OpRecord::*>;
}

constexpr unsigned count(auto wanted) {
    unsigned n = 0;
    fields([&](const Field& f, auto member) { n += is_column(member) && wanted(f, member); }, Of<OpRecord>{});
    return n;
}
template <class T>
constexpr unsigned count_of() {
    return count([](const Field&, auto member) { return std::is_same_v<decltype(member), T OpRecord::*>; });
}
constexpr bool is_early(const Field& f) { return f.generation < 2; }

}  // namespace columns

template <class T>
struct OpColumn {
    T OpRecord::* field = nullptr;
    Merge merge = Merge::sum;
    unsigned bit = 0;
};

inline constexpr unsigned kOpCountColumns = columns::count_of<std::uint64_t>();
inline constexpr unsigned kOpValueColumns = columns::count_of<double>();
// The bit of the byte string that contains the exponents of the rows that have them.
inline constexpr unsigned kExponentsBit =
    columns::count([](const Field& f, auto) { return columns::is_early(f); });
inline constexpr unsigned kOpBits = kOpCountColumns + kOpValueColumns + 1;
static_assert(kExponentsBit == 31 && kOpBits <= 64);

namespace columns {

// All columns of one type, in the order of their bits. `base`: the bit of its first early one.
template <class T, std::size_t N>
constexpr std::array<OpColumn<T>, N> table(unsigned base) {
    std::array<OpColumn<T>, N> out{};
    std::size_t at = 0;
    for (unsigned generation = 0; generation < 2; ++generation) {
        fields(
            [&](const Field& f, auto member) {
                if constexpr (std::is_same_v<decltype(member), T OpRecord::*>) {
                    if (f.generation == generation) out[at++] = {member, f.merge, base++};
                }
            },
            Of<OpRecord>{});
    }
    unsigned bit = kExponentsBit + 1;
    stored_fields<OpRecord>([&](const Field& f, auto member) {
        if (!is_column(member) || is_early(f)) return;
        if constexpr (std::is_same_v<decltype(member), T OpRecord::*>) out[at++] = {member, f.merge, bit};
        ++bit;
    });
    return out;
}
constexpr unsigned early_counts() {
    return count([](const Field& f, auto member) {
        return is_early(f) && std::is_same_v<decltype(member), std::uint64_t OpRecord::*>;
    });
}

}  // namespace columns

inline constexpr auto kOpCounts = columns::table<std::uint64_t, kOpCountColumns>(0);
inline constexpr auto kOpValues = columns::table<double, kOpValueColumns>(columns::early_counts());

// The column of each bit; the one of kExponentsBit is not used.
struct OpColumnAt {
    bool value = false;  // in kOpValues, else in kOpCounts
    unsigned index = 0;
};
inline constexpr std::array<OpColumnAt, kOpBits> kOpColumns = [] {
    std::array<OpColumnAt, kOpBits> out{};
    for (unsigned i = 0; i < kOpCountColumns; ++i) out[kOpCounts[i].bit] = {false, i};
    for (unsigned i = 0; i < kOpValueColumns; ++i) out[kOpValues[i].bit] = {true, i};
    return out;
}();

// The index of a field in kOpCounts or kOpValues, and its bit.
constexpr unsigned index_of(std::uint64_t OpRecord::* field) {
    unsigned at = 0;
    while (kOpCounts[at].field != field) ++at;
    return at;
}
constexpr unsigned bit_of(std::uint64_t OpRecord::* field) { return kOpCounts[index_of(field)].bit; }
constexpr unsigned bit_of(double OpRecord::* field) {
    unsigned at = 0;
    while (kOpValues[at].field != field) ++at;
    return kOpValues[at].bit;
}

}  // namespace mp::trace
