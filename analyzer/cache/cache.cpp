#include "analyzer/cache/cache.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <utility>

#include <xxhash.h>

namespace mp::lint {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kDay = 86'400;
constexpr std::int64_t kKeepDays = 30;
// Include trees are shallow; past these bounds the unit is simply not cached.
constexpr std::size_t kMaxDirectories = 4000;
constexpr std::string_view kSuffixes[] = {".facts", ".pack", ".run"};
constexpr std::size_t kHexDigits = 32;

bool is_our_name(std::string_view name) {
    return name.starts_with(".new-") ||
           std::any_of(std::begin(kSuffixes), std::end(kSuffixes), [name](std::string_view s) {
               return name.ends_with(s) && name.size() == kHexDigits + s.size();
           });
}

std::int64_t now_seconds() { return static_cast<std::int64_t>(std::time(nullptr)); }

// Every component of every path: the only names that an include of the unit can begin with.
std::unordered_set<std::string> components(const std::vector<CachedFile>& files,
                                           const std::vector<std::string>& missing) {
    std::unordered_set<std::string> out;
    auto add = [&out](std::string_view path) {
        while (!path.empty()) {
            const std::size_t slash = path.find('/');
            if (slash != 0) out.emplace(path.substr(0, slash));
            if (slash == std::string_view::npos) break;
            path.remove_prefix(slash + 1);
        }
    };
    for (const CachedFile& f : files) add(f.path);
    for (const std::string& name : missing) add(name);
    return out;
}

std::uint64_t hash_names(const std::vector<std::string>& all,
                         const std::unordered_set<std::string>& relevant) {
    std::string joined;
    for (const std::string& name : all) {
        if (!relevant.contains(name)) continue;
        joined += name;
        joined += '\0';
    }
    return hash_bytes(joined);
}

bool is_system(std::string_view path) {
    return path.starts_with("/usr/include") || path.starts_with("/usr/lib");
}

}  // namespace

std::string CacheKey::hex() const {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string out;
    for (const std::uint64_t half : {high, low}) {
        for (int shift = 60; shift >= 0; shift -= 4) out += kDigits[(half >> shift) & 15];
    }
    return out;
}

CacheKey make_key(std::span<const std::string_view> parts) {
    XXH3_state_t* state = XXH3_createState();
    XXH3_128bits_reset(state);
    for (const std::string_view part : parts) {
        const std::uint64_t size = part.size();
        XXH3_128bits_update(state, &size, sizeof size);
        XXH3_128bits_update(state, part.data(), part.size());
    }
    const XXH128_hash_t hash = XXH3_128bits_digest(state);
    XXH3_freeState(state);
    return {.high = hash.high64, .low = hash.low64};
}

std::string default_cache_directory() {
    const char* xdg = std::getenv("XDG_CACHE_HOME");
    if (xdg && xdg[0] == '/') return std::string(xdg) + "/mp-lint";
    const char* home = std::getenv("HOME");
    if (home && home[0] == '/') return std::string(home) + "/.cache/mp-lint";
    return {};
}

Cache Cache::disabled() { return Cache(); }

Cache Cache::open(std::string directory) {
    Cache cache;
    if (directory.empty()) {
        cache.warn("no cache: neither XDG_CACHE_HOME nor HOME is set; --cache-dir names one");
        return cache;
    }
    std::error_code error;
    fs::create_directories(directory, error);
    if (error || ::access(directory.c_str(), W_OK | X_OK) != 0) {
        cache.warn("no cache: " + directory + ": " + (error ? error.message() : std::strerror(errno)));
        return cache;
    }
    cache.directory_ = std::move(directory);
    return cache;
}

void Cache::warn(std::string message) {
    if (std::find(warnings_.begin(), warnings_.end(), message) == warnings_.end()) {
        warnings_.push_back(std::move(message));
    }
}

std::string Cache::path_of(const CacheKey& key) const {
    return directory_ + "/" + key.hex() + std::string(kSuffixes[0]);
}

bool Cache::same_files(CacheEntry& entry, bool& refreshed) {
    for (CachedFile& f : entry.files) {
        const FileStat& now = files_->stat(f.path);
        if (!now.exists || now.size != f.size) return false;
        if (now.mtime_ns == f.mtime_ns) continue;
        if (!now.regular || files_->content_hash(f.path) != f.hash) return false;
        // Untouched content under a new mtime: a fresh checkout. Remember it for the next run.
        const std::int64_t mtime = trusted_mtime(now.mtime_ns);
        refreshed |= mtime != f.mtime_ns;
        f.mtime_ns = mtime;
    }
    return true;
}

