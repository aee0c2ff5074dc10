#include "runtime/launch/doctor/process.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace mp::launch::doctor {
namespace {

using Clock = std::chrono::steady_clock;

// Both ends close on exec, so that no child of a child inherits the other's pipe.
struct Pipe {
    int read = -1;
    int write = -1;

    Pipe() {
        std::array<int, 2> ends{};
        if (pipe2(ends.data(), O_CLOEXEC) == 0) read = ends[0], write = ends[1];
    }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;
    ~Pipe() { close_read(), close_write(); }

    bool good() const { return read >= 0; }
    void close_read() { close_one(read); }
    void close_write() { close_one(write); }

private:
    static void close_one(int& fd) {
        if (fd >= 0) close(fd);
        fd = -1;
    }
};

enum class Keep { beginning, end };

// Reads what is there without waiting for more. False: the other side has closed it.
bool drain(int fd, std::string& into, std::size_t limit, Keep keep) {
    constexpr int kRounds = 64;  // a child that writes without end must not keep us from looking at the clock
    std::array<char, 16384> buffer;
    for (int round = 0; round < kRounds; ++round) {
        const ssize_t n = read(fd, buffer.data(), buffer.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
        if (n == 0) return false;
        const auto size = static_cast<std::size_t>(n);
        if (keep == Keep::beginning) {
            into.append(buffer.data(), std::min(size, limit - std::min(limit, into.size())));
        } else {
            into.append(buffer.data(), size);
            if (into.size() > limit) into.erase(0, into.size() - limit);
        }
        if (size < buffer.size()) return true;
    }
    return true;
}

// Waits for the child, its output and the clock together.
ChildEnd collect(pid_t pid, Pipe& out, Pipe& err, const ChildLimits& limits) {
    constexpr int kTick = 20;  // ms between two looks at the child
    ChildEnd end;
    const auto deadline = Clock::now() + std::chrono::milliseconds(limits.milliseconds);
    for (const int fd : {out.read, err.read}) fcntl(fd, F_SETFL, O_NONBLOCK);
    std::array<pollfd, 2> fds{pollfd{out.read, POLLIN, 0}, pollfd{err.read, POLLIN, 0}};
    const auto read_both = [&] {
        if (fds[0].fd >= 0 && !drain(out.read, end.out, limits.bytes, Keep::beginning)) fds[0].fd = -1;
        if (fds[1].fd >= 0 && !drain(err.read, end.err, limits.error_bytes, Keep::end)) fds[1].fd = -1;
    };
    int status = 0;
    for (;;) {
        poll(fds.data(), fds.size(), kTick);
        const pid_t ended = waitpid(pid, &status, WNOHANG);
        if (ended == pid || (ended < 0 && errno != EINTR)) break;
        read_both();
        if (Clock::now() < deadline) continue;
        end.timed_out = true;
        kill(pid, SIGKILL);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
        }
        break;
    }
    kill(-pid, SIGKILL);  // whatever it has started
    read_both();  // the child has ended, so all that it wrote is in the pipe, and a pipe holds 1 MiB at most
    if (!end.timed_out && WIFSIGNALED(status)) end.signal = WTERMSIG(status);
    if (WIFEXITED(status)) end.status = WEXITSTATUS(status);
    return end;
}

void become_child(int standard_out, int standard_error) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, STDIN_FILENO);
    dup2(standard_out >= 0 ? standard_out : null, STDOUT_FILENO);
    dup2(standard_error, STDERR_FILENO);
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
    std::vector<char*> list;
    for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));
    list.push_back(nullptr);
    return list;
}

ChildEnd not_started(std::string why) {
    ChildEnd end;
    end.started = false;
    end.why = std::move(why);
    return end;
}

bool write_all(int fd, const std::string& text) {
    std::size_t done = 0;
    while (done < text.size()) {
        const ssize_t n = write(fd, text.data() + done, text.size() - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        done += static_cast<std::size_t>(n);
    }
    return true;
}

}  // namespace

std::string describe(const ChildEnd& end, const ChildLimits& limits) {
    if (!end.started) return "could not be started: " + end.why;
    if (end.timed_out)
        return "did not answer within " + std::to_string((limits.milliseconds + 999) / 1000) + " s";
    if (end.signal) {
        const char* const name = strsignal(end.signal);
        return "was killed by signal " + std::to_string(end.signal) +
               (name ? std::string(" (") + name + ")" : "");
    }
    return "exited with status " + std::to_string(end.status);
}

ChildEnd run_program(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
                     const ChildLimits& limits) {
    if (argv.empty()) return not_started("no program");
    Pipe out, err, failure;
    if (!out.good() || !err.good() || !failure.good()) return not_started(std::strerror(errno));
    std::vector<char*> arguments = pointers(argv), variables = pointers(environment);
    const pid_t pid = fork();
    if (pid < 0) return not_started(std::strerror(errno));
    if (pid == 0) {
        become_child(out.write, err.write);
        execvpe(arguments[0], arguments.data(), variables.data());
        const int reason = errno;
        (void)!write(failure.write, &reason, sizeof reason);
        _exit(127);
    }
    out.close_write(), err.close_write(), failure.close_write();
    ChildEnd end = collect(pid, out, err, limits);
    int reason = 0;
    fcntl(failure.read, F_SETFL, O_NONBLOCK);
    if (read(failure.read, &reason, sizeof reason) == sizeof reason)
        return not_started(std::strerror(reason));
    return end;
}

Result<std::string> run_forked(const std::function<std::string()>& probe, const ChildLimits& limits) {
    Pipe out, err;
    if (!out.good() || !err.good()) return Error{std::strerror(errno), ""};
    const pid_t pid = fork();
    if (pid < 0) return Error{std::strerror(errno), ""};
    if (pid == 0) {
        become_child(-1, err.write);
        // The first byte says that the text is whole: a library that calls exit() leaves none.
        const std::string text = probe();
        _exit(write_all(out.write, "+" + text) ? 0 : 1);
    }
    out.close_write(), err.close_write();
    const ChildEnd end = collect(pid, out, err, limits);
    if (!end.good()) return Error{"the probe " + describe(end, limits), ""};
    if (end.out.empty()) return Error{"the probe ended without an answer", ""};
    return end.out.substr(1);
}

}  // namespace mp::launch::doctor
