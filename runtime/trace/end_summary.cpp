#include "runtime/trace/end_summary.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

namespace mp::trace {
namespace {

constexpr std::size_t kStackBytes = 64 * 1024;
constexpr int kTenths = 100;  // of a second

struct Start {
    const char* tool;
    char* const* arguments;
    char* const* environment;
    sigset_t signals;  // as they were before we blocked them
};

// Runs in the parent's memory until the exec, with all signals blocked: system calls only.
int start(void* given) {
    const auto* const s = static_cast<const Start*>(given);
    struct sigaction plain{};
    plain.sa_handler = SIG_DFL;
    for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &plain, nullptr);
    const int null = ::open("/dev/null", O_RDWR);
    if (null >= 0) {
        ::dup2(null, STDIN_FILENO);
        ::dup2(null, STDOUT_FILENO);  // the program's stdout may be a pipe: not for us
    }
    ::syscall(SYS_close_range, 3u, ~0u, 0u);
    ::sigprocmask(SIG_SETMASK, &s->signals, nullptr);
    ::execve(s->tool, s->arguments, s->environment);
    ::_exit(127);
}

std::vector<std::string> kept_environment() {
    std::vector<std::string> kept;
    for (const char* name : {"PATH", "HOME", "TERM", "LANG", "LC_ALL", "NO_COLOR", "COLUMNS"})
        if (const char* value = std::getenv(name)) kept.push_back(std::string(name) + "=" + value);
    return kept;
}

void wait_for(pid_t child) {
    const timespec tenth{0, 100'000'000};
    for (int i = 0; i < kTenths; ++i) {
        const pid_t done = ::waitpid(child, nullptr, WNOHANG | __WALL);
        if (done == child || (done < 0 && errno != EINTR)) return;
        ::nanosleep(&tenth, nullptr);
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, __WALL);
}

}  // namespace

void print_summary(const std::string& tool, const std::string& directory) {
    if (tool.empty() || ::access(tool.c_str(), X_OK) != 0) return;
    std::string name = "mp-trace", verb = "summary", where = directory;
    char* const arguments[] = {name.data(), verb.data(), where.data(), nullptr};
    std::vector<std::string> kept = kept_environment();
    std::vector<char*> environment;
    for (std::string& variable : kept) environment.push_back(variable.data());
    environment.push_back(nullptr);
    Start s{tool.c_str(), arguments, environment.data(), {}};
    const auto stack = std::make_unique<char[]>(kStackBytes);
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &s.signals);
    // No exit signal: the child's end raises no SIGCHLD and is seen by __WALL only. Not a fork, so that no
    // handler of pthread_atfork runs.
    const pid_t child = ::clone(start, stack.get() + kStackBytes, CLONE_VM | CLONE_VFORK, &s);
    ::pthread_sigmask(SIG_SETMASK, &s.signals, nullptr);
    if (child > 0) wait_for(child);
}

}  // namespace mp::trace
