#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernels/base/files.hpp"

namespace mp::lint {

// What tells that a file is still the one that was read.
struct FileId {
    std::uint64_t size = 0;
    std::int64_t mtime_ns = 0;
    std::uint64_t inode = 0;

    friend bool operator==(const FileId&, const FileId&) = default;
};

struct FileStat {
    bool exists = false;
    bool directory = false;
    bool regular = false;
    std::uint64_t size = 0;
    std::int64_t mtime_ns = 0;
};

// What the file system says, asked once per path and run: hundreds of units share their headers,
// and a warm run is little else than these questions. Not for several threads.
class FileStates {
public:
    const FileStat& stat(const std::string& path);
    // XXH3-64 of the content; 0 when it is not a readable regular file.
    std::uint64_t content_hash(const std::string& path);
    // Names in a directory, sorted; empty when it is none.
    const std::vector<std::string>& names(const std::string& directory);

private:
    std::unordered_map<std::string, FileStat> stats_;
    std::unordered_map<std::string, std::uint64_t> hashes_;
    std::unordered_map<std::string, std::vector<std::string>> names_;
};

// The identity of the file a stat() result describes.
FileId id_of(const struct stat&);
// `mtime_ns`, or 0 when a file that young may yet change without changing it.
std::int64_t trusted_mtime(std::int64_t mtime_ns);

}  // namespace mp::lint
