#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "analyzer/report/report.hpp"

namespace mp::lint {

// A file as it was analysed, and after its fixes.
struct FixedFile {
    std::string path;
    std::string before;
    std::string after;
    std::size_t findings = 0;  // number of findings that the edits fix
};

struct FixPlan {
    std::vector<FixedFile> files;  // sorted by path
    std::size_t fixed = 0;
    std::size_t need_unsafe = 0;  // their edits may change the program's behaviour
    std::size_t conflicting = 0;  // their edits overlap an earlier edit
    std::size_t not_ours = 0;     // in notebooks, in two files, outside the project, or at an invalid place
};

// Applies the edits of the findings to the texts in report.sources. Has no side effects. If the edits of
// two findings overlap, the first finding by position is fixed and the other is not. An edit that two
// findings share is made once. Line ends stay as in the file.
FixPlan plan_fixes(const Report& report, bool with_unsafe);

}  // namespace mp::lint
