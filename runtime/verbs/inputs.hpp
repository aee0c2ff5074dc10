#pragma once

#include <string>
#include <vector>

#include "kernels/base/result.hpp"
#include "runtime/fold/run_model.hpp"
#include "runtime/gate/gate.hpp"

namespace mp::trace {

// Checks the texts of --policy. The error names the option.
Status check_policies(const std::vector<std::string>& texts);
// Reads each file of --lint once. The error names the option.
Result<std::vector<LintFinding>> read_lint_files(const std::vector<std::string>& paths);

// Adds the noise floor of a run to its model, from the same training recorded with --twin-noise. Without a directory
// nothing is added. The error names the option.
Status add_noise(RunModel&, const std::string& directory);

}  // namespace mp::trace
