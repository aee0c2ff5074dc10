#include "analyzer/driver/judge.hpp"

#include <algorithm>
#include <iterator>

#include "analyzer/analyses/copies.hpp"
#include "kernels/base/parallel.hpp"

namespace mp::lint {
namespace {

// A few rules take most of the time, so more threads would only wait for them.
constexpr int kMostThreads = 8;

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
