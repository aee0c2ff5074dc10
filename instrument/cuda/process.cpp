#include "instrument/cuda/process.hpp"

#include <link.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "instrument/cuda/activity.hpp"
#include "instrument/cuda/launches.hpp"
#include "instrument/cuda/per_process.hpp"
#include "runtime/trace/end_summary.hpp"
#include "runtime/trace/identity.hpp"
#include "runtime/trace/options.hpp"

namespace mp::raw {
namespace {

enum class State : int { fresh, deciding, observed, ignored };

std::atomic<State> g_state{State::fresh};
std::atomic<Run*> g_run{nullptr};  // never destroyed: threads of the program may still be inside
std::atomic<bool> g_disarmed[kSources];
std::atomic<std::uint32_t> g_process{1};  // counts forks

thread_local ThreadRanges t_ranges;
thread_local int t_inside = 0;

constexpr const char* kNames[kSources] = {"NVTX", "cuBLAS", "NCCL", "CUPTI", "the time of kernels"};

int is_torch(dl_phdr_info* library, std::size_t, void*) {
    const char* const slash = std::strrchr(library->dlpi_name, '/');
    const char* const name = slash ? slash + 1 : library->dlpi_name;
    return std::strncmp(name, "libtorch_cpu.so", 15) == 0;
}

bool has_torch() { return ::dl_iterate_phdr(is_torch, nullptr) != 0; }

void at_exit(int status, void*) {
    Run* const run = g_run.load();
    if (g_state.load() != State::observed || !run) return;
    run->finish(status);
    g_state = State::ignored;
    const trace::Options& options = run->options();
    const std::string directory = run->directory();
    if (!options.quiet && !directory.empty() && run->rank() <= 0)
        trace::print_summary(options.tool, directory);
}

// The locks of the parent may be held by threads that the child does not have, so the child gets a new Run.
void in_child() {
    ForkedState::in_child();
    if (Run* const run = g_run.exchange(nullptr)) run->abandon_after_fork();
    ++g_process;
    activity::forget();
    t_inside = 0;
    if (g_state.load() != State::ignored) g_state = State::fresh;
}

Run* start() {
    const char* const path = ::secure_getenv(trace::kOptionsVariable);
    if (!path || !*path || has_torch()) return nullptr;
    Result<trace::Options> options = trace::read_options(path);
    if (!options || options->mode == trace::Mode::off) return nullptr;
    auto* const run = new Run(std::move(*options), trace::identity_of_process([](const char* name) {
                                  return static_cast<const char*>(std::getenv(name));
                              }));
    static std::atomic<bool> registered{false};
    if (!registered.exchange(true)) {
        ::pthread_atfork(ForkedState::before_fork, ForkedState::in_parent, in_child);
        ::on_exit(at_exit, nullptr);  // atexit(3) does not tell the status
    }
    return run;
}

// One thread decides. Events of other threads in that moment are lost.
Run* decide() noexcept {
    State expected = State::fresh;
    if (!g_state.compare_exchange_strong(expected, State::deciding)) return nullptr;
    Run* run = nullptr;
    const int before = errno;
    try {
        run = start();
    } catch (const std::exception& e) {
        std::fprintf(stderr, "mp-trace: nothing is recorded: %s\n", e.what());
    }
    errno = before;
    g_run = run;
    g_state = run ? State::observed : State::ignored;
    return run;
}

}  // namespace

Run* run() noexcept {
    switch (g_state.load(std::memory_order_acquire)) {
        case State::observed:
            return g_run.load(std::memory_order_acquire);
        case State::fresh:
            return decide();
        case State::deciding:
        case State::ignored:
            break;
    }
    return nullptr;
}

void retire() noexcept {
    if (g_state.exchange(State::ignored) != State::observed) return;
    g_run.load()->abandon();
    stop_watching();
}

bool is_armed(Source source) noexcept {
    return !g_disarmed[static_cast<int>(source)].load(std::memory_order_relaxed);
}

void disarm(Source source, const char* why) noexcept {
    if (g_disarmed[static_cast<int>(source)].exchange(true)) return;
    Run* const run = g_run.load();
    if (!run) return;
    try {
        const std::string text =
            std::string(kNames[static_cast<int>(source)]) + " is not observed any more: " + why;
        run->note(trace::NoteKind::disarmed, text);
        if (!run->options().quiet) std::fprintf(stderr, "mp-trace: %s\n", text.c_str());
    } catch (...) {  // NOLINT(bugprone-empty-catch): the message is lost, the program goes on
    }
}

ThreadRanges& ranges() noexcept {
    const std::uint32_t process = g_process.load(std::memory_order_relaxed);
    if (t_ranges.of != process) {
        t_ranges.of = process;
        t_ranges.place = 0;
        t_ranges.depth = t_ranges.beyond = 0;
    }
    return t_ranges;
}

Inside::Inside() noexcept { ++t_inside; }
Inside::~Inside() { --t_inside; }
bool Inside::any() noexcept { return t_inside > 0; }

}  // namespace mp::raw

// The preload calls this when the adapter of a libtorch has attached, in a process that was observed without it so far.
extern "C" __attribute__((visibility("default"))) void mptrace_cuda_retire() noexcept { mp::raw::retire(); }
