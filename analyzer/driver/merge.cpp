#include "analyzer/driver/merge.hpp"

#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "analyzer/driver/discover.hpp"
#include "kernels/numerics/dtype.hpp"

namespace mp::lint {
namespace {

// Absolute names of files; the same few appear in thousands of spans.
class Paths {
public:
    explicit Paths(const std::string& working_directory) : working_directory_(working_directory) {}

    void fix(SourceSpan& span) {
        if (span.file.empty()) return;
        const auto [it, added] = known_.try_emplace(span.file);
        if (added) it->second = Symbol(absolute_path(span.file.str(), working_directory_));
        span.file = it->second;
    }

private:
    const std::string& working_directory_;
    std::unordered_map<Symbol, Symbol> known_;
};

auto place_of(const Finding& f) {
    return std::tuple(f.span.file.str(), f.span.line, f.span.column, f.rule, std::string_view(f.message));
}

bool before(const Finding& a, const Finding& b) {
    return std::tuple_cat(place_of(a), std::tuple(b.severity, a.function.str())) <
           std::tuple_cat(place_of(b), std::tuple(a.severity, b.function.str()));
}

// Merges [from, to) into the first finding. All have the same message and the same place.
Finding joined(Findings& all, std::size_t from, std::size_t to) {
    std::set<Symbol> functions;
    for (std::size_t i = from; i < to; ++i) functions.insert(all[i].function);
    Finding out = std::move(all[from]);
    const std::size_t more = functions.size() - 1;
    if (more > 0) {
        out.notes.push_back(
            {.span = {},
             .text = "and " + std::to_string(more) + " more instantiation" + (more == 1 ? "" : "s")});
    }
    return out;
}

// "sum is held in fp16: it keeps 11 bits": the sentence before the figures, and the figures.
std::pair<std::string_view, std::string_view> parts_of(std::string_view message) {
    const std::size_t at = message.find(": ");
    if (at == std::string_view::npos) return {message, {}};
    return {message.substr(0, at), message.substr(at + 2)};
}

bool is_dtype_name(std::string_view word) { return dtype_from_name(word).has_value(); }

// The dtype in the place of which `a` names another one; empty when more than a dtype differs.
std::string_view dtype_instead(std::string_view a, std::string_view b) {
    const auto word_end = [](std::string_view text, std::size_t at) {
        return std::min(text.find_first_of(" ,;)", at), text.size());
    };
    std::size_t at = static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
    while (at > 0 && a[at - 1] != ' ') --at;
    const std::size_t a_end = word_end(a, at), b_end = word_end(b, at);
    const std::string_view other = b.substr(at, b_end - at);
    const bool same = a.substr(a_end) == b.substr(b_end);
    return same && is_dtype_name(a.substr(at, a_end - at)) && is_dtype_name(other) ? other
                                                                                   : std::string_view();
}

// Adds what a finding of the same rule on the same line says.
void add(Finding& to, std::string_view first_message, const Finding& other) {
    const auto [sentence, figures] = parts_of(other.message);
    const std::string_view dtype = dtype_instead(parts_of(first_message).first, sentence);
    const bool here = other.span.column == to.span.column;
    if (here && !dtype.empty()) {
        to.message +=
            "; with " + std::string(dtype) + (figures.empty() ? " too" : ": " + std::string(figures));
        return;
    }
    std::string text = here ? "also: " : "also in column " + std::to_string(other.span.column);
    if (other.message != first_message) text += (here ? "" : ": ") + other.message;
    to.notes.push_back({.span = {}, .text = std::move(text)});
}

bool may_be_one_line(const Finding& f) { return f.span.file.str().ends_with(".ipynb"); }

bool is_one_report(const Finding& a, const Finding& b) {
    if (a.span.file != b.span.file || a.span.line != b.span.line || a.rule != b.rule) return false;
    return a.span.column == b.span.column || (a.edits.empty() && b.edits.empty() && !may_be_one_line(a));
}

// One finding for those of a rule on a line: the most severe, then the leftmost.
Findings one_per_line(Findings findings) {
    std::ranges::sort(findings, {}, [](const Finding& f) {
        return std::tuple(f.span.file.str(), f.span.line, f.rule, -static_cast<int>(f.severity),
                          f.span.column, std::string_view(f.message));
    });
    Findings out;
    std::string first_message;
    for (Finding& f : findings) {
        if (!out.empty() && is_one_report(out.back(), f)) {
            add(out.back(), first_message, f);
            continue;
        }
        first_message = f.message;
        out.push_back(std::move(f));
    }
    std::ranges::sort(out, {}, place_of);
    return out;
}

}  // namespace

Findings merge_findings(Findings findings, const std::string& working_directory) {
    Paths paths(working_directory);
    for (Finding& f : findings) {
        paths.fix(f.span);
        for (Note& n : f.notes) paths.fix(n.span);
        for (Edit& e : f.edits) paths.fix(e.at);
    }
    std::sort(findings.begin(), findings.end(), before);
    Findings out;
    for (std::size_t from = 0; from < findings.size();) {
        std::size_t to = from + 1;
        while (to < findings.size() && place_of(findings[to]) == place_of(findings[from])) ++to;
        out.push_back(joined(findings, from, to));
        from = to;
    }
    return one_per_line(std::move(out));
}

}  // namespace mp::lint
