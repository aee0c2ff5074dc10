#pragma once

#include <compare>
#include <functional>
#include <string_view>

#include "kernels/numerics/symbol.hpp"

namespace mp {

// The place of a layer in its model, "encoder.layers.3.attn"; interned, so 4 bytes. Empty: the model
// itself. Order is that of Symbol, by creation.
class LayerPath {
public:
    constexpr LayerPath() = default;
    // Empty parts ("a..b", ".a") are dropped, so that one place has one path.
    explicit LayerPath(std::string_view dotted);

    std::string_view str() const { return path_.str(); }
    bool is_root() const { return path_.empty(); }
    LayerPath parent() const;        // of the root: the root
    std::string_view leaf() const;   // "attn"; of the root: empty
    int depth() const;               // number of parts
    LayerPath append(std::string_view part) const;  // a part that has dots adds several
    // Whether the other is this or lies below it.
    bool contains(LayerPath other) const;

    friend auto operator<=>(LayerPath, LayerPath) = default;

private:
    friend struct std::hash<LayerPath>;
    Symbol path_;
};

}  // namespace mp

template <>
struct std::hash<mp::LayerPath> {
    std::size_t operator()(mp::LayerPath p) const noexcept { return p.path_.id(); }
};
