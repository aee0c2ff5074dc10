#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <compare>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace mp {

// An interned string: 4 bytes, compared and hashed by id. The empty string is id 0.
// The text lives for the whole process, so a Symbol and its view never dangle.
// Interning takes a lock; reading the text of a Symbol does not. Order is by id (creation, which with
// several threads is another one every time), not alphabetical: sort by str() where people see it.
class Symbol {
public:
    constexpr Symbol() = default;
    explicit Symbol(std::string_view text);

    std::string_view str() const {
        const auto [chunk, offset] = place(id_);
        return views_[chunk].load(std::memory_order_acquire)[offset];
    }
    bool empty() const { return id_ == 0; }
    std::uint32_t id() const { return id_; }

    // Ids are below this, of all that there are now.
    static std::uint32_t count();
    // Symbol(texts[i]) as out[i], for many: quicker than one by one, which waits for memory each time.
    static void intern(std::span<const std::string_view> texts, std::span<Symbol> out);

    friend auto operator<=>(Symbol, Symbol) = default;

private:
    friend class SymbolTable;

    // Views of the texts stand in chunks that double in size and never move, so str() needs no lock,
    // and a Symbol only exists after its view does.
    static constexpr std::uint32_t kFirstChunk = 1024;
    static constexpr std::size_t kChunks = 22;  // 1024 * (2^22 - 1) texts

    struct Place {
        std::uint32_t chunk = 0;
        std::uint32_t offset = 0;
    };
    // Chunk k holds the ids from 1024 * (2^k - 1) on.
    static constexpr Place place(std::uint32_t id) {
        const std::uint32_t shifted = id + kFirstChunk;
        const std::uint32_t start = std::bit_floor(shifted);
        return {.chunk = static_cast<std::uint32_t>(std::countr_zero(start / kFirstChunk)),
                .offset = shifted - start};
    }

    static std::array<std::atomic<std::string_view*>, kChunks> views_;

    std::uint32_t id_ = 0;
};

inline std::string operator+(std::string left, Symbol right) { return left.append(right.str()); }

}  // namespace mp

template <>
struct std::hash<mp::Symbol> {
    std::size_t operator()(mp::Symbol s) const noexcept { return s.id(); }
};
