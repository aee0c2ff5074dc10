#include "runtime/launch/run_directory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "runtime/launch/layout.hpp"
#include "runtime/launch/say.hpp"
#include "runtime/launch/words.hpp"

namespace mp::launch {
namespace {

constexpr int kMostNames = 10000;            // number of names tried
constexpr std::size_t kMostOptions = 65535;  // the preload reads the file into a buffer of this size

Error failed(const std::string& path, std::string_view why, std::string hint = "") {
    return {shell_word(path) + ": " + std::string(why), std::move(hint)};
}

bool is_empty(const std::string& path) {
    DIR* directory = ::opendir(path.c_str());
    if (!directory) return false;
    int entries = 0;
    while (entries <= 2 && ::readdir(directory)) ++entries;  // "." and ".."
    ::closedir(directory);
    return entries <= 2;
}

// The reason why the existing `path` cannot be recorded into; nothing when it can.
std::optional<std::string> unusable(const std::string& path) {
    struct stat info{};
    if (::lstat(path.c_str(), &info) != 0) return std::strerror(errno);
    if (S_ISLNK(info.st_mode)) return "is a symbolic link";
    if (!S_ISDIR(info.st_mode)) return "exists and is not a directory";
    if (info.st_uid != ::geteuid()) return "belongs to another user";
    if (::faccessat(AT_FDCWD, path.c_str(), W_OK | X_OK, AT_EACCESS) != 0) return std::strerror(errno);
    return std::nullopt;
}

std::string numbered(const std::string& name, int number) {
    return number == 1 ? name : name + "." + std::to_string(number);
}

std::string explain_mkdir(int error, const std::string& path) {
    struct stat info{};
    const bool no_parent = error == ENOENT && ::stat(parent_of(path).c_str(), &info) != 0;
    return no_parent ? "mkdir -p " + shell_word(parent_of(path))
                     : "choose a place that can be written: -o DIR";
}

}  // namespace

std::string default_run_directory(const trace::Identity& id, std::int64_t parent_pid) {
    if (id.launcher.empty()) return "mp-trace.%p";
    return id.job.empty() ? "mp-trace." + std::to_string(parent_pid) : "mp-trace.%j";
}

Status check_run_directory(const std::string& wanted, bool shared) {
    std::string path = wanted;
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    struct stat info{};
    if (::lstat(path.c_str(), &info) == 0) {
        const std::optional<std::string> why = unusable(path);
        if (why) return failed(path, *why, "choose another directory: -o DIR");
        if (shared || is_empty(path)) return Done{};
    }
    const std::string parent = parent_of(path);
    if (::stat(parent.c_str(), &info) == 0 && !S_ISDIR(info.st_mode))
        return failed(path, std::strerror(ENOTDIR), explain_mkdir(ENOTDIR, path));
    if (::faccessat(AT_FDCWD, parent.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
        return failed(path, std::strerror(errno), explain_mkdir(errno, path));
    return Done{};
}

Result<RunDirectory> make_run_directory(const std::string& wanted, bool shared) {
    std::string base = wanted;
    while (base.size() > 1 && base.ends_with('/')) base.pop_back();
    for (int number = 1; number <= kMostNames; ++number) {
        const std::string path = numbered(base, number);
        // Two attempts, because a sibling that failed may remove its empty directory in between.
        for (int attempt = 0; attempt < 2; ++attempt) {
            if (::mkdir(path.c_str(), 0700) == 0) return RunDirectory{.path = path, .created = true};
            if (errno != EEXIST) return failed(path, std::strerror(errno), explain_mkdir(errno, path));
            const std::optional<std::string> why = unusable(path);
            if (why && errno == ENOENT && attempt == 0) continue;
            if (why && (number == 1 || shared)) return failed(path, *why, "choose another directory: -o DIR");
            if (!why && (shared || is_empty(path))) return RunDirectory{.path = path};
            break;
        }
    }
    return failed(base, "this and " + std::to_string(kMostNames - 1) + " numbered names are taken",
                  "remove old recordings, or choose another directory: -o DIR");
}

Result<std::string> write_options_file(const std::string& directory, const trace::Identity& id,
                                       const trace::Options& options) {
    const Result<std::string> name =
        trace::expand_pattern("options.%h.%p", id, [](const char*) { return nullptr; }, 0);
    if (!name) return name.error();
    const std::string text = to_text(options);
    if (text.size() >= kMostOptions)
        return Error{"the options take " + std::to_string(text.size()) + " bytes, too many to hand on", ""};
    for (int number = 1; number <= kMostNames; ++number) {
        const std::string path = directory + "/" + numbered(*name, number);
        const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0 && errno == EEXIST) continue;
        if (fd < 0) return failed(path, std::strerror(errno));
        const bool written = say_on(fd, text);
        const int error = errno;
        if (::close(fd) == 0 && written) return path;
        ::unlink(path.c_str());
        return failed(path, std::strerror(written ? errno : error));
    }
    return failed(directory, "too many options files of this process number");
}

void remove_run(const RunDirectory& directory, const std::string& options_file) {
    if (!options_file.empty()) ::unlink(options_file.c_str());
    if (directory.created) ::rmdir(directory.path.c_str());
}

}  // namespace mp::launch
