#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/trace/reader.hpp"

// One screen about recordings: the process of each, its size, and its problems. Every text of a recording is escaped,
// so that the output is safe on a terminal.

namespace mp::trace {

// What is counted in a recording.
struct RecordingCounts {
    std::uint64_t bytes = 0;  // of the file
    bool has_process = false;
    std::uint64_t steps = 0, skipped = 0, notes = 0;  // records
    Step first_step, last_step;                       // the smallest and the largest number
    bool lossy = false;                               // records were dropped
    bool ended = false;                               // the process said so
    std::vector<Problem> problems;

    void add(const StepRecord&);
    void add(const NoteRecord&);
};
RecordingCounts counts_of(const Recording&);

// Views of a run, from whatever holds one.
struct RunInfo {
    struct Entry {
        const ProcessRecord& process;
        std::string_view path;
        const RecordingCounts& counts;
    };
    std::string_view directory;
    std::vector<Entry> recordings;
    const std::vector<Error>& unreadable;
    const std::vector<Rank>& missing;
};

std::string info_text(const RunInfo&);
std::string info_text(const Run&);
std::string info_text(const Recording&);

}  // namespace mp::trace
