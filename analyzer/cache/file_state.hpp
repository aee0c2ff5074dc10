#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernels/base/files.hpp"

namespace mp::lint {

// The identity of a file. An equal identity means that the content is unchanged.
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
    FileId id;
};

// Caches the results of the file system, so that a run asks once per path. Hundreds of units share their
// headers, and these system calls take most of the time of a warm run. Use it from one thread.
class FileStates {
public:
    const FileStat& stat(const std::string& path);
    // Remembers the identity of a regular file that a directory walk has already asked for.
    void set(const std::string& path, const FileId& id);
    // XXH3-64 of the content; 0 when it is not a readable regular file.
    std::uint64_t content_hash(const std::string& path);
    // The names in a directory, sorted. Empty if it is not a directory.
    const std::vector<std::string>& names(const std::string& directory);

private:
    std::unordered_map<std::string, FileStat> stats_;
    std::unordered_map<std::string, std::uint64_t> hashes_;
    std::unordered_map<std::string, std::vector<std::string>> names_;
};

// The identity of the file a stat() result describes.
FileId id_of(const struct stat&);
// `mtime_ns`, or 0 if the file is so young that it can change again within the same clock tick.
std::int64_t trusted_mtime(std::int64_t mtime_ns);
// `id` with a trusted time. A file with the time 0 is compared by its content.
FileId trusted(FileId id);

}  // namespace mp::lint
