#pragma once

// What a fuzzer of facts does with them: every rule of every device over a whole program.

#include <cstdlib>
#include <utility>
#include <vector>

#include "analyzer/region/program.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint::fuzz {

inline Findings judged(std::vector<Unit> units) {
    static const auto policies = Policies::load("");
    if (!policies) std::abort();
    const Program program = Program::link(std::move(units));
    const RuleContext context{
        .program = program, .policies = *policies, .inference = false, .torch = policies->torch()};
    Findings findings;
    for (const Rule* rule : all_rules()) rule->check(context, findings);
    return findings;
}

}  // namespace mp::lint::fuzz
