#pragma once

// Answers by a part of a fact: parameter 2 of a function, item 1 of a call.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

namespace mp::lint {

struct FactKey {
    const void* fact = nullptr;  // address of a Function, Call, Operand or Item; never null
    std::int32_t index = 0;
    friend bool operator==(const FactKey&, const FactKey&) = default;

    std::uint64_t hash() const {
        constexpr std::uint64_t kMultiplier = 0x9E3779B97F4A7C15U;
        return (reinterpret_cast<std::uintptr_t>(fact) + static_cast<std::uint32_t>(index)) * kMultiplier;
    }
};

// A hash table without a node per entry: a large program has 100,000 answers, and each question looks here first.
template <class Value>
class FactMap {
public:
    // The value of the key, and whether it is new. It stays in its place while others are added.
    std::pair<Value&, bool> try_emplace(FactKey key, Value fallback = {}) {
        if ((values_.size() + 1) * 2 > cells_.size()) grow();
        Cell& cell = cell_of(key);
        const bool is_new = cell.key.fact == nullptr;
        if (is_new) {
            cell = {key, static_cast<std::uint32_t>(values_.size())};
            values_.push_back(std::move(fallback));
        }
        return {values_[cell.value], is_new};
    }

    // nullptr: there is none.
    const Value* find(FactKey key) const {
        if (cells_.empty()) return nullptr;
        const Cell& cell = cells_[place_of(key)];
        return cell.key.fact == nullptr ? nullptr : &values_[cell.value];
    }

    void clear() {
        cells_.clear();
        values_.clear();
    }

private:
    static constexpr std::size_t kFirstCells = 256;
    struct Cell {
        FactKey key;
        std::uint32_t value = 0;  // index in values_
    };

    // Of the key's cell, or of the empty one where it belongs.
    std::size_t place_of(FactKey key) const {
        std::size_t at = (key.hash() >> 32) & (cells_.size() - 1);
        while (cells_[at].key.fact != nullptr && cells_[at].key != key) at = (at + 1) & (cells_.size() - 1);
        return at;
    }
    Cell& cell_of(FactKey key) { return cells_[place_of(key)]; }

    void grow() {
        std::vector<Cell> old(cells_.empty() ? kFirstCells : cells_.size() * 2);
        old.swap(cells_);
        for (const Cell& cell : old)
            if (cell.key.fact != nullptr) cell_of(cell.key) = cell;
    }

    std::vector<Cell> cells_;  // a power of two of them, at most half of them in use
    std::deque<Value> values_;
};

}  // namespace mp::lint
