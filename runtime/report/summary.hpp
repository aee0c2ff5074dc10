#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/trace/reader.hpp"

// What the reports of a run have in common: sums over steps, as plain values.

namespace mp::trace {

struct CoverageSum {
    Coverage sum;                            // worst_leak is the largest
    std::uint64_t seeds_after_first = 0;     // of steps after the first one of their recording
    std::uint64_t external_after_first = 0;  // of those; where all are, no history was lost

    void add(const Recording&);
};

// shadowed / (shadowed + unshadowed); negative: nothing to divide by.
double fraction_of_ops(const Coverage&);
double fraction_of_bytes(const Coverage&);

// A note is counted by its process, so its last record holds; counts of several processes are added.
struct NoteSum {
    std::uint64_t count = 0;
    std::uint64_t processes = 0;
    Step first;
};
using NoteSums = std::map<std::pair<NoteKind, std::string_view>, NoteSum>;
NoteSums notes_of(const std::vector<Recording>&);

// op, reduction, dtype, group
using CollectiveKey = std::tuple<std::string_view, std::string_view, DType, std::string_view>;
struct CollectiveSum {
    std::uint64_t calls = 0;
    std::uint64_t bytes = 0;
};
using CollectiveSums = std::map<CollectiveKey, CollectiveSum>;
CollectiveSums collectives_of(const std::vector<Recording>&);

std::map<DType, std::uint64_t> dtypes_of(const std::vector<Recording>&);

// One tensor of one process over all steps.
struct TensorHistory {
    const TensorRecord* last = nullptr;
    Step last_step;
    double worst = -1;  // relative L2; a NaN, which is no number to compare, is the worst of all
    Step worst_step;
};
using TensorHistories = std::map<std::pair<std::string_view, TensorKind>, TensorHistory>;
TensorHistories tensors_of(const Recording&);

struct StepPlace {
    const Recording* recording = nullptr;
    const StepRecord* record = nullptr;
};
// By step, then in the order of the run's recordings and of their files.
std::vector<StepPlace> steps_of(const Run&);

// The last root of the step: its only one, or that of the last micro-step. Null: none was seen.
const LossRecord* loss_of(const StepRecord&);

}  // namespace mp::trace
