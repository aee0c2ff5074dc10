#pragma once

#include <span>
#include <string_view>

#include "runtime/judge/finding.hpp"

namespace mp::trace {

// The measurements that a rule needs.
enum class Needs : unsigned char {
    nothing,
    twin,        // mode step or trajectory
    local,       // LOC: mode local and stronger, on sampled steps
    policy,      // a declared or found precision policy
    collective,  // reductions compared with fp32
    ddp,         // replicated parameters with hashes
    torch,       // a program of torch
};

// The rules of the gate, sorted by id. Ids are never reused. docs/gate.md describes each rule and the reason for its
// default.
struct RuleInfo {
    std::string_view id, name, title;
    Needs needs = Needs::nothing;
};
std::span<const RuleInfo> rule_pack();
const RuleInfo* rule_called(std::string_view id);  // null: there is none

}  // namespace mp::trace
