#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <thread>

#include "runtime/fold/partial.hpp"
#include "runtime/fold/run_model.hpp"
#include "runtime/trace/decode.hpp"
#include "runtime/trace/encode.hpp"

namespace mp::trace {
namespace {

constexpr int kMaxThreads = 256;

// Recordings that are kept beside the model. Files are read at the same time and share the room.
class Keeper {
public:
    Keeper(Run& run, const std::vector<std::string>& paths) : run_(run) {
        for (const std::string& path : paths) {
            std::error_code none;
            const std::uintmax_t size = std::filesystem::file_size(path, none);
            if (!none) room_ += 4 * size;
        }
    }

    // False: no room.
    bool take(std::size_t bytes) {
        const std::lock_guard lock(mutex_);
        if (bytes > room_) return false;
        room_ -= bytes;
        return true;
    }
    void add(Recording&& r) {
        const std::lock_guard lock(mutex_);
        run_.recordings.push_back(std::move(r));
    }
    void add(const Error& error) {
        const std::lock_guard lock(mutex_);
        run_.unreadable.push_back(error);
    }
    void finish(const RunModel& model) {
        run_.directory = model.directory;
        run_.missing = model.missing;
        std::ranges::sort(run_.recordings, [](const Recording& a, const Recording& b) {
            return precedes(a.process, a.path, b.process, b.path);
        });
        std::ranges::sort(run_.unreadable, {}, &Error::message);
    }

private:
    Run& run_;
    std::mutex mutex_;
    std::uint64_t room_ = std::uint64_t{256} << 20;
};

class Folder final : public RecordVisitor {
public:
    Folder(Partial& into, Keeper* keeper) : into_(into), keeper_(keeper) {}
    void process(const ProcessRecord& p) override { into_.process(p); }
    void step(const StepRows& s, const OpColumns* ops, const NameList& names) override {
        into_.step(s, ops, names);
        if (keeper_) keep(s, names);
    }
    void note(NoteRecord& n) override {
        into_.note(n);
        if (keeper_ && fits(memory_of(n))) kept_.notes.push_back(std::move(n));
    }
    // `told`: what the reader says of the file.
    void done(Recording told) {
        told.steps = std::move(kept_.steps);
        told.notes = std::move(kept_.notes);
        if (left_out_ > 0)
            told.problems.push_back(
                {told.bytes, 0, std::to_string(left_out_) + " records are not listed: too many to hold"});
        keeper_->add(std::move(told));
    }

private:
    bool fits(std::size_t bytes) {
        const bool fits = keeper_->take(bytes);
        left_out_ += !fits;
        return fits;
    }
    void keep(const StepRows& rows, const NameList& names) {
        StepRecord s = rows.record;
        for (std::size_t i = 0; i < s.tensors.size(); ++i)
            s.tensors[i].name = text_of(rows.tensors[i], names);
        for (std::size_t i = 0; i < s.places.size(); ++i) s.places[i].layer = text_of(rows.places[i], names);
        if (fits(memory_of(s))) kept_.steps.push_back(std::move(s));
    }

    Partial& into_;
    Keeper* keeper_;
    Recording kept_;
    std::uint64_t left_out_ = 0;
};

void fold_file(const std::string& path, Partial& into, VisitBuffers& buffers, Keeper* keeper) {
    into.begin();
    Folder folder(into, keeper);
    auto told = visit_recording(path, folder, buffers);
    if (told) {
        into.end(*told);
        if (keeper) folder.done(*std::move(told));
    } else {
        if (keeper) keeper->add(told.error());
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

Result<RunModel> fold_run(const std::string& directory, const FoldOptions& options, Run* kept) {
    const auto paths = recordings_in(directory);
    if (!paths) return paths.error();
    const int threads = threads_for(options, paths->size());
    const auto keeper = kept ? std::make_unique<Keeper>(*kept, *paths) : nullptr;
    std::vector<Partial> partials;
    for (int i = 0; i < std::max(threads, 1); ++i) partials.emplace_back(options);
    std::atomic<std::size_t> next{0};
    std::atomic<bool> short_of_memory{false};
    // Whoever is free takes the next file; merging is free of order.
    const auto work = [&](Partial& into) {
        try {
            VisitBuffers buffers;
            for (std::size_t i = next++; i < paths->size(); i = next++)
                fold_file((*paths)[i], into, buffers, keeper.get());
        } catch (const std::bad_alloc&) {
            short_of_memory = true;
        }
    };
    {
        std::vector<std::jthread> others;
        for (int i = 1; i < threads; ++i)
            others.emplace_back(work, std::ref(partials[static_cast<std::size_t>(i)]));
        work(partials[0]);
    }
    if (short_of_memory) return Error{directory + ": not enough memory to fold it", "use fewer threads"};
    for (std::size_t i = 1; i < partials.size(); ++i) {
        partials[0].merge(partials[i]);
        partials[i] = Partial(options);
    }
    RunModel model = partials[0].model(directory);
    if (keeper) keeper->finish(model);
    return model;
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
