#pragma once

#include <functional>
#include <thread>
#include <vector>

#include "analyzer/rules/rule.hpp"

namespace mp::lint {

// What the rules say, one after the other; they run on up to `jobs` threads.
Findings judge(const std::vector<const Rule*>& rules, const RuleContext&, int jobs);

// Where the system gives no thread, nothing happens: who calls it must be able to do without.
void add_thread(std::vector<std::jthread>& threads, const std::function<void()>& work);

}  // namespace mp::lint
