#pragma once

// A map from symbols to small numbers, for the many small scopes of a file: one array, no node per entry,
// and no allocation while it is empty.

#include <cstdint>
#include <vector>

#include "kernels/base/symbol.hpp"

namespace mp::lint::python {

class FlatMap {
public:
    static constexpr std::uint32_t kAbsent = ~std::uint32_t{0};

    std::uint32_t find(Symbol key) const {
        if (cells_.empty()) return kAbsent;
        for (std::size_t i = place(key);; i = (i + 1) & (cells_.size() - 1)) {
            if (cells_[i].key == key) return cells_[i].value;
            if (cells_[i].key.empty()) return kAbsent;
        }
    }

    // The key must be non-empty and new.
    void insert(Symbol key, std::uint32_t value) {
        if ((size_ + 1) * 4 > cells_.size() * 3) grow();
        put({key, value});
        ++size_;
    }

    std::size_t size() const { return size_; }

private:
    struct Cell {
        Symbol key;
        std::uint32_t value = 0;
    };

    std::size_t place(Symbol key) const { return (key.id() * 0x9E3779B1u) & (cells_.size() - 1); }
    void put(Cell cell) {
        std::size_t i = place(cell.key);
        while (!cells_[i].key.empty()) i = (i + 1) & (cells_.size() - 1);
        cells_[i] = cell;
    }
    void grow() {
        std::vector<Cell> old(cells_.empty() ? 8 : cells_.size() * 2);
        old.swap(cells_);
        for (const Cell& cell : old)
            if (!cell.key.empty()) put(cell);
    }

    std::vector<Cell> cells_;
    std::size_t size_ = 0;
};

}  // namespace mp::lint::python
