#pragma once

#include <string>
#include <vector>

#include "kernels/base/result.hpp"
#include "runtime/gate/gate.hpp"

namespace mp::trace {

// Checks the texts of --policy. The error names the option.
Status check_policies(const std::vector<std::string>& texts);
// Reads each file of --lint once. The error names the option.
Result<std::vector<LintFinding>> read_lint_files(const std::vector<std::string>& paths);

}  // namespace mp::trace
