#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mp::lint {

struct CachedFile {
    std::string path;
    std::uint64_t size = 0;
    std::int64_t mtime_ns = 0;  // 0: too fresh to be trusted, compare the content
    std::uint64_t hash = 0;
};

// A directory in which a file that appears could change what an #include finds.
struct CachedDirectory {
    std::string path;
    std::int64_t mtime_ns = 0;
    std::uint64_t names = 0;  // hash of the names in it that an #include of the unit could mean
};

// What one cache file holds. Layout, little-endian:
//   "MPLC" version:u32  check:u64 (XXH3 of all that follows)
//   count:u32 { length:u32 path  size:u64 mtime:i64 hash:u64 }      files
//   count:u32 { length:u32 name }                                   headers that were missing
//   count:u32 { length:u32 path  mtime:i64 names:u64 }              directories
//   raw:u64   zstd frame of the facts text, to the end
struct CacheEntry {
    std::vector<CachedFile> files;
    std::vector<std::string> missing;
    std::vector<CachedDirectory> directories;
    std::uint64_t raw_size = 0;
    std::string packed;  // zstd
};

std::string write_entry(const CacheEntry&);
// Nothing when the bytes are not an intact entry of this version.
std::optional<CacheEntry> read_entry(std::string_view bytes);

std::string pack_text(std::string_view text);
std::optional<std::string> unpack_text(const CacheEntry&);

}  // namespace mp::lint
