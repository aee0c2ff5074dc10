#include "analyzer/cache/file_state.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <utility>

#include <xxhash.h>

namespace mp::lint {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
// A file written in the same clock tick as our read may change again without changing its mtime.
constexpr std::int64_t kFresh = 2 * kSecond;

}  // namespace

const FileStat& FileStates::stat(const std::string& path) {
    const auto [it, added] = stats_.try_emplace(path);
    if (!added) return it->second;
    struct ::stat info{};
    if (::stat(path.c_str(), &info) == 0) {
        it->second = {.exists = true,
                      .directory = S_ISDIR(info.st_mode),
                      .regular = S_ISREG(info.st_mode),
                      .id = id_of(info)};
    }
    return it->second;
}

void FileStates::set(const std::string& path, const FileId& id) {
    stats_.insert_or_assign(path, FileStat{.exists = true, .directory = false, .regular = true, .id = id});
}

std::uint64_t FileStates::content_hash(const std::string& path) {
    const auto [it, added] = hashes_.try_emplace(path, 0);
    if (!added) return it->second;
    std::string content;
    if (read_file(path, content)) it->second = hash_bytes(content);
    return it->second;
}

const std::vector<std::string>& FileStates::names(const std::string& directory) {
    const auto [it, added] = names_.try_emplace(directory);
    if (!added) return it->second;
    if (DIR* open = ::opendir(directory.c_str())) {
        while (const dirent* entry = ::readdir(open)) it->second.emplace_back(entry->d_name);
        ::closedir(open);
        std::sort(it->second.begin(), it->second.end());
    }
    return it->second;
}

std::uint64_t hash_bytes(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

FileId id_of(const struct stat& info) {
    return {.size = static_cast<std::uint64_t>(info.st_size),
            .mtime_ns = info.st_mtim.tv_sec * kSecond + info.st_mtim.tv_nsec,
            .inode = static_cast<std::uint64_t>(info.st_ino)};
}

std::int64_t trusted_mtime(std::int64_t mtime_ns) {
    return mtime_ns > static_cast<std::int64_t>(std::time(nullptr)) * kSecond - kFresh ? 0 : mtime_ns;
}

FileId trusted(FileId id) {
    id.mtime_ns = trusted_mtime(id.mtime_ns);
    return id;
}

bool replace_file(const std::string& directory, const std::string& path, std::string_view bytes) {
    static int counter = 0;
    const std::string temporary =
        directory + "/.new-" + std::to_string(::getpid()) + "-" + std::to_string(counter++);
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0) return false;
    std::size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t put = ::write(fd, bytes.data() + done, bytes.size() - done);
        if (put <= 0) break;
        done += static_cast<std::size_t>(put);
    }
    const bool whole = done == bytes.size() && ::close(fd) == 0;
    if (whole && ::rename(temporary.c_str(), path.c_str()) == 0) return true;
    const int why = errno;
    ::unlink(temporary.c_str());
    errno = why;
    return false;
}

bool read_file(const std::string& path, std::string& into, std::uint64_t limit) {
    // O_NONBLOCK: opening a FIFO must not wait for a writer.
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return false;
    struct ::stat info{};
    const bool fits =
        ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && static_cast<std::uint64_t>(info.st_size) <= limit;
    into.resize(fits ? static_cast<std::size_t>(info.st_size) : 0);
    std::size_t done = 0;
    while (fits && done < into.size()) {
        const ssize_t got = ::read(fd, into.data() + done, into.size() - done);
        if (got <= 0) break;
        done += static_cast<std::size_t>(got);
    }
    ::close(fd);
    into.resize(done);
    return fits;
}

}  // namespace mp::lint
