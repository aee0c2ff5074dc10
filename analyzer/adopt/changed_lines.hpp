#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/report/report.hpp"
#include "kernels/base/result.hpp"

namespace mp::lint {

// Lines that differ between a git revision and the current files. In untracked files every line counts as
// changed; ignored files have no changed lines.
class ChangedLines {
public:
    static Result<ChangedLines> since(const std::string& revision, const std::string& directory);
    // `diff`: the output of `git diff -U0`; `added`: names of new files; `root`: the work tree.
    static ChangedLines parse(std::string_view diff, const std::vector<std::string>& added,
                              const std::string& root);

    // Whether any of these lines changed. `path` is absolute, without symbolic links.
    bool contains(std::string_view path, std::size_t first, std::size_t last) const;

    // Removes the findings that are not on changed lines from the report, and counts them.
    void filter(Report&) const;

private:
    struct Range {
        std::size_t first = 0;
        std::size_t last = 0;
    };
    std::map<std::string, std::vector<Range>, std::less<>> files_;
};

}  // namespace mp::lint
