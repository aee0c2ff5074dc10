#include "analyzer/driver/pool.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <deque>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MP_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MP_SANITIZED 1
#endif

namespace mp::lint {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kStack = std::uint64_t{256} << 20;  // deep expressions recurse
constexpr std::size_t kChunk = std::size_t{1} << 18;

bool send_all(int fd, const char* data, std::size_t size) {
    while (size > 0) {
        const ssize_t put = ::send(fd, data, size, MSG_NOSIGNAL);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return false;
        data += put;
        size -= static_cast<std::size_t>(put);
    }
    return true;
}

bool receive_all(int fd, char* data, std::size_t size) {
    while (size > 0) {
        const ssize_t got = ::recv(fd, data, size, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        data += got;
        size -= static_cast<std::size_t>(got);
    }
    return true;
}

// Lowers the soft limit. `raise`: raises it, as for the stack, as far as the hard limit allows.
void set_soft_limit(int what, std::uint64_t value, bool raise) {
    rlimit limit{};
    if (::getrlimit(static_cast<__rlimit_resource>(what), &limit) != 0) return;
    const rlim_t wanted = std::min<rlim_t>(value, limit.rlim_max);
    if (raise ? wanted > limit.rlim_cur : wanted < limit.rlim_cur) limit.rlim_cur = wanted;
    ::setrlimit(static_cast<__rlimit_resource>(what), &limit);
}

// Limits a worker whose parent cannot kill it, for example because the parent is stopped in a debugger.
void limit_cpu(double timeout) {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    const double spent = static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec);
    rlimit limit{};
    ::getrlimit(RLIMIT_CPU, &limit);
    limit.rlim_cur = std::min(limit.rlim_max, static_cast<rlim_t>(std::ceil(spent + 2 * timeout + 10)));
    ::setrlimit(RLIMIT_CPU, &limit);
}

[[noreturn]] void serve(int fd, pid_t parent, const PoolOptions& options,
                        const std::function<std::string(std::size_t)>& work) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    set_soft_limit(RLIMIT_CORE, 0, false);
    set_soft_limit(RLIMIT_STACK, kStack, true);
#ifndef MP_SANITIZED  // their shadow memory is larger than any sensible limit
    set_soft_limit(RLIMIT_AS, options.memory, false);
#endif
    // The output of a compiler front end is discarded. Facts are sent through `fd`.
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (const int standard : {0, 1, 2}) ::dup2(null, standard);

    std::uint64_t index = 0;
    while (receive_all(fd, reinterpret_cast<char*>(&index), sizeof index)) {
        limit_cpu(options.timeout);
        std::string output;
        try {
            output = work(static_cast<std::size_t>(index));
        } catch (const std::exception&) {
            std::abort();  // counted like any other crash of the job
        }
        const std::uint64_t size = output.size();
        if (!send_all(fd, reinterpret_cast<const char*>(&size), sizeof size)) break;
        if (!send_all(fd, output.data(), output.size())) break;
    }
    ::_exit(0);
}

struct Worker {
    pid_t pid = -1;
    int fd = -1;
    int done = 0;
    std::optional<std::size_t> job;
    Clock::time_point started;
    std::string received;
};

class Pool {
public:
    Pool(std::size_t count, const PoolOptions& options, const std::function<std::string(std::size_t)>& work,
         const std::function<void(std::size_t, JobOutcome)>& finished)
        : options_(options), work_(work), finished_(finished), retried_(count, false) {
        for (std::size_t i = 0; i < count; ++i) waiting_.push_back(i);
    }

    ~Pool() {
        for (Worker& w : workers_) stop(w, true);
    }

    void run(const std::function<bool()>& meanwhile) {
        bool more = meanwhile != nullptr;
        while (!waiting_.empty() || busy() > 0) {
            fill();
            if (busy() == 0) {
                refuse_all();
                return;
            }
            more = more && meanwhile();
            wait(!more);
        }
    }

private:
    std::size_t busy() const {
        return static_cast<std::size_t>(std::count_if(workers_.begin(), workers_.end(),
                                                      [](const Worker& w) { return w.job.has_value(); }));
    }

    bool start_worker() {
        int pair[2];
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return false;
        std::fflush(nullptr);  // otherwise the child would print our buffers again
        const pid_t parent = ::getpid();
        const pid_t pid = ::fork();
        if (pid == 0) {
            ::close(pair[0]);
            for (const Worker& w : workers_) ::close(w.fd);
            serve(pair[1], parent, options_, work_);
        }
        ::close(pair[1]);
        if (pid < 0) {
            ::close(pair[0]);
            return false;
        }
        Worker& w = workers_.emplace_back();
        w.pid = pid;
        w.fd = pair[0];
        return true;
    }

    void fill() {
        for (std::size_t i = workers_.size(); i-- > 0;) {
            if (!workers_[i].job && workers_[i].done >= options_.jobs_per_worker) retire(i, false);
        }
        while (!waiting_.empty() && busy() < static_cast<std::size_t>(std::max(1, options_.jobs))) {
            auto idle =
                std::find_if(workers_.begin(), workers_.end(), [](const Worker& w) { return !w.job; });
            if (idle == workers_.end()) {
                if (!start_worker()) return;
                idle = workers_.end() - 1;
            }
            assign(*idle);
        }
    }

