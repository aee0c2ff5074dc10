#include "analyzer/fix/files.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "kernels/base/child.hpp"
#include "kernels/base/files.hpp"
#include "kernels/base/paths.hpp"
#include "kernels/base/text.hpp"

namespace mp::lint {
namespace {

Error unwritable(const std::string& path) {
    return {path + ": cannot be written: " + std::strerror(errno), ""};
}

}  // namespace

Status replace_unchanged(const std::string& path, std::string_view before, std::string_view after) {
    const std::string target = real_path(path);
    struct stat info{};
    std::string now;
    if (::stat(target.c_str(), &info) != 0 || !S_ISREG(info.st_mode) || !read_file(target, now))
        return Error{path + ": is no longer a file that can be read", ""};
    if (now != before)
        return Error{path + ": changed since it was analysed, left alone", "run mp-lint again"};
    // A file without write permission is not changed, even if its directory would allow to replace it.
    if (::access(target.c_str(), W_OK) != 0) return unwritable(path);
    const NewFile same_mode{.mode = info.st_mode & 07777, .sync = true};
    if (!replace_file(target, after, same_mode)) return unwritable(path);
    return Done{};
}

Result<std::string> unified_diff(const FixedFile& file, const std::string& name) {
    // For an absolute path too, `patch -p1` looks for the part after "a/", relative to the root.
    const std::string shown = escape_controls(name.substr(name.starts_with('/') ? 1 : 0));
    const Result<ChildEnd> diff = run_tool(
        {"diff", "-u", "--text", "--label", "a/" + shown, "--label", "b/" + shown, "--", file.path, "-"}, {},
        file.after);
    if (!diff) return Error{diff.error().message, "--diff needs the program diff"};
    if (diff->signal || diff->status > 1) return Error{"diff: " + diff->err, ""};
    return diff->out;
}

}  // namespace mp::lint
