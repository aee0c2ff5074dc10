#pragma once

#include <cstddef>

#include "analyzer/driver/gather.hpp"

namespace mp::lint {

struct PythonRun {
    FactsPack* pack = nullptr;  // nullptr: none is kept
    std::size_t done = 0;       // units finished before, for progress
};

// Adds the Python units of a plan: from the project's pack where the file has not changed, else from
// worker processes, many files to a job. A job that dies is done again file by file, so that one file
// costs itself only.
void gather_python(const Plan&, const LintOptions&, const FrontEnds&, const PythonRun&, Gathered& out);

}  // namespace mp::lint
