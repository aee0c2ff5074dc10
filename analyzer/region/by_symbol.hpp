#pragma once

// Maps with a Symbol as key. Symbol ids are dense, so the maps are arrays: lookup needs no hash,
// and destruction frees one block.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "kernels/base/symbol.hpp"

namespace mp::lint {

template <class T>
class BySymbol {
public:
    // T{} for a key that was never set.
    T get(Symbol key) const { return key.id() < values_.size() ? values_[key.id()] : T{}; }
    // Valid until the next new key.
    T& operator[](Symbol key) {
        // Grows to all Symbols at once: most maps are filled for many keys.
        if (key.id() >= values_.size()) values_.resize(std::max(key.id() + 1, Symbol::count()));
        return values_[key.id()];
    }

private:
    std::vector<T> values_;
};

// Many values per Symbol. The values of one Symbol keep the order in which they were added.
template <class T>
class GroupsBySymbol {
public:
    GroupsBySymbol() = default;
    explicit GroupsBySymbol(const std::vector<std::pair<Symbol, T>>& all) : values_(all.size()) {
        for (const auto& entry : all)
            if (groups_[entry.first].size++ == 0) keys_.push_back(entry.first);
        std::uint32_t end = 0;
        for (const Symbol key : keys_) {
            Group& group = groups_[key];
            group.first = end += group.size;
        }
        for (std::size_t i = all.size(); i-- > 0;) values_[--groups_[all[i].first].first] = all[i].second;
    }

    // Distinct keys, in the order of their first value.
    const std::vector<Symbol>& keys() const { return keys_; }
    std::span<const T> get(Symbol key) const {
        const Group group = groups_.get(key);
        return std::span(values_).subspan(group.first, group.size);
    }

private:
    struct Group {
        std::uint32_t first = 0;
        std::uint32_t size = 0;
    };
    BySymbol<Group> groups_;
    std::vector<Symbol> keys_;
    std::vector<T> values_;
};

}  // namespace mp::lint
