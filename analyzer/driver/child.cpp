#include "analyzer/driver/child.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "analyzer/driver/output.hpp"

extern char** environ;

namespace mp::lint {
namespace {

// A file without a name: unlike a pipe it holds any amount, so nobody has to read while the child
// writes.
class Stream {
public:
    Stream() : fd_(::memfd_create("mp-lint", MFD_CLOEXEC)) {}
    ~Stream() {
        if (fd_ >= 0) ::close(fd_);
    }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    int fd() const { return fd_; }
    bool fill(std::string_view text) const { return write_all(fd_, text) && ::lseek(fd_, 0, SEEK_SET) == 0; }
    std::string content() const {
        std::string text;
        char buffer[1 << 16];
        ::lseek(fd_, 0, SEEK_SET);
        for (;;) {
            const ssize_t got = ::read(fd_, buffer, sizeof buffer);
            if (got < 0 && errno == EINTR) continue;
            if (got <= 0) return text;
            text.append(buffer, static_cast<std::size_t>(got));
        }
    }

private:
    int fd_;
};

// posix_spawn's settings, released with their scope.
class Settings {
public:
    Settings() {
        ::posix_spawn_file_actions_init(&actions);
        ::posix_spawnattr_init(&attributes);
        // We ignore SIGPIPE; a child that does too would not notice a reader that is gone.
        sigset_t set;
        ::sigemptyset(&set);
        ::sigaddset(&set, SIGPIPE);
        ::posix_spawnattr_setsigdefault(&attributes, &set);
        ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    }
    ~Settings() {
        ::posix_spawn_file_actions_destroy(&actions);
        ::posix_spawnattr_destroy(&attributes);
    }
    Settings(const Settings&) = delete;
    Settings& operator=(const Settings&) = delete;

    posix_spawn_file_actions_t actions{};
    posix_spawnattr_t attributes{};
};

}  // namespace

Result<ChildOutput> run_child(const std::vector<std::string>& arguments, const std::string& directory,
                              std::string_view input) {
    const Stream in, out, err;
    if (in.fd() < 0 || out.fd() < 0 || err.fd() < 0 || !in.fill(input))
        return Error{arguments[0] + " cannot be run: " + std::strerror(errno), ""};
    Settings settings;
    ::posix_spawn_file_actions_adddup2(&settings.actions, in.fd(), STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&settings.actions, out.fd(), STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&settings.actions, err.fd(), STDERR_FILENO);
    if (!directory.empty()) ::posix_spawn_file_actions_addchdir_np(&settings.actions, directory.c_str());
    std::vector<std::string> words = arguments;
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_t child = 0;
    const int failed =
        ::posix_spawnp(&child, argv[0], &settings.actions, &settings.attributes, argv.data(), environ);
    if (failed) return Error{arguments[0] + " cannot be run: " + std::strerror(failed), ""};
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return ChildOutput{.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
                       .out = out.content(),
                       .err = err.content()};
}

}  // namespace mp::lint
