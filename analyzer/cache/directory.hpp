#pragma once

// The directory in which facts and findings are stored between runs, and the keys of what it stores.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kernels/base/result.hpp"

namespace mp::lint {

// 128 bits over everything that decides stored data besides the content of input files.
struct CacheKey {
    std::uint64_t high = 0;
    std::uint64_t low = 0;
    std::string hex() const;
};

// Parts are hashed with their lengths, so that {"ab","c"} and {"a","bc"} differ.
CacheKey make_key(std::span<const std::string_view> parts);

// $XDG_CACHE_HOME/mp-lint, else ~/.cache/mp-lint; empty when neither is known.
std::string default_cache_directory();

// Creates the directory. An Error gives the reason why it cannot be used; the run then works without a cache.
Result<std::string> open_cache_directory(const std::string& directory);

// Removes our files that no run has used for 30 days, at most once a day.
void evict_old_files(const std::string& directory);

// Records that a run has used the file, so that it is not removed.
void mark_used(const std::string& path);

}  // namespace mp::lint
