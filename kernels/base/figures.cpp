#include "kernels/base/figures.hpp"

#include <array>
#include <charconv>
#include <cmath>

namespace mp {
namespace {

std::string with_precision(double value, std::chars_format format, int digits) {
    std::array<char, 64> buffer{};
    const auto [end, error] =
        std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format, digits);
    return error == std::errc() ? std::string(buffer.data(), end) : std::string("?");
}

std::string grouped(std::string digits) {
    const std::size_t first = digits.starts_with('-') ? 1 : 0;
    for (std::size_t at = digits.size(); at > first + 3;) {
        at -= 3;
        digits.insert(at, 1, ',');
    }
    return digits;
}

}  // namespace

std::string figure(double value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
    const double size = std::fabs(value);
    if (size < 1e9 && size == std::floor(size))
        return grouped(with_precision(value, std::chars_format::fixed, 0));
    if (size >= 1000 && size < 1e9) return grouped(with_precision(value, std::chars_format::fixed, 0));
    return with_precision(value, std::chars_format::general, 3);
}

std::string percent(double share) {
    const double value = 100 * share;
    if (!std::isfinite(value)) return figure(value) + " %";
    if (value == 0 || std::fabs(value) >= 10)
        return with_precision(value, std::chars_format::fixed, 0) + " %";
    return with_precision(value, std::chars_format::general, 2) + " %";
}

std::string phi(double floors) {
    if (!std::isfinite(floors)) return figure(floors) + " φ";
    return (floors < 100 ? with_precision(floors, std::chars_format::fixed, 1) : figure(std::round(floors))) +
           " φ";
}

std::string counted(std::uint64_t n, std::string_view noun) {
    return grouped(std::to_string(n)) + " " + std::string(noun) + (n == 1 ? "" : "s");
}

}  // namespace mp
