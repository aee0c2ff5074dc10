#include "analyzer/driver/judge.hpp"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <system_error>

namespace mp::lint {
namespace {

// A few rules take most of the time, so that more threads would wait for those.
constexpr int kMostThreads = 8;

}  // namespace

void add_thread(std::vector<std::jthread>& threads, const std::function<void()>& work) {
    try {
        threads.emplace_back(work);
    } catch (const std::system_error&) {
    }
}

Findings judge(const std::vector<const Rule*>& rules, const RuleContext& context, int jobs) {
    std::vector<Findings> of_rule(rules.size());
    std::atomic<std::size_t> next = 0;
    const auto work = [&] {
        for (std::size_t i = next++; i < rules.size(); i = next++)
            rules[i]->check(context, of_rule[i]);
    };
    {
        std::vector<std::jthread> others;
        for (int i = 1; i < std::min(jobs, kMostThreads); ++i) add_thread(others, work);
        work();
    }
    Findings out;
    for (Findings& found : of_rule)
        out.insert(out.end(), std::make_move_iterator(found.begin()),
                   std::make_move_iterator(found.end()));
    return out;
}

}  // namespace mp::lint
