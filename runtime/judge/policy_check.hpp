#pragma once

#include <string>
#include <vector>

#include "runtime/judge/rules.hpp"

namespace mp::trace {

// Answers the checked sentences of a run (Judgement::checks) and judges MPT060: ops, reductions and tensors in
// less precision than a policy says. A policy that cannot be read makes the verdict inconclusive. Check
// --policy with parse_policy first, because its errors are more precise.
void judge_policies(Case&, const std::vector<std::string>& declared);

// "2.11.0" of "torch 2.11.0"; empty: unknown.
std::string torch_version_of(const RunModel&);

}  // namespace mp::trace
