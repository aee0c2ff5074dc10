#include "runtime/launch/values.hpp"

#include <array>
#include <charconv>
#include <limits>
#include <string>
#include <utility>

#include "runtime/launch/words.hpp"

namespace mp::launch {
namespace {

using trace::Mode;

constexpr std::array<std::pair<std::string_view, Mode>, 4> kModes{
    {{"watch", Mode::watch}, {"local", Mode::local}, {"step", Mode::step}, {"trajectory", Mode::trajectory}}};
constexpr std::uint64_t kLeastBudget = 64u << 10;

Error unreadable(std::string_view text, std::string_view expected) {
    return {"'" + std::string(text) + "' is not " + std::string(expected), ""};
}

// Digits only: no sign, no blank, nothing after them.
template <typename T>
bool read_number(std::string_view text, T& value) {
    if (text.empty() || text[0] < '0' || text[0] > '9') return false;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
}

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    for (;;) {
        const std::size_t at = text.find(separator);
        parts.push_back(text.substr(0, at));
        if (at == std::string_view::npos) return parts;
        text.remove_prefix(at + 1);
    }
}

}  // namespace

Result<Mode> parse_mode(std::string_view text) {
    std::array<std::string_view, kModes.size()> names;
    for (std::size_t i = 0; i < kModes.size(); ++i) {
        names[i] = kModes[i].first;
        if (text == names[i]) return kModes[i].second;
    }
    Error error = unreadable(text, "a mode");
    error.hint = did_you_mean(text, names);
    if (error.hint.empty()) error.hint = "modes are watch, local, step and trajectory";
    return error;
}

std::string_view name_of(Mode mode) {
    for (const auto& [name, value] : kModes) {
        if (value == mode) return name;
    }
    return "off";
}

Result<trace::StepRange> parse_steps(std::string_view text) {
    Error error = unreadable(text, "a range of steps");
    error.hint = "A:B:N is steps A, A+N, ... below B: 100:200:10, 0:50, 17";
    const std::vector<std::string_view> parts = split(text, ':');
    if (text.empty() || parts.size() > 3) return error;
    trace::StepRange range;
    constexpr std::int64_t kEndless = std::numeric_limits<std::int64_t>::max();
    const bool alone = parts.size() == 1;
    if ((alone || !parts[0].empty()) && !read_number(parts[0], range.first)) return error;
    if (alone) {
        if (range.first == kEndless) return error;
        range.last = range.first + 1;
        return range;
    }
    if (!parts[1].empty() && !read_number(parts[1], range.last)) return error;
    if (parts.size() == 3 && !parts[2].empty() && !read_number(parts[2], range.every)) return error;
    if (range.every < 1) return Error{error.message + ": every 0th step is none", error.hint};
    if (range.last <= range.first) return Error{error.message + ": it holds no step", error.hint};
    return range;
}

std::string text_of(const trace::StepRange& range) {
    const bool endless = range.last == std::numeric_limits<std::int64_t>::max();
    if (range.first == 0 && endless && range.every == 1) return {};
    if (!endless && range.last - range.first == 1) return std::to_string(range.first);
    std::string out = std::to_string(range.first) + ":";
    if (!endless) out += std::to_string(range.last);
    if (range.every != 1) out += ":" + std::to_string(range.every);
    return out;
}

Result<std::vector<trace::RankRange>> parse_ranks(std::string_view text) {
    Error error = unreadable(text, "a list of ranks");
    error.hint = "ranks and ranges of them: 0,8-15";
    std::vector<trace::RankRange> ranks;
    for (const std::string_view part : split(text, ',')) {
        trace::RankRange range;
        const std::size_t dash = part.find('-');
        if (!read_number(part.substr(0, dash), range.first)) return error;
        range.last = range.first;
        if (dash != std::string_view::npos && !read_number(part.substr(dash + 1), range.last)) return error;
        if (range.last < range.first)
            return Error{error.message + ": " + std::string(part) + " runs backwards", error.hint};
        ranks.push_back(range);
    }
    return ranks;
}

Result<double> parse_share(std::string_view text) {
    Error error = unreadable(text, "a share");
    error.hint = "a number above 0 and up to 100: 3%";
    std::string_view digits = text;
    if (digits.ends_with('%')) digits.remove_suffix(1);
    double percent = 0;
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), percent);
    const bool read = code == std::errc() && end == digits.data() + digits.size();
    if (!read || !(percent > 0) || percent > 100) return error;
    return percent / 100;
}

Result<std::uint64_t> parse_size(std::string_view text) {
    static constexpr std::string_view kUnits = "KMGT";
    Error error = unreadable(text, "a size");
    error.hint = "a number and K, M, G or T: 512M";
    std::string_view digits = text;
    int shift = 0;
    if (!text.empty()) {
        const char last =
            text.back() >= 'a' && text.back() <= 'z' ? static_cast<char>(text.back() - 32) : text.back();
        if (const std::size_t unit = kUnits.find(last); unit != std::string_view::npos) {
            shift = 10 * (static_cast<int>(unit) + 1);
            digits.remove_suffix(1);
        }
    }
    std::uint64_t value = 0;
    if (!read_number(digits, value)) return error;
    if (value > std::numeric_limits<std::uint64_t>::max() >> shift)
        return Error{error.message + ": too large", error.hint};
    value <<= shift;
    if (value < kLeastBudget) return Error{error.message + " of at least 64K", error.hint};
    return value;
}

}  // namespace mp::launch
