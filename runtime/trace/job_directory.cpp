#include "runtime/trace/job_directory.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>

namespace mp::trace {
namespace {

constexpr int kMostJobs = 100'000;

// "torchrun:id:w4". After a restart an elastic launch may have another size.
std::string launch_of(const Identity& id) {
    if (!id.rank.known()) return id.host + ":" + std::to_string(id.pid);
    return id.launcher + ":" + id.job + ":w";
}

enum class Taken : std::uint8_t { by_us, by_another, unknown };

Taken take(const std::string& path, const std::string& text, bool prefix_is_enough, std::string_view prefix) {
    if (::symlink(text.c_str(), path.c_str()) == 0) return Taken::by_us;
    if (errno != EEXIST) return Taken::unknown;
    char known[1024];
    const ssize_t size = ::readlink(path.c_str(), known, sizeof known);
    if (size < 0) return Taken::unknown;
    const std::string_view owner(known, static_cast<std::size_t>(size));
    return owner == text || (prefix_is_enough && owner.starts_with(prefix)) ? Taken::by_us
                                                                            : Taken::by_another;
}

// Whether this process may record into the directory.
Taken claim(const std::string& directory, const Identity& id) {
    const std::string launch = launch_of(id);
    if (!id.rank.known()) return take(directory + "/job", launch, false, {});
    const Taken job =
        take(directory + "/job", launch + std::to_string(id.world_size), id.restart > 0, launch);
    if (job != Taken::by_us) return job;
    return take(directory + "/r" + std::to_string(id.rank.value) + ".c" + std::to_string(id.restart),
                id.host + ":" + std::to_string(id.pid), false, {});
}

}  // namespace

std::string job_directory(const std::string& run_directory, const Identity& id) {
    for (int number = 1; number <= kMostJobs; ++number) {
        std::string directory = run_directory;
        if (number > 1) {
            directory += "/job." + std::to_string(number);
            if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) break;
        }
        const Taken taken = claim(directory, id);
        if (taken == Taken::by_us) return directory;
        if (taken == Taken::unknown) break;
    }
    return run_directory;
}

std::vector<std::string> directories_of(const std::string& run_directory,
                                        const std::vector<std::int64_t>& pids) {
    std::vector<std::string> out;
    for (int number = 1; number <= kMostJobs; ++number) {
        const std::string directory =
            number == 1 ? run_directory : run_directory + "/job." + std::to_string(number);
        std::error_code error;
        const std::filesystem::directory_iterator files(directory, error);
        if (error) break;
        const bool has = std::any_of(begin(files), end(files), [&](const auto& file) {
            const std::string name = file.path().filename();
            return name.ends_with(".mpt") && std::ranges::any_of(pids, [&](std::int64_t pid) {
                       return name.find(".p" + std::to_string(pid) + ".") != std::string::npos;
                   });
        });
        if (has) out.push_back(directory);
    }
    return out;
}

bool claim_summary(const std::string& directory) {
    return ::symlink("printed", (directory + "/summary").c_str()) == 0 || errno != EEXIST;
}

}  // namespace mp::trace
