#include "analyzer/analyses/copies.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "analyzer/analyses/trials.hpp"
#include "analyzer/region/calls.hpp"

namespace mp::lint {
namespace {

std::string_view file_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// What file managers, Jupyter and people put behind the name of a copy.
std::string_view without_mark(std::string_view stem) {
    constexpr std::array<std::string_view, 7> kMarks{" copy", "_copy",   "-copy", "-Copy",
                                                     "_old",  "_backup", "_bak"};
    const std::size_t last = stem.find_last_not_of("0123456789");
    const bool is_numbered = last != std::string_view::npos && stem.ends_with(')');
    if (is_numbered && stem.rfind(" (") != std::string_view::npos) return stem.substr(0, stem.rfind(" ("));
    // "train_copy 2", "train-Copy1"
    std::string_view name = last == std::string_view::npos ? stem : stem.substr(0, last + 1);
    if (name.ends_with(' ')) name.remove_suffix(1);
    for (const std::string_view mark : kMarks)
        if (name.size() > mark.size() && name.ends_with(mark))
            return name.substr(0, name.size() - mark.size());
    return stem;
}

// The name that a file has in common with its copies.
std::string common_name(std::string_view path) {
    const std::string_view file = file_of(path);
    const std::size_t dot = std::min(file.rfind('.'), file.size());
    return std::string(without_mark(file.substr(0, dot))) + std::string(file.substr(dot));
}

// Names of functions and of methods with their classes, without the module's.
std::set<std::string_view> names_in(const Program& program, Symbol file) {
    std::set<std::string_view> names;
    for (const Function* f : functions_of(program, file)) {
        std::string_view name = f->name.str();
        const std::size_t method = leaf(name).size();
        const std::string_view owner = leaf(f->parent_class.str());
        const std::size_t keeps = owner.empty() ? method : std::min(name.size(), owner.size() + 1 + method);
        names.insert(name.substr(name.size() - keeps));
    }
    return names;
}

bool has_mark(std::string_view path) { return common_name(path) != file_of(path); }

// Whether b, of the same name, copies a.
bool is_copy(const Program& program, Symbol a, Symbol b) {
    constexpr std::size_t kFewest = 4;
    if (a == b) return false;
    const auto of_a = names_in(program, a), of_b = names_in(program, b);
    if (has_mark(b.str()) && std::ranges::includes(of_a, of_b)) return true;
    std::vector<std::string_view> both;
    std::ranges::set_intersection(of_a, of_b, std::back_inserter(both));
    const std::size_t all = of_a.size() + of_b.size() - both.size();
    return both.size() >= kFewest && 5 * both.size() >= 4 * all;
}

// A file whose name has no mark is the original, then one of fewer folders, then one that is first by name.
bool is_original(std::string_view path, std::string_view of) {
    const auto rank = [](std::string_view p) {
        return std::tuple(has_mark(p), std::ranges::count(p, '/'), p);
    };
    return rank(path) < rank(of);
}

// The report of an earlier file of which this one's is a copy; nullptr: none is.
const Finding* original_of(const Program& program, const Finding& copy, std::span<Finding* const> earlier) {
    const auto original = std::ranges::find_if(earlier, [&](const Finding* f) {
        return f->severity > Severity::note && is_copy(program, f->span.file, copy.span.file);
    });
    return original == earlier.end() ? nullptr : *original;
}

}  // namespace

void weigh_copies(const Program& program, Findings& findings) {
    using Defect = std::tuple<std::string_view, std::string_view, std::string_view, std::string>;
    std::map<Defect, std::vector<Finding*>> defects;
    for (Finding& f : findings)
        if (f.severity > Severity::note)
            defects[{f.rule, f.message, leaf(f.function.str()), common_name(f.span.file.str())}].push_back(
                &f);
    for (auto& [defect, reports] : defects) {
        std::ranges::sort(reports, [](const Finding* a, const Finding* b) {
            return is_original(a->span.file.str(), b->span.file.str());
        });
        for (std::size_t i = 1; i < reports.size(); ++i) {
            Finding& report = *reports[i];
            const Finding* original = original_of(program, report, std::span(reports).first(i));
            if (!original) continue;
            report.severity = Severity::note;
            report.notes.push_back({original->span, "the same as here: one of the two files is a copy"});
        }
    }
}

}  // namespace mp::lint
