#include "instrument/cuda/range_names.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>
#include <iterator>
#include <limits>

namespace mp::raw {
namespace {

constexpr std::size_t kLongestName = 256;  // longer names have no meaning

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// The name in lower case, without memory of its own.
class Lower {
public:
    explicit Lower(std::string_view name) : size_(std::min(name.size(), kLongestName)) {
        std::transform(name.begin(), name.begin() + static_cast<std::ptrdiff_t>(size_), text_.begin(),
                       [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    }
    std::string_view text() const { return {text_.data(), size_}; }

private:
    std::array<char, kLongestName> text_;
    std::size_t size_;
};

bool has(std::string_view text, std::initializer_list<std::string_view> parts) {
    return std::any_of(parts.begin(), parts.end(),
                       [text](std::string_view part) { return text.find(part) != std::string_view::npos; });
}

std::int64_t number_of(std::string_view digits) {
    std::int64_t value = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc() && end == digits.data() + digits.size() && !digits.empty() ? value : -1;
}

// "Train step *": what stands for the '*' is a number.
std::int64_t match(std::string_view name, std::string_view pattern) {
    const std::size_t star = pattern.find('*');
    if (star == std::string_view::npos) return -1;
    const std::string_view before = pattern.substr(0, star), after = pattern.substr(star + 1);
    if (name.size() <= before.size() || !name.starts_with(before)) return -1;
    name.remove_prefix(before.size());
    std::size_t digits = 0;
    while (digits < name.size() && is_digit(name[digits])) ++digits;
    const std::string_view rest = name.substr(digits);
    const bool ends = after == "*" || (after.empty() ? rest.empty() : rest == after);
    return ends ? number_of(name.substr(0, digits)) : -1;
}

// The words before the first number, without what separates them from it.
std::string_view words_before_number(std::string_view text, std::string_view& number) {
    const auto digit = std::find_if(text.begin(), text.end(), is_digit);
    auto words = text.substr(0, static_cast<std::size_t>(digit - text.begin()));
    number = text.substr(words.size());
    while (!words.empty() && !is_letter(words.back())) words.remove_suffix(1);
    return words;
}

}  // namespace

std::int64_t step_of_range(std::string_view name, std::string_view pattern) noexcept {
    if (!pattern.empty()) return match(name, pattern);
    const Lower lower(name);
    std::string_view number;
    const std::string_view words = words_before_number(lower.text(), number);
    constexpr std::string_view kSteps[] = {"step", "iteration", "iter", "batch"};
    const bool is_step = std::any_of(std::begin(kSteps), std::end(kSteps),
                                     [words](std::string_view step) { return words.ends_with(step); });
    if (!is_step ||
        has(words, {"val", "eval", "test", "micro", "gen", "sampl", "load", "data", "warm", "infer"}))
        return -1;
    std::size_t digits = 0;
    while (digits < number.size() && is_digit(number[digits])) ++digits;
    // "3", "3/100", "3 of 100": not "3.layer" or "3x".
    const std::string_view rest = number.substr(digits);
    if (!rest.empty() && rest[0] != '/' && rest[0] != ' ' && rest[0] != ']' && rest[0] != ')') return -1;
    return number_of(number.substr(0, digits));
}

Phase phase_of_range(std::string_view name) noexcept {
    const Lower lower(name);
    const std::string_view text = lower.text();
    if (has(text, {"backward", "bwd", "backprop"})) return Phase::backward;
    if (has(text, {"forward", "fwd"})) return Phase::forward;
    if (has(text, {"optimizer", "optim", "_update", "update_", "adam", "sgd"}) || text == "update" ||
        text.starts_with("update ") || text.ends_with(" update"))
        return Phase::optimizer;
    if (has(text, {"validat", "evaluat", "generat", "inference"}) || text == "eval") return Phase::forward;
    return Phase::unknown;
}

bool is_numbered_layer(std::string_view name) noexcept {
    const Lower lower(name);
    std::string_view number;
    const std::string_view words = words_before_number(lower.text(), number);
    if (number.empty() || number.find_first_not_of("0123456789])") != std::string_view::npos) return false;
    return words == "h" || words.ends_with(".h") || words.ends_with("layer") || words.ends_with("layers") ||
           words.ends_with("block") || words.ends_with("blocks") || words.ends_with("blk") ||
           words.ends_with("stage");
}

}  // namespace mp::raw
