#include "instrument/torch/adapter.hpp"

#include <pthread.h>

#include <cstdlib>
#include <new>
#include <utility>

#include "instrument/torch/memory_notes.hpp"
#include "instrument/torch/saved_state.hpp"
#include "instrument/torch/thread_state.hpp"
#include "runtime/trace/end_summary.hpp"
#include "runtime/trace/job_directory.hpp"
#include "runtime/trace/note_texts.hpp"

namespace mp::twin {
namespace {

Adapter* g_adapter = nullptr;  // set once, before the first op is intercepted
std::atomic<bool> g_forked{false};
bool g_may_begin = false;  // in this child of a fork

void before_fork() { g_adapter->pool.lock(); }

void after_fork_in_parent() { g_adapter->pool.unlock(); }

// Runs in the child of a fork. Only the pool's lock is known to be free there, because other threads of the parent may
// have held the others. The child is therefore not traced: its ops pass through and take no lock, until it begins anew.
void after_fork_in_child() {
    g_adapter->pool.unlock();
    g_may_begin = g_adapter->control.armed() && !g_adapter->recording.was_tried();
    g_adapter->control.after_fork_in_child();
    g_adapter->recording.after_fork_in_child();
    g_forked = true;
}

}  // namespace

Adapter* adapter() noexcept { return g_adapter; }

bool take_forked() noexcept { return g_forked.exchange(false); }

Adapter& start_adapter(trace::Options options, trace::Identity identity, bool has_python) {
    g_adapter = new Adapter(std::move(options), std::move(identity), has_python);
    ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    return *g_adapter;
}

void begin_in_child() {
    if (!g_adapter || !std::exchange(g_may_begin, false)) return;
    trace::Options options = g_adapter->control.options();
    trace::Identity identity =
        trace::identity_of_process([](const char* name) -> const char* { return std::getenv(name); });
    const bool has_python = g_adapter->control.has_python();
    thread_state() = {};
    try {
        new (g_adapter) Adapter(std::move(options), std::move(identity), has_python);
    } catch (...) {
        g_adapter->control.after_fork_in_child();
        throw;
    }
    g_adapter->control.begin_in_child();
    g_forked = false;
}

// A process that leaves by os._exit with an error may do so because a device hangs.
void Adapter::finish(std::string_view how) { finish(how, !how.starts_with(trace::kExitStatus)); }

void Adapter::finish(std::string_view how, bool waits) {
    if (!control.armed() || finished_.exchange(true)) return;
    if (inferred_clock.runs()) inferred_clock.finish();
    clock.finish(waits);
    if (!recording.is_open()) return;
    say_memory_at_end(*this);
    save_state(*this);
    exits_ = how == kExits;
    end_recording(exits_ ? std::string_view() : how);
    if (!exits_) summarize();
}

void Adapter::exited(int status) {
    const std::string how = trace::end_by(status);
    if (!control.has_python()) return finish(how, true);
    if (!control.armed() || !exits_.exchange(false)) return;
    if (!how.empty()) end_recording(how);
    summarize();
}

void Adapter::task_ends(std::string_view how) {
    if (!control.armed() || finished_ || !recording.is_open()) return;
    clock.write_late();
    end_recording(how);
}

void Adapter::task_begins() {
    if (!control.armed() || !recording.is_open()) return;
    recording.note({trace::NoteKind::end, Step{now.number}, std::string(trace::kInTask), 0});
    recording.flush();  // a worker that is killed at once did not end in order
}

void Adapter::summarize_children(const std::vector<std::int64_t>& pids) const {
    constexpr std::size_t kMost = 8;
    const trace::Options& options = control.options();
    if (options.quiet) return;
    const std::vector<std::string> found = trace::directories_of(options.run_dir, pids);
    for (std::size_t i = 0; i < found.size() && i < kMost; ++i)
        if (trace::claim_summary(found[i])) trace::print_summary(options.tool, found[i]);
}

void Adapter::end_recording(std::string_view how) {
    const std::int64_t steps = recording.steps();
    recording.note(
        {trace::NoteKind::end, Step{now.number}, std::string(how), static_cast<std::uint64_t>(steps)});
    recording.flush();
}

void Adapter::summarize() {
    const trace::Options& options = control.options();
    const Rank rank = control.identity().rank;
    if (options.quiet || rank.value > 0) return;
    if (rank.known() || trace::claim_summary(recording.directory()))
        trace::print_summary(options.tool, recording.directory());
}

}  // namespace mp::twin
