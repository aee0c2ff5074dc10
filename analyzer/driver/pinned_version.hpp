#pragma once

#include <string>
#include <string_view>

#include "kernels/numerics/torch_policies.hpp"

namespace mp::lint {

// The version of a package ("torch", "transformers") that the requirements in this folder ask for: `torch==2.2.0` in
// requirements*.txt and pyproject.toml, and `pytorch=2.2` too in a conda environment and in a line of README.md that
// installs it. Unknown without one, or when they differ.
TorchVersion pinned_version(const std::string& folder, std::string_view package);

}  // namespace mp::lint
