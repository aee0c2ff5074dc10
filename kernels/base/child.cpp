#include "kernels/base/child.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/base/files.hpp"

extern char** environ;

namespace mp {
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

// Takes what is read from one pipe.
using Sink = std::function<void(std::string_view)>;

Sink keep_beginning(std::string& into, std::size_t limit) {
    return [&into, limit](std::string_view text) {
        into.append(text.substr(0, limit - std::min(limit, into.size())));
    };
}

Sink keep_end(std::string& into, std::size_t limit) {
    return [&into, limit](std::string_view text) {
        into.append(text);
        if (into.size() > limit) into.erase(0, into.size() - limit);
    };
}

// Reads what is there without waiting for more. False: the other side has closed it.
bool drain(int fd, const Sink& sink) {
    constexpr int kRounds = 64;  // a child that writes without end must not keep us from looking at the clock
    std::array<char, 16384> buffer;
    for (int round = 0; round < kRounds; ++round) {
        const ssize_t n = read(fd, buffer.data(), buffer.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
        if (n == 0) return false;
        const auto size = static_cast<std::size_t>(n);
        sink({buffer.data(), size});
        if (size < buffer.size()) return true;
    }
    return true;
}

// A child that runs, the pipes that it writes to, and who takes what it writes.
struct Running {
    pid_t pid = 0;
    Pipe& out;
    Pipe& err;
    Sink to_out;
    Sink to_err;
    bool own_group = true;
};

// Waits for the child, its output and the clock together.
void collect(const Running& child, int milliseconds, ChildEnd& end) {
    constexpr int kTick = 20;         // ms between two looks at the child
    constexpr int kShortestTick = 1;  // once it has closed its output, it is about to end
    const auto deadline = Clock::now() + std::chrono::milliseconds(milliseconds);
    for (const int fd : {child.out.read, child.err.read}) fcntl(fd, F_SETFL, O_NONBLOCK);
    std::array<pollfd, 2> fds{pollfd{child.out.read, POLLIN, 0}, pollfd{child.err.read, POLLIN, 0}};
    const auto read_both = [&] {
        if (fds[0].fd >= 0 && !drain(child.out.read, child.to_out)) fds[0].fd = -1;
        if (fds[1].fd >= 0 && !drain(child.err.read, child.to_err)) fds[1].fd = -1;
    };
    int status = 0;
    for (;;) {
        poll(fds.data(), fds.size(), fds[0].fd < 0 && fds[1].fd < 0 ? kShortestTick : kTick);
        const pid_t ended = waitpid(child.pid, &status, WNOHANG);
        if (ended == child.pid || (ended < 0 && errno != EINTR)) break;
        read_both();
        if (Clock::now() < deadline) continue;
        end.timed_out = true;
        kill(child.pid, SIGKILL);
        while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
        }
        break;
    }
    if (child.own_group) kill(-child.pid, SIGKILL);  // what it has started
    read_both();  // the child has ended, so all that it wrote is in the pipe, and a pipe holds 1 MiB at most
    if (!end.timed_out && WIFSIGNALED(status)) end.signal = WTERMSIG(status);
    if (WIFEXITED(status)) end.status = WEXITSTATUS(status);
}

// Runs in the child and calls only what is safe between fork and exec. A number below 0 stands for /dev/null.
void become_child(int in, int out, int err, bool own_group) {
    if (own_group) {
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    }
    // We may ignore SIGPIPE; a child that does too would not notice a reader that is gone.
    signal(SIGPIPE, SIG_DFL);
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(in >= 0 ? in : null, STDIN_FILENO);
    dup2(out >= 0 ? out : null, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
}

// A file without a name: unlike a pipe it holds any amount, so that the child can read after we have written.
// -1 when there is nothing to read or no such file can be made.
int file_holding(std::string_view text) {
    if (text.empty()) return -1;
    const int fd = memfd_create("stdin", MFD_CLOEXEC);
    if (fd >= 0 && write_all(fd, text) && lseek(fd, 0, SEEK_SET) == 0) return fd;
    if (fd >= 0) close(fd);
    return -1;
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

// What the child needs. It is made before the child, which shares our memory until exec and may not allocate.
struct Prepared {
    std::vector<char*> arguments;
    std::vector<char*> variables;  // empty: those of this process
    const char* directory = nullptr;
    int in = -1;
    int out = -1;
    int err = -1;
    int failure = -1;  // gets errno when the program cannot be started
    bool own_group = true;
};

[[noreturn]] void exec_child(const Prepared& p) {
    become_child(p.in, p.out, p.err, p.own_group);
    if (!p.directory || chdir(p.directory) == 0)
        execvpe(p.arguments[0], p.arguments.data(), p.variables.empty() ? environ : p.variables.data());
    const int reason = errno;
    (void)!write(p.failure, &reason, sizeof reason);
    _exit(127);
}

// vfork, because fork copies the page tables of the caller, and a linked program has hundreds of megabytes.
pid_t start(const Prepared& prepared) {
    const pid_t pid =
        vfork();  // NOLINT(bugprone-unsafe-functions): posix_spawn cannot report which step failed
    if (pid == 0) exec_child(prepared);
    return pid;
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

ChildEnd run_child(const ChildCommand& command) {
    if (command.arguments.empty()) return not_started("no program");
    Pipe out, err, failure;
    if (!out.good() || !err.good() || !failure.good()) return not_started(std::strerror(errno));
    const int in = file_holding(command.input);
    if (in < 0 && !command.input.empty()) return not_started(std::strerror(errno));
    Prepared prepared{.arguments = pointers(command.arguments),
                      .variables = {},
                      .directory = command.directory.empty() ? nullptr : command.directory.c_str(),
                      .in = in,
                      .out = out.write,
                      .err = command.on_output ? out.write : err.write,
                      .failure = failure.write,
                      .own_group = command.own_group};
    if (command.environment) prepared.variables = pointers(*command.environment);
    const pid_t pid = start(prepared);
    const int reason_of_fork = errno;
    if (in >= 0) close(in);
    if (pid < 0) return not_started(std::strerror(reason_of_fork));
    out.close_write(), err.close_write(), failure.close_write();

    ChildEnd end;
    const ChildLimits& limits = command.limits;
    collect({.pid = pid,
             .out = out,
             .err = err,
             .to_out = command.on_output ? command.on_output : keep_beginning(end.out, limits.bytes),
             .to_err = keep_end(end.err, limits.error_bytes),
             .own_group = command.own_group},
            limits.milliseconds, end);
    int reason = 0;
    fcntl(failure.read, F_SETFL, O_NONBLOCK);
    if (read(failure.read, &reason, sizeof reason) == sizeof reason)
        return not_started(std::strerror(reason));
    return end;
}

Result<ChildEnd> run_tool(const std::vector<std::string>& arguments, const std::string& directory,
                          std::string_view input) {
    ChildEnd end = run_child({.arguments = arguments,
                              .directory = directory,
                              .input = input,
                              .limits = kNoLimits,
                              .own_group = false});
    if (!end.started) return Error{arguments[0] + " cannot be run: " + end.why, ""};
    return end;
}

Result<std::string> run_forked(const std::function<std::string()>& probe, const ChildLimits& limits) {
    Pipe out, err;
    if (!out.good() || !err.good()) return Error{std::strerror(errno), ""};
    const pid_t pid = fork();
    if (pid < 0) return Error{std::strerror(errno), ""};
    if (pid == 0) {
        become_child(-1, -1, err.write, true);
        // The first byte says that the text is whole: a library that calls exit() leaves none.
        const std::string text = probe();
        _exit(write_all(out.write, "+" + text) ? 0 : 1);
    }
    out.close_write(), err.close_write();
    ChildEnd end;
    collect({.pid = pid,
             .out = out,
             .err = err,
             .to_out = keep_beginning(end.out, limits.bytes),
             .to_err = keep_end(end.err, limits.error_bytes)},
            limits.milliseconds, end);
    if (!end.good()) return Error{"the probe " + describe(end, limits), ""};
    if (end.out.empty()) return Error{"the probe ended without an answer", ""};
    return end.out.substr(1);
}

}  // namespace mp
