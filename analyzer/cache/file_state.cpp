#include "analyzer/cache/file_state.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include <xxhash.h>

namespace mp::lint {

const FileStat& FileStates::stat(const std::string& path) {
    const auto [it, added] = stats_.try_emplace(path);
    if (!added) return it->second;
    struct ::stat info {};
    if (::stat(path.c_str(), &info) == 0) {
        it->second = {
            .exists = true,
            .directory = S_ISDIR(info.st_mode),
            .regular = S_ISREG(info.st_mode),
            .size = static_cast<std::uint64_t>(info.st_size),
            .mtime_ns = info.st_mtim.tv_sec * std::int64_t{1'000'000'000} + info.st_mtim.tv_nsec};
    }
    return it->second;
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

bool read_file(const std::string& path, std::string& into, std::uint64_t limit) {
    // O_NONBLOCK: opening a FIFO must not wait for a writer.
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return false;
    struct ::stat info {};
    const bool fits = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
                      static_cast<std::uint64_t>(info.st_size) <= limit;
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
