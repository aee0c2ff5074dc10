#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace mp {

// An interned string: 4 bytes, compared and hashed by id. The empty string is id 0.
// The text lives for the whole process, so a Symbol and its view never dangle.
// Interning takes a lock; reading the text of a Symbol does not. Order is by id (creation), not
// alphabetical: sort by str() where people see the result.
class Symbol {
public:
    constexpr Symbol() = default;
    explicit Symbol(std::string_view text);

    std::string_view str() const;
    bool empty() const { return id_ == 0; }
    std::uint32_t id() const { return id_; }

    friend auto operator<=>(Symbol, Symbol) = default;

private:
    std::uint32_t id_ = 0;
};

inline std::string operator+(std::string left, Symbol right) { return left.append(right.str()); }

}  // namespace mp

template <>
struct std::hash<mp::Symbol> {
    std::size_t operator()(mp::Symbol s) const noexcept { return s.id(); }
};
