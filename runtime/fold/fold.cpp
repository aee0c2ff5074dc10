#include <algorithm>
#include <atomic>
#include <filesystem>
#include <new>
#include <thread>

#include "kernels/base/parallel.hpp"
#include "runtime/fold/partial.hpp"
#include "runtime/fold/run_model.hpp"
#include "runtime/trace/decode.hpp"

namespace mp::trace {
namespace {

constexpr int kMaxThreads = 256;
constexpr std::uint64_t kLeastTablesRoom = 1 << 20;

class Folder final : public RecordVisitor {
public:
    explicit Folder(Partial& into) : into_(into) {}
    void process(const ProcessRecord& p) override { into_.process(p); }
    void step(const StepRows& s, const OpColumns* ops, const NameList& names) override {
        into_.step(s, ops, names);
    }
    void note(NoteRecord& n) override { into_.note(n); }

private:
    Partial& into_;
};

// Room for the tables of one recording. It depends on that file alone, so that what is omitted does not depend on which
// file was read first.
std::uint64_t tables_room(const std::string& path, std::size_t files) {
    std::error_code unknown;
    const std::uintmax_t size = std::filesystem::file_size(path, unknown);
    return std::max(kTablesRoom / files, kLeastTablesRoom) + (unknown ? 0 : 4 * size);
}

void fold_file(const std::string& path, std::size_t files, Partial& into, VisitBuffers& buffers) {
    into.begin(tables_room(path, files));
    Folder folder(into);
    if (const auto told = visit_recording(path, folder, buffers)) {
        into.end(*told);
    } else {
        into.unreadable(told.error());
    }
}

int threads_for(const FoldOptions& options, std::size_t files) {
    const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
    const int wanted = options.threads > 0 ? options.threads : static_cast<int>(cores);
    return static_cast<int>(
        std::min<std::size_t>(static_cast<std::size_t>(std::min(wanted, kMaxThreads)), files));
}

}  // namespace

Result<RunModel> fold_run(const std::string& directory, const FoldOptions& options) {
    const auto paths = recordings_in(directory);
    if (!paths) return paths.error();
    const int threads = threads_for(options, paths->size());
    std::vector<Partial> partials;
    for (int i = 0; i < std::max(threads, 1); ++i) partials.emplace_back(options);
    std::atomic<std::size_t> next{0};
    std::atomic<bool> short_of_memory{false};
    // One piece of work per thread, because its files share a partial model and buffers. A thread that is free takes
    // the next file: the result does not depend on the order.
    in_parallel(partials.size(), threads, [&](std::size_t piece) {
        try {
            VisitBuffers buffers;
            for (std::size_t i = next++; i < paths->size(); i = next++)
                fold_file((*paths)[i], paths->size(), partials[piece], buffers);
        } catch (const std::bad_alloc&) {
            short_of_memory = true;
        }
    });
    if (short_of_memory) return Error{directory + ": not enough memory to fold it", "use fewer threads"};
    for (std::size_t i = 1; i < partials.size(); ++i) {
        partials[0].merge(partials[i]);
        partials[i] = Partial(options);
    }
    return partials[0].model(directory);
}

RunModel fold(const Run& run, const FoldOptions& options) {
    Partial partial(options);
    for (const Recording& r : run.recordings) {
        partial.begin();
        if (r.has_process) partial.process(r.process);
        for (const StepRecord& s : r.steps) partial.step(s);
        for (const NoteRecord& n : r.notes) partial.note(n);
        partial.end(r);
    }
    for (const Error& error : run.unreadable) partial.unreadable(error);
    RunModel model = partial.model(run.directory);
    model.missing = run.missing;
    return model;
}

}  // namespace mp::trace