    void assign(Worker& w) {
        const std::uint64_t index = waiting_.front();
        waiting_.pop_front();
        w.job = static_cast<std::size_t>(index);
        w.started = Clock::now();
        w.received.clear();
        // The next poll detects a worker that died while idle.
        send_all(w.fd, reinterpret_cast<const char*>(&index), sizeof index);
    }

    double seconds_of(const Worker& w) const {
        return std::chrono::duration<double>(Clock::now() - w.started).count();
    }

    // Waits until data arrives, or if not `patiently` handles only data that is there already.
    void wait(bool patiently) {
        std::vector<pollfd> polled;
        double left = patiently ? options_.timeout : 0;
        for (const Worker& w : workers_) {
            polled.push_back({.fd = w.job ? w.fd : -1, .events = POLLIN, .revents = 0});
            if (w.job) left = std::min(left, options_.timeout - seconds_of(w));
        }
        const double milliseconds = std::clamp(std::ceil(left * 1000), 0.0, 3'600'000.0);
        const int ready = ::poll(polled.data(), polled.size(), static_cast<int>(milliseconds));
        // From the back: a worker that ends is removed, and only later ones move.
        for (std::size_t i = workers_.size(); i-- > 0;) {
            if (!workers_[i].job) continue;
            if (ready > 0 && polled[i].revents != 0) receive(i);
            if (i < workers_.size() && workers_[i].job && seconds_of(workers_[i]) >= options_.timeout)
                expire(i);
        }
    }

    void receive(std::size_t i) {
        Worker& w = workers_[i];
        buffer_.resize(kChunk);
        const ssize_t got = ::recv(w.fd, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
        if (got <= 0) return crashed(i);
        w.received.append(buffer_.data(), static_cast<std::size_t>(got));
        std::uint64_t size = 0;
        if (w.received.size() < sizeof size) return;
        std::memcpy(&size, w.received.data(), sizeof size);
        if (w.received.size() - sizeof size < size) return;
        const std::size_t job = *w.job;
        JobOutcome outcome{.output = w.received.substr(sizeof size), .message = {}, .seconds = seconds_of(w)};
        w.job.reset();
        w.received.clear();
        ++w.done;
        finished_(job, std::move(outcome));
    }

    void crashed(std::size_t i) {
        const Worker w = workers_[i];
        const std::string why = retire(i, false);
        if (w.done > 0 && !retried_[*w.job]) {
            retried_[*w.job] = true;
            waiting_.push_front(*w.job);
            return;
        }
        finished_(
            *w.job,
            {.state = JobOutcome::State::crashed, .output = {}, .message = why, .seconds = seconds_of(w)});
    }

    void expire(std::size_t i) {
        const Worker w = workers_[i];
        retire(i, true);
        char why[64];
        std::snprintf(why, sizeof why, "not done within %g s", options_.timeout);
        finished_(
            *w.job,
            {.state = JobOutcome::State::timeout, .output = {}, .message = why, .seconds = seconds_of(w)});
    }

    // How the process ended, in words.
    static std::string stop(const Worker& w, bool kill) {
        if (kill) ::kill(w.pid, SIGKILL);
        ::close(w.fd);
        int status = 0;
        while (::waitpid(w.pid, &status, 0) < 0 && errno == EINTR) {
        }
        if (WIFSIGNALED(status)) {
            const int signal = WTERMSIG(status);
            return "killed by signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
        }
        return "ended with status " + std::to_string(WEXITSTATUS(status));
    }

    std::string retire(std::size_t i, bool kill) {
        const Worker w = std::move(workers_[i]);
        workers_.erase(workers_.begin() + static_cast<std::ptrdiff_t>(i));
        return stop(w, kill);
    }

    void refuse_all() {
        const std::string why = std::string("no process can be started: ") + std::strerror(errno);
        for (const std::size_t job : waiting_) {
            finished_(job, {.state = JobOutcome::State::crashed, .output = {}, .message = why, .seconds = 0});
        }
        waiting_.clear();
    }

    const PoolOptions& options_;
    const std::function<std::string(std::size_t)>& work_;
    const std::function<void(std::size_t, JobOutcome)>& finished_;
    std::deque<std::size_t> waiting_;
    std::vector<bool> retried_;
    std::vector<Worker> workers_;
    std::string buffer_;
};

}  // namespace

void run_jobs(std::size_t count, const PoolOptions& options,
              const std::function<std::string(std::size_t)>& work,
              const std::function<void(std::size_t, JobOutcome)>& finished,
              const std::function<bool()>& meanwhile) {
    Pool(count, options, work, finished).run(meanwhile);
}

int available_jobs() {
    cpu_set_t set;
    CPU_ZERO(&set);
    return ::sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

}  // namespace mp::lint
