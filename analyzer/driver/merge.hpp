#pragma once

#include <functional>
#include <string>

#include "analyzer/analyses/finding.hpp"

namespace mp::lint {

// Prepares findings for output. Paths become absolute. A rule has one finding per line: what it says of several
// instantiations, dtypes or columns becomes the message and the notes of the most severe. Findings with different
// edits, and those of notebooks, which may be one line, stay one per column. The result is sorted by file, line,
// column and rule.
Findings merge_findings(Findings findings, const std::string& working_directory);

}  // namespace mp::lint
