#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "runtime/fold/exact_sum.hpp"
#include "runtime/fold/interner.hpp"
#include "runtime/fold/layer_map.hpp"

namespace mp::trace {

// Hostile recordings name more; a real run has a few ops in each of some thousand layers.
inline constexpr std::size_t kMaxOps = 200'000;
inline constexpr std::size_t kMaxRankBits = 65'536;

// The error in one-rounding floors of `dtype`; -1: nothing was compared.
double phi_of(double error_squares, double squares, std::uint64_t compared, DType dtype);

// Sums of ops, a slot for each (layer, op, phase, dtype). Sums are kept by column, as the frames hold them: where
// the ops of a step have neighbouring slots, which is nearly always, adding a step is adding arrays.
class OpTable {
public:
    explicit OpTable(std::size_t columns) : map_(columns) {}

    void begin();  // another recording, or its rank has become known
    void add(const OpColumns&, Interner&, const NameList&, Rank);
    void merge(const OpTable&, Interner&, const Interner& others);
    void put(RunModel&) const;
    std::uint64_t left_out() const { return left_out_; }

private:
    struct Key {
        std::uint32_t layer = 0, op = 0;
        Phase phase = Phase::unknown;
        DType dtype = DType::unknown;
        friend bool operator==(const Key&, const Key&) = default;
    };
    struct KeyHash {
        std::size_t operator()(const Key& k) const {
            std::uint64_t x = std::uint64_t{k.layer} << 32 | k.op;
            x = (x ^ static_cast<std::uint64_t>(k.phase) << 29 ^ static_cast<std::uint64_t>(k.dtype) << 59) *
                0x9e3779b97f4a7c15u;
            return static_cast<std::size_t>(x ^ x >> 32);
        }
    };
    struct Earliest {
        bool seen = false;
        Step step;
        std::uint64_t first = 0;
        Rank rank;
    };
    // Rows [row, row + count) of a frame belong to slots [slot, slot + count).
    struct Stretch {
        std::size_t row, slot, count;
    };
    // What is rarely touched.
    struct Cold {
        OpSum sum;
        std::vector<std::uint64_t> ranks;  // a bit each
    };
    static constexpr std::size_t kNone = ~std::size_t{0};

    void bind(const OpColumns&, Interner&, const NameList&, Rank);
    std::size_t slot_of(const Key&, const Interner&, std::uint64_t first);
    std::size_t new_slot(const Key&, const Interner&, std::uint64_t first);
    void add_sums(const OpColumns&, const Stretch&);
    void add_measures(const OpColumns&, const Stretch&, Rank, std::optional<std::size_t> column);
    void add_origins(const OpColumns&, const NameList&, const Stretch&, Rank);
    void add_stillness(const OpColumns&, const Stretch&);
    void note_first(const OpColumns&, const NameList&, Rank);
    void keep_first(std::size_t slot, const Earliest&, const std::string& source, bool guessed);
    void keep_worst_at(std::size_t slot, bool loc, double value, const Place&);
    OpRecord totals(std::size_t slot) const;

    std::vector<Key> keys_;
    std::unordered_map<Key, std::size_t, KeyHash> slots_;
    std::array<std::vector<std::uint64_t>, kOpCountColumns> counts_;
    std::array<std::vector<double>, kOpValueColumns> values_;  // extremes, and the high parts of sums
    std::array<std::vector<double>, kOpValueColumns> low_;     // of sums alone
    std::vector<double> floor_, worst_loc_, worst_cum_;
    std::vector<char> low_precision_;
    std::vector<std::size_t> map_rows_;
    std::vector<Earliest> earliest_;
    Step latest_first_;   // no op was first seen later
    bool fresh_ = false;  // some op was not seen before
    std::vector<Cold> cold_;
    LayerMap map_;
    std::uint64_t left_out_ = 0;

    // How the rows of the recording's latest frame map to slots.
    bool bound_ = false;
    std::uint64_t bound_version_ = 0;
    std::vector<Stretch> stretches_;
    std::vector<std::size_t> row_slots_;  // also of the recording before: where to look first
    std::uint64_t bound_left_out_ = 0;
    std::vector<double> loc_, cum_;
    std::vector<float> flush_;
};

}  // namespace mp::trace
