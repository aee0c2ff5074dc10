#pragma once

#include <string>

namespace mp::lint {

// The version of torch, "2.2", that the requirements in this folder ask for: `torch==2.2.0` in requirements*.txt and
// pyproject.toml, and `pytorch=2.2` too in a conda environment. Empty without one, or when they differ.
std::string pinned_torch(const std::string& folder);

}  // namespace mp::lint
