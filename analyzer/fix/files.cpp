#include "analyzer/fix/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "analyzer/cache/file_state.hpp"
#include "analyzer/driver/child.hpp"
#include "analyzer/driver/output.hpp"
#include "analyzer/report/display.hpp"

namespace mp::lint {
namespace {

Error unwritable(const std::string& path) {
    return {path + ": cannot be written: " + std::strerror(errno), ""};
}

// The file that a path names, with symbolic links resolved.
std::string target_of(const std::string& path) {
    const std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), std::free);
    return real ? real.get() : path;
}

Status written_beside(const std::string& name, std::string_view text, mode_t mode) {
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    const int fd = ::open(name.c_str(), flags, 0600);
    if (fd < 0) return unwritable(name);
    Status done = write_all(fd, text);
    if (done && ::fchmod(fd, mode) != 0) done = unwritable(name);
    if (done && ::fsync(fd) != 0) done = unwritable(name);
    if (::close(fd) != 0 && done) done = unwritable(name);
    if (!done) ::unlink(name.c_str());
    return done;
}

}  // namespace

Status replace_file(const std::string& path, std::string_view before, std::string_view after) {
    const std::string target = target_of(path);
    struct stat info{};
    std::string now;
    if (::stat(target.c_str(), &info) != 0 || !S_ISREG(info.st_mode) || !read_file(target, now))
        return Error{path + ": is no longer a file that can be read", ""};
    if (now != before)
        return Error{path + ": changed since it was analysed, left alone", "run mp-lint again"};
    // A file without write permission is not changed, even if its directory would allow to replace it.
    if (::access(target.c_str(), W_OK) != 0) return unwritable(path);
    const std::string beside = target + ".mp-lint-" + std::to_string(::getpid());
    const Status written = written_beside(beside, after, info.st_mode & 07777);
    if (!written) return written;
    if (::rename(beside.c_str(), target.c_str()) == 0) return Done{};
    const Error error = unwritable(path);
    ::unlink(beside.c_str());
    return error;
}

Result<std::string> unified_diff(const FixedFile& file, const std::string& name) {
    // For an absolute path too, `patch -p1` looks for the part after "a/", relative to the root.
    const std::string shown = escape_controls(name.substr(name.starts_with('/') ? 1 : 0));
    const Result<ChildOutput> diff = run_child(
        {"diff", "-u", "--text", "--label", "a/" + shown, "--label", "b/" + shown, "--", file.path, "-"}, {},
        file.after);
    if (!diff) return Error{diff.error().message, "--diff needs the program diff"};
    if (diff->code > 1) return Error{"diff: " + diff->err, ""};
    return diff->out;
}

}  // namespace mp::lint
