#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "analyzer/report/report.hpp"

namespace mp::lint {

// A file as it was analysed and as it would be.
struct FixedFile {
    std::string path;
    std::string before;
    std::string after;
    std::size_t findings = 0;  // that it takes care of
};

struct FixPlan {
    std::vector<FixedFile> files;  // sorted by path
    std::size_t fixed = 0;
    std::size_t need_unsafe = 0;  // their edits may change what the program does
    std::size_t conflicting = 0;  // they overlap an edit before them
    std::size_t not_ours = 0;     // in notebooks, in two files, outside the project, out of place
};

// Turns the edits of the findings into new texts of files. Pure: reads report.sources, writes
// nothing. Of two findings whose edits overlap the first by position wins, whole; the same edit
// asked for twice is made once. Line ends are those of the file.
FixPlan plan_fixes(const Report& report, bool with_unsafe);

}  // namespace mp::lint
