#include "analyzer/driver/output.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "kernels/base/suggest.hpp"

namespace mp::lint {

Result<Output> parse_output(std::string_view text) {
    static constexpr std::array<std::string_view, 8> kNames{"text",   "json",   "sarif", "github",
                                                            "gitlab", "rdjson", "junit", "markdown"};
    const std::size_t equals = text.find('=');
    const std::string_view name = text.substr(0, equals);
    Output out;
    for (std::size_t i = 0; i < kNames.size(); ++i) {
        if (name != kNames[i]) continue;
        out.format = static_cast<Format>(i);
        if (equals != std::string_view::npos) out.file = text.substr(equals + 1);
        if (equals != std::string_view::npos && out.file.empty()) {
            return Error{"--output " + std::string(text) + ": no file name after '='", ""};
        }
        if (out.file == "-") out.file.clear();
        return out;
    }
    std::string hint = did_you_mean(name, kNames);
    if (hint.empty()) hint = "'mp-lint --help' lists the formats";
    return Error{"--output: unknown format '" + std::string(name) + "'", hint};
}

Result<OutputFile> OutputFile::open(std::string path) {
    OutputFile out;
    struct stat info{};
    const bool special = ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
    if (!special) out.temporary_ = path + ".new-" + std::to_string(::getpid());
    const std::string& name = special ? path : out.temporary_;
    const int flags = special ? O_WRONLY | O_CLOEXEC : O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    out.fd_ = ::open(name.c_str(), flags, 0644);
    if (out.fd_ < 0) {
        const std::string why = std::strerror(errno);
        out.temporary_.clear();
        return Error{path + ": cannot be written: " + why, ""};
    }
    out.path_ = std::move(path);
    return out;
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      fd_(std::exchange(other.fd_, -1)) {}

OutputFile::~OutputFile() {
    if (fd_ >= 0) ::close(fd_);
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Status OutputFile::commit(std::string_view content) {
    Status written = write_all(fd_, content);
    if (::close(std::exchange(fd_, -1)) != 0 && written) written = Error{std::strerror(errno), ""};
    if (!written) return Error{path_ + ": " + written.error().message, ""};
    if (temporary_.empty()) return Done{};
    if (::rename(temporary_.c_str(), path_.c_str()) != 0)
        return Error{path_ + ": " + std::strerror(errno), ""};
    temporary_.clear();
    return Done{};
}

Status write_all(int fd, std::string_view content) {
    while (!content.empty()) {
        const ssize_t put = ::write(fd, content.data(), content.size());
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return Error{std::strerror(errno), ""};
        content.remove_prefix(static_cast<std::size_t>(put));
    }
    return Done{};
}

}  // namespace mp::lint
