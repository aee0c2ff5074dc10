#include "analyzer/cache/file_state.hpp"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <utility>

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

}  // namespace mp::lint
