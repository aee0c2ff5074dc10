#include "analyzer/cache/directory.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>

#include <xxhash.h>

namespace mp::lint {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kDay = 86'400;
constexpr std::int64_t kKeepDays = 30;
constexpr std::string_view kSuffixes[] = {".pack", ".run", ".facts"};  // .facts: of versions before 0.2
constexpr std::size_t kHexDigits = 32;

bool is_our_name(std::string_view name) {
    return name.starts_with(".new-") ||
           std::any_of(std::begin(kSuffixes), std::end(kSuffixes), [name](std::string_view s) {
               return name.ends_with(s) && name.size() == kHexDigits + s.size();
           });
}

std::int64_t now_seconds() { return static_cast<std::int64_t>(std::time(nullptr)); }

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

Result<std::string> open_cache_directory(const std::string& directory) {
    if (directory.empty())
        return Error{"no cache: neither XDG_CACHE_HOME nor HOME is set; --cache-dir names one", ""};
    std::error_code error;
    fs::create_directories(directory, error);
    if (error || ::access(directory.c_str(), W_OK | X_OK) != 0)
        return Error{"no cache: " + directory + ": " + (error ? error.message() : std::strerror(errno)), ""};
    return directory;
}

void evict_old_files(const std::string& directory) {
    const std::string stamp = directory + "/.evicted";
    struct ::stat info{};
    if (::stat(stamp.c_str(), &info) == 0 && now_seconds() - info.st_mtim.tv_sec < kDay) return;
    const int fd = ::open(stamp.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0) return;
    ::futimens(fd, nullptr);
    ::close(fd);
    std::error_code error;
    for (const auto& file : fs::directory_iterator(directory, error)) {
        // --cache-dir may name a directory that contains other files.
        const std::string name = file.path().filename().string();
        if (!is_our_name(name) || ::lstat(file.path().c_str(), &info) != 0 || !S_ISREG(info.st_mode))
            continue;
        if (now_seconds() - info.st_mtim.tv_sec > kKeepDays * kDay) ::unlink(file.path().c_str());
    }
}

void mark_used(const std::string& path) {
    struct ::stat info{};
    // Written at most once a day, which is precise enough to remove a file after 30 days.
    if (::stat(path.c_str(), &info) == 0 && now_seconds() - info.st_mtim.tv_sec > kDay)
        ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
}

}  // namespace mp::lint
