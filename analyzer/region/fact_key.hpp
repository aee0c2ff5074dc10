#pragma once

// A key for a part of a fact: parameter 2 of a function, item 1 of a call.

#include <cstddef>
#include <cstdint>
#include <functional>

namespace mp::lint {

struct FactKey {
    const void* fact = nullptr;  // address of a Function, Call or Item
    std::int32_t index = 0;
    friend bool operator==(const FactKey&, const FactKey&) = default;
};

struct FactKeyHash {
    std::size_t operator()(const FactKey& k) const noexcept {
        return std::hash<const void*>()(k.fact) * 31 + static_cast<std::size_t>(k.index);
    }
};

}  // namespace mp::lint
