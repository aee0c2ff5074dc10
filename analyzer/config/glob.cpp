#include "analyzer/config/glob.hpp"

#include <cstddef>
#include <vector>

namespace mp::lint {
namespace {

// One element of a pattern: its length in the pattern, and which bytes it matches.
struct Element {
    std::size_t length = 1;
    bool repeats = false;
    bool crosses = false;  // `**`: also takes '/'
};

// Length of the set `[...]` that starts at `at`; 0 when it is never closed (then '[' is a literal).
std::size_t set_length(std::string_view pattern, std::size_t at) {
    std::size_t end = at + 1;
    if (end < pattern.size() && (pattern[end] == '!' || pattern[end] == '^')) ++end;
    if (end < pattern.size() && pattern[end] == ']') ++end;
    while (end < pattern.size() && pattern[end] != ']') ++end;
    return end < pattern.size() ? end - at + 1 : 0;
}

bool in_set(std::string_view set, char c) {
    std::size_t i = 1;
    const bool negated = set[i] == '!' || set[i] == '^';
    if (negated) ++i;
    bool hit = false;
    for (; i + 1 < set.size(); ++i) {
        if (i + 3 < set.size() && set[i + 1] == '-') {
            hit |= set[i] <= c && c <= set[i + 2];
            i += 2;
        } else {
            hit |= set[i] == c;
        }
    }
    return hit != negated;
}

Element element_at(std::string_view pattern, std::size_t at) {
    if (pattern[at] == '*') {
        const bool two = at + 1 < pattern.size() && pattern[at + 1] == '*';
        return {.length = two ? std::size_t{2} : std::size_t{1}, .repeats = true, .crosses = two};
    }
    if (pattern[at] == '[') {
        const std::size_t length = set_length(pattern, at);
        if (length > 0) return {.length = length};
    }
    return {};
}

bool takes(std::string_view pattern, std::size_t at, const Element& e, char c) {
    if (e.repeats) return e.crosses || c != '/';
    if (pattern[at] == '?') return c != '/';
    if (e.length > 1) return c != '/' && in_set(pattern.substr(at, e.length), c);
    return pattern[at] == c;
}

}  // namespace

// Keeps the set of pattern positions that are reachable after each byte of the text, so there is no
// backtracking. A position is `arrived` when the last byte led to it, and `stays` when a repeating element
// at the position matched that byte.
bool glob_match(std::string_view pattern, std::string_view text) {
    constexpr char kStays = 1, kArrived = 2;
    std::vector<char> now(pattern.size() + 1, 0), next(pattern.size() + 1, 0);
    auto close = [&](std::vector<char>& states) {
        for (std::size_t at = 0; at < pattern.size(); ++at) {
            if (!states[at]) continue;
            const Element e = element_at(pattern, at);
            if (!e.repeats) continue;
            states[at + e.length] = kArrived;
            // "a/**/b" also matches "a/b": `**` may match nothing together with the slash after it.
            if (states[at] == kArrived && e.crosses && at + 2 < pattern.size() && pattern[at + 2] == '/' &&
                (at == 0 || pattern[at - 1] == '/')) {
                states[at + 3] = kArrived;
            }
        }
    };
    now[0] = kArrived;
    close(now);
    for (const char c : text) {
        next.assign(next.size(), 0);
        for (std::size_t at = 0; at < pattern.size(); ++at) {
            if (!now[at]) continue;
            const Element e = element_at(pattern, at);
            if (!takes(pattern, at, e, c)) continue;
            if (!e.repeats) {
                next[at + e.length] = kArrived;
            } else if (!next[at]) {
                next[at] = kStays;
            }
        }
        close(next);
        now.swap(next);
    }
    return now[pattern.size()] != 0;
}

bool path_matches(std::string_view pattern, std::string_view path) {
    while (pattern.starts_with("./")) pattern.remove_prefix(2);
    while (pattern.size() > 1 && pattern.ends_with('/')) pattern.remove_suffix(1);
    if (pattern.starts_with('/')) pattern.remove_prefix(1);
    if (pattern.empty()) return false;
    const bool anywhere = pattern.find('/') == std::string_view::npos;
    std::size_t start = 0;
    for (std::size_t end = 0; end <= path.size(); ++end) {
        if (end < path.size() && path[end] != '/') continue;
        const auto part = anywhere ? path.substr(start, end - start) : path.substr(0, end);
        if (glob_match(pattern, part)) return true;
        start = end + 1;
    }
    return false;
}

}  // namespace mp::lint
