#include "runtime/trace/display.hpp"

#include <array>
#include <charconv>
#include <cmath>

#include "kernels/base/text.hpp"

namespace mp::trace {
namespace {

constexpr char kDigits[] = "0123456789abcdef";

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
        const CodePoint c = decode_utf8(text);
        if (!c.valid) {
            put_byte(out, static_cast<unsigned char>(text.front()));
        } else if (c.value == '\\') {
            out += "\\\\";
        } else if (c.value == '\n') {
            out += "\\n";
        } else if (!is_unsafe(c.value)) {
            out += text.substr(0, c.length);
        } else if (c.value < 0x80) {
            put_byte(out, static_cast<unsigned char>(c.value));
        } else {
            out += "\\u{";
            for (int shift = c.value > 0xffff ? 20 : 12; shift >= 0; shift -= 4)
                out += kDigits[(c.value >> shift) & 15];
            out += "}";
        }
        text.remove_prefix(c.length);
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
    constexpr std::array<std::string_view, 12> kNames{"not_observed",  "seed",     "leak",    "disarmed",
                                                      "lossy",         "memory",   "end",     "policy",
                                                      "outdated_copy", "decision", "sampled", "given_up"};
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
    // One digit after the point. Not with printf, which depends on the locale.
    const auto tenths = static_cast<std::uint64_t>(std::llround(value * 10));
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " " + std::string(kUnits[unit]);
}

}  // namespace mp::trace
