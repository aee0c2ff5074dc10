#pragma once

// `mp-lint policy`: the op lists, and lists made from an installed torch.

#include <string>
#include <string_view>
#include <vector>

#include "kernels/numerics/policy.hpp"

namespace mp::lint {

// What follows "policy": "list", "show NAME", "dump --from-torch [--python PY] [--device DEVICE]". The
// answer is the text for standard output.
Result<std::string> run_policy_command(const std::vector<std::string>& words);

// The list of a device as the torch that wrote `registrations` has it: first line "torch VERSION",
// then one registered op per line. Which category an op is in, the dispatcher does not say; that comes
// from our list of the nearest version, and ops it does not have follow as comments.
Result<std::string> policy_from_registrations(std::string_view registrations, std::string_view device);

}  // namespace mp::lint
