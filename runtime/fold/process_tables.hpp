#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/trace/info.hpp"
#include "runtime/trace/reader.hpp"

// The rows that the text and JSON reports show of one process, made while its recording is read.

namespace mp::trace {

struct CoverageSum {
    Coverage sum;  // worst_leak is the largest
    std::uint64_t seeds_after_first =
        0;  // of steps after the first one of their recording, whichever optimizer
    std::uint64_t external_after_first = 0;  // of those; where all are, no history was lost

    // After an elastic restart a recording begins at a later step, and its first step still seeds all shadows.
    void add(const Coverage&, bool first_of_recording);
    void merge(const CoverageSum&);
};

// The loss of a step: the sum over its backward passes, because that is what the step's gradient belongs to. With
// gradient accumulation, where each micro-batch is divided by their number, it is their mean. Nothing: none was seen.
std::optional<LossRecord> loss_of(const std::vector<LossRecord>&);

// What a report lists of one StepRecord.
struct StepRow {
    Step step;
    std::int32_t optimizer = 0;
    bool skipped = false, has_loss_scale = false;
    double loss_scale = 0;
    std::int64_t wall_ns = 0;
    std::uint64_t seeds = 0, external = 0;
    std::vector<LossRecord> losses;

    // Null: no root was seen.
    std::optional<LossRecord> loss() const { return loss_of(losses); }
};

// One tensor of one process over all steps.
struct TensorHistory {
    TensorRecord last;  // without its name
    Step last_step;
    double worst = -1;  // relative L2; a NaN is the worst of all
    Step worst_step;
};
using TensorHistories = std::map<std::pair<std::string, TensorKind>, TensorHistory>;

struct ProcessTables {
    RecordingCounts counts;
    std::vector<StepRow> steps;  // in file order
    TensorHistories tensors;
    CoverageSum coverage;
};

// Makes the tables of one recording. What does not fit into `room` bytes is left out, and a problem says so.
class TableMaker {
public:
    explicit TableMaker(std::uint64_t room) : room_(room), made_(std::make_shared<ProcessTables>()) {}

    void step(const StepRows&, const NameList&);
    void note(const NoteRecord&);
    void leave_out() { ++left_out_; }  // one record
    std::shared_ptr<const ProcessTables> finish(const Recording& told);

private:
    bool fits(std::size_t bytes);
    bool add(std::size_t row, const TensorRecord&, std::string name, Step);

    std::uint64_t room_;
    std::uint64_t left_out_ = 0;
    std::shared_ptr<ProcessTables> made_;
    std::vector<TensorHistories::iterator> hints_;  // by row of the latest step
};

}  // namespace mp::trace
