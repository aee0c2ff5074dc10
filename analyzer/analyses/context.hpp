#pragma once

#include <string_view>
#include <vector>

#include "analyzer/analyses/finding.hpp"
#include "analyzer/analyses/shared.hpp"
#include "kernels/numerics/policy.hpp"
#include "kernels/numerics/torch_policies.hpp"

namespace mp::lint {

class Protocol;
struct ConstantUse;
struct Engine;

// What a rule may look at: the linked program and the policies. No source text, no clock, no files.
struct RuleContext {
    const Program& program;
    const Policies& policies;   // of the torch version in use; a rule asks policy()
    bool inference = false;     // profile: no training, so master weights and scalers are not expected
    TorchVersion torch{};       // in use; not known: the newest
    std::string_view device{};  // --device, of a program that does not say; empty: not told

    // Of protocol_of(), engines_of() and constant_uses().
    Shared<Protocol> protocol{};
    Shared<std::vector<Engine>> engines{};
    Shared<std::vector<ConstantUse>> constants{};

    // The op list of a device ("cuda", "cpu", "xpu", "mps", "hpu", "xla") or of another kind of region
    // ("hmp", "apex"); nullptr when none is known.
    const Policy* policy(std::string_view device_name) const { return policies.of(device_name); }
    // Whether the torch in use is older than this one. The newest is older than none.
    bool older_than(TorchVersion version) const { return torch.known() && torch < version; }
};

}  // namespace mp::lint
