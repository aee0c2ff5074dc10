#include "runtime/trace/display.hpp"

#include <array>
#include <charconv>
#include <cmath>

namespace mp::trace {
namespace {

constexpr char kDigits[] = "0123456789abcdef";

// Length of the UTF-8 sequence at the front and its code point; length 0 when it is none.
struct CodePoint {
    std::size_t length = 0;
    std::uint32_t value = 0;
};

CodePoint front(std::string_view text) {
    auto byte = [&text](std::size_t i) -> std::uint32_t {
        return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
    };
    auto tail = [&](std::size_t i) { return (byte(i) & 0xc0) == 0x80; };
    const std::uint32_t first = byte(0);
    if (first < 0x80) return {1, first};
    if (first >= 0xc2 && first <= 0xdf && tail(1)) return {2, (first & 0x1f) << 6 | (byte(1) & 0x3f)};
    if (first >= 0xe0 && first <= 0xef && tail(1) && tail(2)) {
        const std::uint32_t v = (first & 0x0f) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f);
        if (v >= 0x800 && (v < 0xd800 || v > 0xdfff)) return {3, v};
    }
    if (first >= 0xf0 && first <= 0xf4 && tail(1) && tail(2) && tail(3)) {
        const std::uint32_t v =
            (first & 0x07) << 18 | (byte(1) & 0x3f) << 12 | (byte(2) & 0x3f) << 6 | (byte(3) & 0x3f);
        if (v >= 0x10000 && v <= 0x10ffff) return {4, v};
    }
    return {};
}

bool is_control(std::uint32_t c) {
    return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0x61c || (c >= 0x200e && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

void put_byte(std::string& out, unsigned char byte) {
    out += "\\x";
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
}

std::string shortest(double value, std::chars_format format) {
    std::array<char, 64> buffer{};
    const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format);
    return error == std::errc() ? std::string(buffer.data(), end) : std::string("?");
}

std::string special(double value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
    return {};
}

}  // namespace

std::string shown(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const CodePoint c = front(text);
        const std::size_t length = c.length ? c.length : 1;
        if (c.length == 0) {
            put_byte(out, static_cast<unsigned char>(text.front()));
        } else if (c.value == '\\') {
            out += "\\\\";
        } else if (c.value == '\n') {
            out += "\\n";
        } else if (!is_control(c.value)) {
            out += text.substr(0, length);
        } else if (c.value < 0x80) {
            put_byte(out, static_cast<unsigned char>(c.value));
        } else {
            out += "\\u{";
            for (int shift = 12; shift >= 0; shift -= 4) out += kDigits[(c.value >> shift) & 15];
            out += "}";
        }
        text.remove_prefix(length);
    }
    return out;
}

std::string quoted(std::string_view text) {
    std::string out = "\"";
    for (const char c : shown(text)) {
        if (c == '"') out += '\\';
        out += c;
    }
    return out + '"';
}

std::string hex_of(double value) {
    if (std::string text = special(value); !text.empty()) return text;
    const std::string digits = shortest(std::fabs(value), std::chars_format::hex);
    return (std::signbit(value) ? "-0x" : "0x") + digits;
}

std::string decimal_of(double value) {
    if (std::string text = special(value); !text.empty()) return text;
    return shortest(value, std::chars_format::general);
}

std::string_view name_of(Mode mode) {
    constexpr std::array<std::string_view, 5> kNames{"off", "watch", "local", "step", "trajectory"};
    return kNames.at(static_cast<std::size_t>(mode));
}

std::string_view name_of(NoteKind kind) {
    constexpr std::array<std::string_view, 8> kNames{"not_observed", "seed",   "leak", "disarmed",
                                                     "lossy",        "memory", "end",  "policy"};
    return kNames.at(static_cast<std::size_t>(kind));
}

std::string_view name_of(TensorKind kind) {
    constexpr std::array<std::string_view, 4> kNames{"parameter", "gradient", "buffer", "optimizer_state"};
    return kNames.at(static_cast<std::size_t>(kind));
}

std::string_view name_of(TensorRole role) {
    constexpr std::array<std::string_view, 7> kNames{
        "parameter", "buffer", "activation", "gradient", "collective", "optimizer_state", "checkpoint"};
    return kNames.at(static_cast<std::size_t>(role));
}

double relative_l2(const TensorRecord& r) {
    return r.error_squares == 0 && r.twin_squares == 0 ? 0 : std::sqrt(r.error_squares / r.twin_squares);
}

std::string size_text(std::uint64_t bytes) {
    if (bytes < 1024) return std::to_string(bytes) + " B";
    constexpr std::array<std::string_view, 4> kUnits{"KiB", "MiB", "GiB", "TiB"};
    double value = static_cast<double>(bytes) / 1024;
    std::size_t unit = 0;
    for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
    // One digit behind the point, without the locale of printf.
    const auto tenths = static_cast<std::uint64_t>(std::llround(value * 10));
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " " + std::string(kUnits[unit]);
}

}  // namespace mp::trace
