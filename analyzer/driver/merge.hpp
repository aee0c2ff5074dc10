#pragma once

#include <functional>
#include <string>

#include "analyzer/analyses/finding.hpp"

namespace mp::lint {

// Prepares findings for output. Paths become absolute. Instantiations and units with the same finding give one
// finding per place, rule and message; its notes name the first and count the others. The result is sorted by file,
// line, column and rule.
Findings merge_findings(Findings findings, const std::string& working_directory);

}  // namespace mp::lint
