#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/numerics/phase.hpp"
#include "runtime/fold/process_tables.hpp"
#include "runtime/trace/reader.hpp"

// A whole run in one value: the recordings of all ranks folded together. What reports and the gate read.
// Its size depends on layers, ops and steps, not on ranks: ranks are merged as they are read.

namespace mp::trace {

// Where the extreme of a merged value was seen.
struct Place {
    Rank rank;
    Step step;
};

// A rank of a communicator of NCCL. A process may have several.
struct Member {
    std::uint64_t communicator = 0;  // 0: unknown
    Rank rank;
    std::int32_t device = -1;
};

// One step of the first optimizer, over all ranks. A step that was done again after a restart (torchelastic counts
// them) is what it was the last time.
struct StepSummary {
    Step step;
    int ranks = 0;    // that recorded it, in any attempt; each counts once
    int skipped = 0;  // ranks that skipped it
    bool has_loss = false, has_twin = false, has_loss_scale = false;
    double loss = 0;             // mean over ranks; of a rank, the sum over its backward passes
    std::int32_t backwards = 0;  // on the rank that has most
    double twin_loss = 0;
    double loss_scale = 0;  // of the lowest rank
    // Relative L2 of all gradients together against the twin's; -1: not compared.
    double gradient_error = -1;
    // By how much the twin's loss changes if its weights change by one rounding after step 0; -1: not measured.
    double noise = -1;
    std::int64_t wall_ns = 0;  // the slowest rank
    bool sampled = false;
    std::uint64_t lost_gradients =
        0;              // of a step that did not end: elements, also in the twin where there is one
    Coverage coverage;  // summed
};

// The steps with a loss of an optimizer other than the first, as of the second network of a GAN.
struct OptimizerSteps {
    std::int32_t optimizer = 0;
    std::vector<StepSummary> steps;
};

// The results of one (layer, op, phase, dtype) over steps and ranks.
struct OpSum {
    OpRecord total;           // counts and sums added, extremes kept; `first` of the earliest step
    std::uint64_t ranks = 0;  // that ran it
    Step first_step;
    Place first_origin;  // of a non-finite value; step unknown: none. total.first_origin is of this step
    OpRecord at_origin;  // the record of that place
    Place worst_loc;     // of the largest loc relative L2 in a step
    double worst_loc_phi = 0;  // in one-rounding floors
    Place worst_cum;
    double worst_cum_phi = 0;
    // Where something was added: steps and ranks that left all of it as it was, the first such step, and the last step
    // in which something moved. Unknown: there is none.
    std::uint64_t still = 0;
    Step first_still, last_moved;
};

// One cell of the layer x step map: the worst over ranks and ops of a layer in a phase.
struct Cell {
    float cum_phi = -1;  // -1: not measured
    float loc_phi = -1;
    float flush = -1;             // share of the twin's magnitude flushed to zero
    std::uint32_t nonfinite = 0;  // elements non-finite in the real run alone
};

// The map keeps at most `columns` columns; a longer run has several steps in one, of which the worst counts.
struct LayerSteps {
    std::string layer;
    Phase phase = Phase::unknown;
    std::uint64_t order = 0;  // of its first op, for sorting along depth
    std::vector<Cell> cells;  // one per column
};

struct TensorSum {
    TensorKind kind = TensorKind::parameter;
    std::string name;
    TensorRecord last;  // summed over ranks at the last step that has it
    Step last_step;
    double worst = -1;  // relative L2
    Place worst_at;
    // Largest share, of a step and rank, of elements that are 0 where the twin's are not; -1: none was compared.
    double most_flushed = -1;
    Place most_flushed_at;
    // Non-finite gradients of skipped steps, stagnation over sampled steps.
    Place first_nonfinite;
    std::uint64_t meant_to_move = 0, unmoved = 0, below_half_ulp = 0;
    double wanted_squares = 0, moved_dot = 0;
    // Over sampled steps, as the sums of OpRecord are.
    double sampled_error_squares = 0, sampled_twin_squares = 0;
    // The first sampled step with a twin, when run and twin have not parted, and its sums. Unknown: there is none.
    Step first_sample;
    double first_error_squares = 0, first_twin_squares = 0;
    // Sums of a parameter over sampled steps: squares of its change, of the twin's, and of their difference.
    double change_squares = 0, twin_change_squares = 0, change_error_squares = 0;
    // The first and the last sampled step that began with 16-bit values only (TensorRecord::rounded); unknown: none.
    // Then the format, what one rounding to it takes, and the twin's change in these steps.
    Step first_rounded, last_rounded;
    DType narrow = DType::unknown;
    double rounding_squares = 0, rounded_change_squares = 0;
    std::uint64_t mastered = 0;  // elements that were the rounding of an fp32 master, over sampled steps
    std::uint64_t samples = 0;   // records with meant_to_move > 0
    std::uint64_t frozen = 0;    // of those, nothing moved at all
    Step first_stagnant;         // first sample with more than half of its elements unmoved; unknown: none
    std::uint64_t hash_mismatches = 0;  // sampled steps on which ranks hold different bytes of the same size
    Place first_mismatch;
    // Sampled steps on which several ranks hold this size and the twins of all of them agree, and of those, the ones
    // whose real bytes differ: precision has parted replicas.
    std::uint64_t replicas = 0, replica_mismatches = 0;
    Place first_replica_mismatch;
};

// What is known of one skipped step: everything the verdict is drawn from.
struct SkipFacts {
    Step step;
    std::vector<Rank> skipped_by, stepped_by;
    bool has_scale = false;
    double loss_scale = 0;
    // The first op that made a non-finite value: by phase (data, forward, backward, optimizer), then ordinal, then
    // rank. Empty op: none was seen.
    OpRecord origin;
    Rank origin_rank;
    // Gradients that are not finite, in the order of their names, at most 16.
    struct Gradient {
        std::string name;
        Rank rank;
        DType dtype = DType::unknown;
        std::uint64_t nonfinite = 0, elements = 0;
        double twin_amax = 0;  // with the loss scale in it, as the program's; 0: no twin
        std::uint64_t nonfinite_twin = 0;
    };
    std::vector<Gradient> gradients;
    std::uint64_t reductions_made_nonfinite = 0;
    std::uint64_t finite_reductions = 0, lost_reductions = 0;  // of fp16 inputs, without a twin
    std::string reduction_op;
    bool twin_loss_finite = true, loss_finite = true;
    // Rows of ops of that phase that made a non-finite value, over ranks. Backward ones alone, under a loss scale:
    // the scale was too high. A forward one has nothing to do with it.
    std::uint64_t forward_origins = 0, backward_origins = 0;
};

struct CollectiveTotal {
    CollectiveRecord total;  // summed over steps and ranks
    double worst_phi = 0;    // of the error against the fp32 reduction, per step and rank
    Place worst_at;
    Step first_nonfinite;
    Place first_lost;  // of a result that is not finite, in a CUDA program, and whose it was
    Member lost_by;
    // Blocks of which the sketches of all ranks were put together; then the sums of `total` are theirs.
    std::uint64_t sketched = 0;
    // The one of them with the largest error; of equal ones the first.
    struct WorstBlock {
        std::uint64_t first = 0, length = 0, elements = 0;  // of the reduced elements
        Step step;
        double share = 0;  // of the squared errors of all blocks
    } worst_block;
    std::uint64_t differing = 0;  // blocks that one rank received with other values than the others
    Place differs_at;             // the first of them, and whose it was
    Member differs_for;
};

// What kernels took on the device, over steps and ranks.
struct DeviceTime {
    std::string layer;
    Phase phase = Phase::unknown;
    std::uint64_t kernels = 0;
    std::uint64_t device_ns = 0;
};

// The sketched products of one layer, op, phase and dtype.
struct ProductSum {
    ProductRecord
        worst;  // the record whose rows are farthest from what rounding explains, and where it is from
    Place worst_at;
    std::uint64_t products = 0;
    double error_squares = 0, squares = 0, rounding_squares = 0;  // of all of them
};

struct PlaceTotal {
    DTypePlace place;  // elements summed over ranks, of the last step that said it
    Step first_step;
    Step last_step;  // whose elements these are
};

// Exponents of the low-precision results of a layer, over its ops, steps and ranks.
struct LayerExponents {
    std::string layer;
    Phase phase = Phase::unknown;
    DType dtype = DType::unknown;
    Exponents exponents;
};

// What one process recorded about itself.
struct RankFacts {
    ProcessRecord process;
    std::string path;
    std::int64_t steps = 0;
    Step last_step;
    bool ended = false;          // it said so; else it was killed, or is still running
    std::string ended_by;        // the exception, or "exit status 1", that ended it; empty: neither
    bool running = false;        // it is known to be alive; only the summary at the end of a run asks
    std::uint64_t problems = 0;  // places that could not be read
    std::uint64_t lost_records = 0;
    std::vector<std::string> first_problems;
    std::shared_ptr<const ProcessTables> tables;  // null unless FoldOptions::tables
};

struct RunModel {
    std::string directory;
    std::vector<RankFacts> ranks;  // by rank, restart, host, pid
    std::vector<Error> unreadable;
    std::vector<Rank> missing;
    Mode mode = Mode::watch;         // the strongest of all
    std::vector<StepSummary> steps;  // by step; of the first optimizer. Long runs: see steps_every
    std::int64_t steps_every = 1;    // n: `steps` holds every n-th, and every skipped one
    std::int64_t step_count = 0;     // distinct steps recorded
    std::optional<StepSummary>
        unfinished;                      // what was seen after the last step, on the rank that came farthest
    std::vector<OptimizerSteps> others;  // by optimizer
    std::vector<Step> trainings;         // where others of the process begin, after the first
    std::int64_t skipped_steps = 0;
    std::int64_t column_steps = 1;   // steps in one column of the map
    std::vector<LayerSteps> map;     // by phase, then order
    std::vector<OpSum> ops;          // by phase, then `first`
    std::vector<TensorSum> tensors;  // by kind, then name
    std::vector<SkipFacts> skips;    // at most 10,000; skipped_steps counts all
    std::vector<CollectiveTotal> collectives;
    std::vector<PlaceTotal> places;
    std::vector<DeviceTime> times;          // the longest first
    std::vector<ProductSum> products;       // by layer, op, phase, dtype
    std::vector<MatmulRecord> matmuls;      // by layer, op, phase, dtypes and how they are computed
    std::vector<LayerExponents> exponents;  // by layer, phase, dtype
    std::map<DType, std::uint64_t> ops_by_dtype;
    std::vector<std::string> policies;  // texts of policy notes, sorted, once each
    struct Note {
        NoteKind kind = NoteKind::not_observed;
        std::string text;
        std::uint64_t count = 0, processes = 0;
        Step first;
    };
    std::vector<Note> notes;                                        // of every kind, by kind and text
    Coverage coverage;                                              // summed
    std::uint64_t seeds_after_first = 0, external_after_first = 0;  // as in CoverageSum
    std::int64_t total_wall_ns = 0;                                 // of the slowest rank
};

// Where values come from code that is not observed, the twin starts anew from them: what both have says nothing about
// fp32.
inline bool twin_starts_anew(const RunModel& m) { return m.coverage.outside > 0; }

// A number of which a record has 1 more, or 0 where it is not known; -1: it is not.
inline int known_number(std::uint64_t one_more) {
    return one_more > 0 && one_more <= 1 << 30 ? static_cast<int>(one_more) - 1 : -1;
}
// The number of the device that ran an op; -1: its process used one alone.
inline int device_of(const OpRecord& op) { return known_number(op.device); }

// Ranks that left recordings: a process of a CUDA program may have several.
std::uint64_t ranks_of(const RunModel&);

struct FoldOptions {
    std::size_t columns = 512;   // of the map
    std::size_t steps = 20'000;  // StepSummaries kept
    int threads = 0;             // 0: as many as there are cores
    bool tables = false;         // make the ProcessTables, which only the text and JSON reports show
};

// Reads every recording below `directory`, a few at a time, and folds it in. The result is the same for
// every number of threads and every order of the files. Memory: the model, and one frame a thread.
// Fails only as read_run does; damage is in the model. The tables of a recording take at most four times its file and
// its share of 256 MiB, or 1 MiB where that is more.
Result<RunModel> fold_run(const std::string& directory, const FoldOptions& = {});
// The same of recordings already read; for tests.
RunModel fold(const Run&, const FoldOptions& = {});

}  // namespace mp::trace
