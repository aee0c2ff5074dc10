#pragma once

#include <exception>
#include <string>
#include <utility>
#include <variant>

namespace mp {

// What went wrong (what and where) and, when known, what to do about it.
struct Error {
    std::string message;
    std::string hint;
};

// A value or an Error. Member names follow std::expected (C++23), so the swap is mechanical.
// Reading the wrong alternative is our own mistake and terminates.
template <typename T>
class [[nodiscard]] Result {
public:
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

    bool has_value() const noexcept { return state_.index() == 0; }
    explicit operator bool() const noexcept { return has_value(); }

    T& value() & { return *checked<0>(); }
    const T& value() const& { return *const_cast<Result*>(this)->template checked<0>(); }
    T&& value() && { return std::move(*checked<0>()); }
    T& operator*() & { return value(); }
    const T& operator*() const& { return value(); }
    T&& operator*() && { return std::move(*this).value(); }
    T* operator->() { return &value(); }
    const T* operator->() const { return &value(); }

    const Error& error() const { return *const_cast<Result*>(this)->template checked<1>(); }

private:
    template <std::size_t I>
    auto* checked() noexcept {
        auto* it = std::get_if<I>(&state_);
        if (!it) std::terminate();
        return it;
    }

    std::variant<T, Error> state_;
};

// Success or an Error, for work that has no value to return.
struct Done {};
using Status = Result<Done>;

}  // namespace mp