bool Cache::same_directories(CacheEntry& entry, bool& refreshed) {
    std::unordered_set<std::string> relevant;
    for (CachedDirectory& d : entry.directories) {
        const FileStat& now = files_->stat(d.path);
        if (now.mtime_ns == d.mtime_ns) continue;
        if (relevant.empty()) relevant = components(entry.files, entry.missing);
        if (hash_names(files_->names(d.path), relevant) != d.names) return false;
        const std::int64_t mtime = trusted_mtime(now.mtime_ns);
        refreshed |= mtime != d.mtime_ns;
        d.mtime_ns = mtime;
    }
    return true;
}

std::optional<std::string> Cache::find(const CacheKey& key) {
    if (!enabled()) return std::nullopt;
    const std::string path = path_of(key);
    std::string bytes;
    if (!read_file(path, bytes)) return std::nullopt;
    std::optional<CacheEntry> entry = read_entry(bytes);
    std::optional<std::string> text;
    if (entry) {
        bool refreshed = false;
        if (!same_files(*entry, refreshed) || !same_directories(*entry, refreshed)) return std::nullopt;
        text = unpack_text(*entry);
        if (text && refreshed) write(path, write_entry(*entry));
    }
    if (!text) {
        warn("cache: damaged entries in " + directory_ + " were made anew");
        return std::nullopt;
    }
    // The mtime of an entry is when it was last of use; a day's precision is enough for eviction.
    struct ::stat info{};
    if (::stat(path.c_str(), &info) == 0 && now_seconds() - info.st_mtim.tv_sec > kDay) {
        ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
    }
    return text;
}

// The include roots and, below them, every directory whose name a path of the unit contains.
std::vector<CachedDirectory> Cache::directories_of(const std::unordered_set<std::string>& relevant,
                                                   std::vector<std::string> roots) {
    std::vector<CachedDirectory> out;
    std::unordered_set<std::string> seen;
    while (!roots.empty() && out.size() <= kMaxDirectories) {
        std::string path = std::move(roots.back());
        roots.pop_back();
        if (!seen.insert(path).second) continue;
        // Directories that do not exist are kept too: they may appear.
        const FileStat& now = files_->stat(path);
        const std::vector<std::string>& names = files_->names(path);
        out.push_back(
            {.path = path, .mtime_ns = trusted_mtime(now.mtime_ns), .names = hash_names(names, relevant)});
        if (!now.directory) continue;
        for (const std::string& name : names) {
            if (name == "." || name == ".." || !relevant.contains(name)) continue;
            if (files_->stat(path + "/" + name).directory) roots.push_back(path + "/" + name);
        }
    }
    return out;
}

void Cache::store(const CacheKey& key, const Unit& unit, std::string_view text,
                  std::span<const std::string> include_roots) {
    if (!enabled() || unit.dependencies.empty()) return;
    CacheEntry entry;
    std::vector<std::string> roots(include_roots.begin(), include_roots.end());
    for (const Dependency& d : unit.dependencies) {
        const std::string path(d.path.str());
        const FileStat& now = files_->stat(path);
        // Changed since it was read, or not a file whose content can be compared: not cacheable.
        if (!now.regular || (d.mtime_ns != 0 && (d.mtime_ns != now.mtime_ns || d.size != now.size))) return;
        const std::uint64_t hash = d.hash ? d.hash : files_->content_hash(path);
        entry.files.push_back(
            {.path = path, .size = now.size, .mtime_ns = trusted_mtime(now.mtime_ns), .hash = hash});
        if (!is_system(path)) roots.push_back(fs::path(path).parent_path().string());
    }
    for (const Symbol name : unit.coverage.missing_headers) entry.missing.emplace_back(name.str());
    entry.directories = directories_of(components(entry.files, entry.missing), std::move(roots));
    if (entry.directories.size() > kMaxDirectories) return;
    entry.raw_size = text.size();
    entry.packed = pack_text(text);
    if (entry.packed.empty()) return;
    if (!write(path_of(key), write_entry(entry))) {
        warn("cache: cannot write to " + directory_ + ": " + std::strerror(errno));
    }
}

bool Cache::write(const std::string& path, std::string_view bytes) { return replace_file(path, bytes); }

void Cache::evict() {
    if (!enabled()) return;
    const std::string stamp = directory_ + "/.evicted";
    struct ::stat info{};
    if (::stat(stamp.c_str(), &info) == 0 && now_seconds() - info.st_mtim.tv_sec < kDay) return;
    const int fd = ::open(stamp.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0) return;
    ::futimens(fd, nullptr);
    ::close(fd);
    std::error_code error;
    for (const auto& file : fs::directory_iterator(directory_, error)) {
        // Only what we made: --cache-dir may name a directory with other things in it.
        const std::string name = file.path().filename().string();
        if (!is_our_name(name) || ::lstat(file.path().c_str(), &info) != 0 || !S_ISREG(info.st_mode))
            continue;
        if (now_seconds() - info.st_mtim.tv_sec > kKeepDays * kDay) ::unlink(file.path().c_str());
    }
}

}  // namespace mp::lint
