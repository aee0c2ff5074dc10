#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/result.hpp"
#include "runtime/trace/records.hpp"

namespace mp::trace {

// A place where a recording could not be read. Reading continued after it.
struct Problem {
    std::uint64_t offset = 0;
    std::uint64_t bytes_lost = 0;
    std::string why;
};

// One recording as far as it could be read. Damage produces problems, never a failure.
struct Recording {
    std::string path;
    std::uint64_t bytes = 0;   // of the file
    bool has_process = false;  // false: the first frame is lost or was never written
    ProcessRecord process;
    std::vector<StepRecord> steps;  // in file order
    std::vector<NoteRecord> notes;
    std::vector<Problem> problems;
};

// Fails only when the file cannot be opened, is not a recording, or has a newer version. Takes at most
// 4 x the file + 256 MiB of memory: a recording that needs more loses its last tensors, then its last steps,
// and `problems` lists that.
Result<Recording> read_recording(const std::string& path);

struct OpColumns;
struct StepRows;
class NameList;

// Records as they are read, in file order; they may be moved from. No function is called after the end of the
// file. A step is passed as its frames store it (decode.hpp), with its ops unless it has none or they are lost.
class RecordVisitor {
public:
    virtual ~RecordVisitor() = default;
    virtual void process(const ProcessRecord&) = 0;  // called at most once, possibly late or never
    virtual void step(const StepRows&, const OpColumns* ops, const NameList&) = 0;
    virtual void note(NoteRecord&) = 0;
};

// As read_recording, but steps and notes are passed to the visitor and not kept. Memory is one frame, its records
// (at most 64 MiB) and the names. The result contains everything else.
class VisitBuffers;
Result<Recording> visit_recording(const std::string& path, RecordVisitor&, VisitBuffers&);

// The memory of a visit; used again from file to file, by one thread at a time.
class VisitBuffers {
public:
    VisitBuffers();
    ~VisitBuffers();
    VisitBuffers(const VisitBuffers&) = delete;
    VisitBuffers& operator=(const VisitBuffers&) = delete;

    struct Parts;
    Parts& parts() { return *parts_; }

private:
    std::unique_ptr<Parts> parts_;
};

// Paths of the files in a directory that are named as recordings, sorted.
// The directories of the jobs that one command started: the run directory, then job.2, job.3 ... below it
// (job_directory.hpp). At least the directory itself.
std::vector<std::string> jobs_in(const std::string& directory);
Result<std::vector<std::string>> recordings_in(const std::string& directory);
// The order of recordings in a run.
bool precedes(const ProcessRecord&, std::string_view path, const ProcessRecord&, std::string_view other_path);
// Ranks below the world size that were not seen.
std::vector<Rank> missing_ranks(std::int32_t world_size, const std::set<std::int32_t>& seen);

// Every recording in a run directory, sorted by rank, restart, host, pid. Files that are not
// recordings are ignored; unreadable ones are listed in `unreadable`.
struct Run {
    std::string directory;
    std::vector<Recording> recordings;
    std::vector<Error> unreadable;
    std::vector<Rank> missing;  // ranks below the world size without a recording
};
Result<Run> read_run(const std::string& directory);

}  // namespace mp::trace
