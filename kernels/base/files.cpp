#include "kernels/base/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include <xxhash.h>

#include "kernels/base/input_file.hpp"

namespace mp {
namespace {

// A name that nobody else uses: of this process, and counted.
std::string new_name_beside(const std::string& path) {
    static std::atomic<unsigned> counter{0};
    const std::size_t slash = path.rfind('/');
    return path.substr(0, slash == std::string::npos ? 0 : slash + 1) + ".new-" + std::to_string(::getpid()) +
           "-" + std::to_string(counter++);
}

}  // namespace

std::uint64_t hash_bytes(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

bool read_file(const std::string& path, std::string& into, std::uint64_t limit) {
    const InputFile file(path);
    if (!file.is_open()) return false;
    struct ::stat info{};
    const bool fits = ::fstat(file.get(), &info) == 0 && S_ISREG(info.st_mode) &&
                      static_cast<std::uint64_t>(info.st_size) <= limit;
    into.resize(fits ? static_cast<std::size_t>(info.st_size) : 0);
    into.resize(read_at(file.get(), 0, into.data(), into.size()));
    return fits;
}

Result<std::string> read_named_file(const std::string& path, std::uint64_t limit,
                                    std::string_view limit_text) {
    struct stat info{};
    if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return Error{"not a readable file", ""};
    if (static_cast<std::uint64_t>(info.st_size) > limit)
        return Error{"larger than " + std::string(limit_text), ""};
    std::string text;
    if (!read_file(path, text, limit)) return Error{"cannot be read", ""};
    return text;
}

bool write_all(int fd, std::string_view content) {
    while (!content.empty()) {
        const ssize_t put = ::write(fd, content.data(), content.size());
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return false;
        content.remove_prefix(static_cast<std::size_t>(put));
    }
    return true;
}

bool replace_file(const std::string& path, std::string_view content, const NewFile& how) {
    OutputFile file;
    file.path_ = path;
    file.how_ = how;
    return file.open_new() && file.finish(content);
}

Result<OutputFile> OutputFile::open(std::string path, const NewFile& how) {
    OutputFile out;
    out.path_ = std::move(path);
    out.how_ = how;
    struct stat info{};
    if (::stat(out.path_.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
        out.fd_ = ::open(out.path_.c_str(), O_WRONLY | O_CLOEXEC);
    } else {
        out.open_new();
    }
    if (out.fd_ < 0) return Error{std::strerror(errno), ""};
    return out;
}

bool OutputFile::open_new() {
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    std::string name = new_name_beside(path_);
    fd_ = ::open(name.c_str(), flags, how_.mode ? 0600 : 0644);
    if (fd_ >= 0) temporary_ = std::move(name);
    return fd_ >= 0;
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      how_(other.how_),
      fd_(std::exchange(other.fd_, -1)) {}

OutputFile::~OutputFile() {
    const int why = errno;  // the caller of replace_file() reads it
    if (fd_ >= 0) ::close(fd_);
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
    errno = why;
}

bool OutputFile::finish(std::string_view content) {
    if (!write_all(fd_, content)) return false;
    if (!temporary_.empty()) {
        if (how_.mode && ::fchmod(fd_, *how_.mode) != 0) return false;
        if (how_.sync && ::fsync(fd_) != 0) return false;
    }
    if (::close(std::exchange(fd_, -1)) != 0) return false;
    if (temporary_.empty()) return true;
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) return false;
    temporary_.clear();
    return true;
}

Status OutputFile::commit(std::string_view content) {
    if (finish(content)) return Done{};
    return Error{std::strerror(errno), ""};
}

}  // namespace mp
