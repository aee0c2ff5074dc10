#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace mp {

// An index into a table, distinct for each Tag: a layer's index is never taken for a tensor's.
//     struct LayerTag;  using LayerId = Id<LayerTag>;
// The default is `none`, which no table uses.
template <typename Tag>
class Id {
public:
    constexpr Id() = default;
    constexpr explicit Id(std::size_t index) : value_(static_cast<std::uint32_t>(index)) {}

    constexpr bool known() const { return value_ != kNone; }
    constexpr std::uint32_t value() const { return value_; }
    friend constexpr auto operator<=>(Id, Id) = default;

private:
    static constexpr std::uint32_t kNone = UINT32_MAX;
    std::uint32_t value_ = kNone;
};

}  // namespace mp

template <typename Tag>
struct std::hash<mp::Id<Tag>> {
    std::size_t operator()(mp::Id<Tag> id) const noexcept { return id.value(); }
};
