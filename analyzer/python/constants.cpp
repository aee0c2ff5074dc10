#include "analyzer/python/constants.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace mp::lint::python {
namespace {

constexpr double kExact = 9007199254740992.0;  // 2^53: integers up to here are exact

std::optional<Number> whole_number(std::string_view digits, int base) {
    std::uint64_t value = 0;
    const char* const end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, value, base);
    if (error != std::errc{} || stop != end) return std::nullopt;
    return Number{static_cast<double>(value), true};
}

int base_of(std::string_view literal) {
    if (literal.size() < 3 || literal[0] != '0') return 10;
    switch (literal[1]) {
        case 'x':
        case 'X':
            return 16;
        case 'o':
        case 'O':
            return 8;
        case 'b':
        case 'B':
            return 2;
        default:
            return 10;
    }
}

}  // namespace

std::string number_text(double value, bool whole) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
    std::array<char, 32> text{};
    const auto to = [&](auto number) {
        const auto result = std::to_chars(text.data(), text.data() + text.size(), number);
        return std::string(text.data(), result.ptr);
    };
    if (whole && std::abs(value) <= kExact) return to(static_cast<std::int64_t>(value));
    return to(value);
}

std::optional<Number> number_of(std::string_view literal) {
    std::string text(literal);
    std::erase(text, '_');
    if (text == "inf") return Number{INFINITY, false};
    if (text == "-inf") return Number{-INFINITY, false};
    if (text.empty() || text.back() == 'j' || text.back() == 'J') return std::nullopt;
    const int base = base_of(text);
    if (base != 10) return whole_number(std::string_view(text).substr(2), base);
    const bool whole = text.find_first_of(".eE") == std::string::npos;
    double value = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (stop != end || error == std::errc::invalid_argument) return std::nullopt;
    if (error == std::errc::result_out_of_range) {  // 1e400, and 1e-400
        const std::size_t e = text.find_first_of("eE");
        const bool small = e != std::string::npos && text[e + 1] == '-';
        return Number{small ? 0.0 : INFINITY, false};
    }
    return Number{value, whole};
}

std::optional<Number> fold(std::string_view op, Number a, Number b) {
    const bool whole = a.whole && b.whole;
    double value = 0;
    if (op == "+")
        value = a.value + b.value;
    else if (op == "-")
        value = a.value - b.value;
    else if (op == "*")
        value = a.value * b.value;
    else if (op == "/" && b.value != 0)
        return Number{a.value / b.value, false};
    else if (op == "//" && b.value != 0)
        value = std::floor(a.value / b.value);
    else if (op == "**") {
        const bool fraction = b.value < 0;
        value = std::pow(a.value, b.value);
        if (fraction) return std::isnan(value) ? std::nullopt : std::optional(Number{value, false});
    } else if (op == "<<" && whole && b.value >= 0 && b.value < 1024) {
        value = std::ldexp(a.value, static_cast<int>(b.value));
    } else {
        return std::nullopt;
    }
    if (std::isnan(value)) return std::nullopt;
    return Number{value, whole};
}

std::optional<std::string> string_content(Node string) {
    if (string.kind() == Kind::concatenated_string) {
        std::string all;
        for (const Node part : string.children()) {
            const auto content = string_content(part);
            if (!content) return std::nullopt;
            all += *content;
        }
        return all;
    }
    std::string_view text = string.text();
    const std::size_t quote = text.find_first_of("'\"");
    if (quote == std::string_view::npos) return std::nullopt;
    if (text.substr(0, quote).find_first_of("fFbBtT") != std::string_view::npos) return std::nullopt;
    text.remove_prefix(quote);
    const std::size_t width = text.size() >= 6 && text[1] == text[0] && text[2] == text[0] ? 3 : 1;
    if (text.size() < 2 * width) return std::nullopt;
    return std::string(text.substr(width, text.size() - 2 * width));
}

std::string attribute_text(Node string) {
    if (!string || string.kind() != Kind::string) return {};
    std::string_view text = string.text();
    const std::size_t quote = text.find_first_of("'\"");
    if (quote == std::string_view::npos || quote > 1 || text.size() < quote + 2) return {};
    const bool formatted = quote == 1 && (text[0] == 'f' || text[0] == 'F');
    if (quote == 1 && !formatted) return {};
    text = text.substr(quote + 1, text.size() - quote - 2);
    std::string out;
    int depth = 0;
    for (const char c : text) {
        if (formatted && c == '{' && depth++ == 0) out += "{}";
        const bool closes = formatted && c == '}';
        if (depth == 0) out += c;
        if (closes && depth > 0) --depth;
    }
    return out;
}

}  // namespace mp::lint::python
