#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/report/report.hpp"
#include "kernels/base/result.hpp"

namespace mp::lint {

// Lines that differ between a git revision and the files as they are now. Files that git does not
// know yet are new in every line; ignored ones have none.
class ChangedLines {
public:
    static Result<ChangedLines> since(const std::string& revision, const std::string& directory);
    // From `git diff -U0` and the names of new files; `root` is the work tree.
    static ChangedLines parse(std::string_view diff, const std::vector<std::string>& added,
                              const std::string& root);

    // Did any of these lines change? `path` is absolute, without symbolic links.
    bool contains(std::string_view path, std::size_t first, std::size_t last) const;

    // Leaves only findings on changed lines in the report, and counts the others.
    void filter(Report&) const;

private:
    struct Range {
        std::size_t first = 0;
        std::size_t last = 0;
    };
    std::map<std::string, std::vector<Range>, std::less<>> files_;
};

}  // namespace mp::lint
