#pragma once

// `mp-lint policy`: the op lists, and lists made from an installed torch.

#include <string>
#include <string_view>
#include <vector>

#include "kernels/numerics/policy.hpp"

namespace mp::lint {

// `words` follow "policy": "list", "show NAME", "dump --from-torch [--python PY] [--device DEVICE]".
// Returns the text for standard output.
Result<std::string> run_policy_command(const std::vector<std::string>& words);

// The op list of a device for the torch that wrote `registrations`. Their first line is "torch VERSION", then one
// registered op per line. The dispatcher does not give the category of an op. It comes from our list of the nearest
// version; ops outside that list follow as comments.
Result<std::string> policy_from_registrations(std::string_view registrations, std::string_view device);

}  // namespace mp::lint
