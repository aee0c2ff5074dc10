#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/cache/file_state.hpp"
#include "kernels/base/paths.hpp"
#include "kernels/base/result.hpp"

namespace mp::lint {

bool is_source(std::string_view path);         // .cpp .cc .cxx .cu
bool is_python(std::string_view path);         // .py .ipynb; stub files (.pyi) have no bodies
bool is_configuration(std::string_view path);  // .json .txt .yaml .yml, read if named by the user or by code

struct FoundFile {
    std::string path;
    FileId id;
};

struct Discovered {
    std::vector<std::string> named;    // files given by name, in that order
    std::vector<std::string> sources;  // found in directories, sorted
    std::vector<std::string> headers;  // found in directories, sorted
    std::vector<FoundFile> python;     // named ones in their order, then those in directories, sorted
    std::vector<FoundFile> texts;      // scripts, configurations and documents in directories, sorted
    std::vector<std::string> roots;    // directories that were walked, in the order given
};

// Finds the files of `inputs`. Each file is listed once, even if several names and links refer to it.
// Directories that are hidden or contain a build or installed packages are not entered unless named.
// Named Python files are in `named` and in `python`. `excluded` is true for paths that the configuration
// excludes; it does not apply to named paths. A name that is neither file nor directory is an Error.
// Directories are read on up to so many threads.
Result<Discovered> discover(const std::vector<std::string>& inputs, const std::string& working_directory,
                            const std::function<bool(const std::string&)>& excluded, int threads = 1);

}  // namespace mp::lint
