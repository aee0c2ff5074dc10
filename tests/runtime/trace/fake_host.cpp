// A program that is traced, without a framework: it records through the real Recorder as fast as told and
// does nothing else of note, so that whatever ends it or its stdout otherwise is the recorder's fault.
//   fake_host DIRECTORY [KEY=VALUE ...]
// Prints one line to stdout and exits with status 42, recorded or not.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "runtime/trace/recorder.hpp"
#include "tests/runtime/trace/samples.hpp"

namespace {

struct Plan {
    long steps = 100;
    long tensors = 20;
    long pause_us = 0;
    long ack = -1;     // a descriptor that gets the number of every step once it is flushed, 4 bytes each
    long threads = 0;  // that only write notes
    long forks = 0;    // children that try to record, one after each of the first steps
    long forkers = 0;  // threads that fork all the time
    long signals = 0;  // SIGALRM every so many microseconds
    long queue = 16 << 20;
    long budget = 256 << 20;
    long off = 0;  // do not record: what the program does by itself
};

Plan plan_of(int count, char** words) {
    Plan plan;
    const struct {
        const char* key;
        long* value;
    } keys[] = {{"steps", &plan.steps},     {"tensors", &plan.tensors}, {"pause_us", &plan.pause_us},
                {"ack", &plan.ack},         {"threads", &plan.threads}, {"forks", &plan.forks},
                {"forkers", &plan.forkers}, {"signals", &plan.signals}, {"queue", &plan.queue},
                {"budget", &plan.budget},   {"off", &plan.off}};
    for (int i = 0; i < count; ++i) {
        const std::string_view word(words[i]);
        const std::size_t equals = word.find('=');
        bool known = false;
        for (const auto& key : keys) {
            if (word.substr(0, equals) != key.key) continue;
            *key.value = std::strtol(words[i] + equals + 1, nullptr, 10);
            known = true;
        }
        if (!known) {
            std::fprintf(stderr, "fake_host: unknown '%s'\n", words[i]);
            std::exit(2);
        }
    }
    return plan;
}

mp::trace::Recorder* recorder = nullptr;  // as in an adapter: never destroyed by the child of a fork
std::atomic<std::uint64_t> signals_seen{0};
std::atomic<bool> ended{false};
std::atomic<bool> strayed{false};  // a handler ran on a thread of ours

void on_signal(int) {
    signals_seen.fetch_add(1, std::memory_order_relaxed);
    char name[32] = {};
    ::pthread_getname_np(::pthread_self(), name, sizeof name);
    if (!std::strcmp(name, "mp-trace")) strayed = true;
}

void record_as_child() {
    if (!recorder) return;
    for (int i = 0; i < 3; ++i) recorder->step(mp::trace::test::sample_step(1'000'000 + i, 3));
    recorder->flush(1);
}

void fork_once() {
    const pid_t child = ::fork();
    if (child == 0) {
        record_as_child();
        ::_exit(7);
    }
    int status = 0;
    if (child > 0 && (::waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 7)) std::abort();
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    const Plan plan = plan_of(argc - 2, argv + 2);

    std::unique_ptr<mp::trace::Recorder> owned;
    if (!plan.off) {
        auto opened = mp::trace::Recorder::open(argv[1], "host.p" + std::to_string(::getpid()) + ".mpt",
                                                {.file_bytes = static_cast<std::uint64_t>(plan.budget),
                                                 .queue_bytes = static_cast<std::uint64_t>(plan.queue)});
        if (opened) {
            owned = *std::move(opened);
            recorder = owned.get();
        } else {
            std::fprintf(stderr, "mp-trace: %s\n", opened.error().message.c_str());
        }
    }
    ::pthread_atfork(nullptr, nullptr, [] {
        if (recorder) recorder->abandon_after_fork();
    });
    if (plan.signals) {
        struct ::sigaction action{};
        action.sa_handler = on_signal;  // no SA_RESTART: every slow call is interrupted
        ::sigaction(SIGALRM, &action, nullptr);
        const ::itimerval every{{0, plan.signals}, {0, plan.signals}};
        ::setitimer(ITIMER_REAL, &every, nullptr);
    }
    if (recorder) {
        mp::trace::ProcessRecord process = mp::trace::test::sample_process(0);
        process.world_size = 1;
        process.pid = ::getpid();
        recorder->process(process);
    }

    std::vector<std::thread> threads;
    for (long t = 0; t < plan.threads; ++t) {
        threads.emplace_back([t] {
            while (!ended) {
                if (recorder) recorder->note(mp::trace::test::sample_note("thread " + std::to_string(t)));
                std::this_thread::sleep_for(std::chrono::microseconds(200));
            }
        });
    }
    for (long t = 0; t < plan.forkers; ++t) {
        threads.emplace_back([] {
            while (!ended) fork_once();
        });
    }

    double sum = 0;
    for (long k = 0; k < plan.steps; ++k) {
        const mp::trace::StepRecord step = mp::trace::test::sample_step(k, static_cast<int>(plan.tensors));
        for (const auto& tensor : step.tensors) sum += tensor.error_squares;
        if (recorder) recorder->step(step);
        if (plan.ack >= 0 && recorder && recorder->flush(60'000)) {
            const auto number = static_cast<std::uint32_t>(k);
            if (::write(static_cast<int>(plan.ack), &number, sizeof number) != sizeof number) return 3;
        }
        if (k < plan.forks) fork_once();
        if (plan.pause_us) std::this_thread::sleep_for(std::chrono::microseconds(plan.pause_us));
    }
    ended = true;
    for (std::thread& t : threads) t.join();
    if (recorder) {
        recorder->flush(60'000);
        std::fprintf(stderr, "dropped %llu\n", static_cast<unsigned long long>(recorder->dropped()));
    }
    if (plan.signals) {
        const ::itimerval never{};
        ::setitimer(ITIMER_REAL, &never, nullptr);
        if (strayed || !signals_seen) return 4;
    }
    std::printf("steps %ld sum %a\n", plan.steps, sum);
    return 42;
}
