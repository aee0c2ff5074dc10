#include "analyzer/driver/merge.hpp"

#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "analyzer/driver/discover.hpp"

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
    return out;
}

}  // namespace mp::lint
