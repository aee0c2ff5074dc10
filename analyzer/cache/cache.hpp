#pragma once

// Facts of units that did not change since they were made. An entry is used only when every file
// the unit read is unchanged (size and mtime; when those differ, content) and no file has appeared
// that one of its includes would now find first. Two ways in which a stale entry could still be
// used are known and accepted: a header named only in a `__has_include` that was false and appears
// later, and a file changed within its size and mtime (git and make trust the same).

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "analyzer/cache/entry.hpp"
#include "analyzer/cache/file_state.hpp"
#include "analyzer/facts/model.hpp"

namespace mp::lint {

// 128 bits over everything that decides the facts besides file contents.
struct CacheKey {
    std::uint64_t high = 0;
    std::uint64_t low = 0;
    std::string hex() const;
};

// FrontEnds are hashed with their lengths, so that {"ab","c"} and {"a","bc"} differ.
CacheKey make_key(std::span<const std::string_view> parts);

// $XDG_CACHE_HOME/mp-lint, else ~/.cache/mp-lint; empty when neither is known.
std::string default_cache_directory();

// Safe under several runs at a time: entries are written beside and renamed into place.
class Cache {
public:
    // Never an error: a cache that cannot be used is a warning and finds nothing.
    static Cache open(std::string directory);
    static Cache disabled();

    bool enabled() const { return !directory_.empty(); }
    const std::string& directory() const { return directory_; }  // empty: disabled

    // The facts text of a unit, when it is still true.
    std::optional<std::string> find(const CacheKey& key);

    // Where includes may be looked up, for noticing files that appear: -I directories and the like.
    void store(const CacheKey& key, const Unit& unit, std::string_view text,
               std::span<const std::string> include_roots);

    // Removes what no run has used for 30 days; does its work at most once a day.
    void evict();

    // What went wrong, each said once.
    const std::vector<std::string>& warnings() const { return warnings_; }
    FileStates& files() { return *files_; }

private:
    std::string path_of(const CacheKey& key) const;
    void warn(std::string message);
    bool same_files(CacheEntry& entry, bool& refreshed);
    bool same_directories(CacheEntry& entry, bool& refreshed);
    std::vector<CachedDirectory> directories_of(const std::unordered_set<std::string>& names,
                                                std::vector<std::string> roots);
    bool write(const std::string& path, std::string_view bytes);

    std::string directory_;
    std::vector<std::string> warnings_;
    std::unique_ptr<FileStates> files_ = std::make_unique<FileStates>();
};

}  // namespace mp::lint
