#include "analyzer/driver/judge.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "analyzer/analyses/trials.hpp"
#include "analyzer/region/calls.hpp"
#include "kernels/base/parallel.hpp"

namespace mp::lint {
namespace {

// A few rules take most of the time, so more threads would only wait for them.
constexpr int kMostThreads = 8;

std::string_view file_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

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

// Two files of one name with nearly the same functions: one is a copy, or an older version, of the other.
bool are_copies(const Program& program, Symbol a, Symbol b) {
    constexpr std::size_t kFewest = 4;
    if (file_of(a.str()) != file_of(b.str())) return false;
    const auto of_a = names_in(program, a), of_b = names_in(program, b);
    std::vector<std::string_view> both;
    std::ranges::set_intersection(of_a, of_b, std::back_inserter(both));
    const std::size_t all = of_a.size() + of_b.size() - both.size();
    return both.size() >= kFewest && 5 * both.size() >= 4 * all;
}

// A file of fewer folders is the original, then one that is first by name.
bool is_original(std::string_view path, std::string_view of) {
    const auto depth = [](std::string_view p) { return std::ranges::count(p, '/'); };
    return std::pair(depth(path), path) < std::pair(depth(of), of);
}

// What the original has too is one defect: a note in its copies.
void weigh_copies(const Program& program, Findings& findings) {
    using Defect = std::tuple<std::string_view, std::string_view, std::string_view, std::string_view>;
    std::map<Defect, std::vector<Finding*>> defects;
    for (Finding& f : findings)
        if (f.severity > Severity::note)
            defects[{f.rule, f.message, leaf(f.function.str()), file_of(f.span.file.str())}].push_back(&f);
    for (auto& [defect, of] : defects) {
        std::ranges::sort(of, [](const Finding* a, const Finding* b) {
            return is_original(a->span.file.str(), b->span.file.str());
        });
        for (std::size_t i = 1; i < of.size(); ++i) {
            const auto original =
                std::find_if(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(i), [&](const Finding* o) {
                    return o->severity > Severity::note &&
                           are_copies(program, o->span.file, of[i]->span.file);
                });
            if (original == of.begin() + static_cast<std::ptrdiff_t>(i) ||
                (*original)->span.file == of[i]->span.file)
                continue;
            of[i]->severity = Severity::note;
            of[i]->notes.push_back({(*original)->span, "the same as here: one of the two files is a copy"});
        }
    }
}

}  // namespace

Findings judge(const std::vector<const Rule*>& rules, const RuleContext& context, int jobs) {
    std::vector<Findings> of_rule(rules.size());
    in_parallel(rules.size(), std::min(jobs, kMostThreads), [&](std::size_t n) {
        // Rules of the first and of the second half in turn. Neighbours need the same analyses, and one would wait
        // for the other. The slow ones are first and in the middle: none starts last and runs alone.
        const std::size_t half = (rules.size() + 1) / 2;
        const std::size_t i = n % 2 == 0 ? n / 2 : half + n / 2;
        rules[i]->check(context, of_rule[i]);
    });
    Findings out;
    for (Findings& found : of_rule)
        out.insert(out.end(), std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
    weigh_copies(context.program, out);
    return out;
}

}  // namespace mp::lint
