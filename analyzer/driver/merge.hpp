#pragma once

#include <functional>
#include <string>

#include "analyzer/analyses/finding.hpp"

namespace mp::lint {

// Findings as a reader wants them: every path absolute, one finding per place, rule and message
// however many instantiations and units show it (the notes name the first and count the rest),
// sorted by file, line, column and rule.
Findings merge_findings(Findings findings, const std::string& working_directory);

}  // namespace mp::lint
