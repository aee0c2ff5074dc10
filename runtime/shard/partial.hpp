#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "runtime/shard/exact_sum.hpp"
#include "runtime/shard/run_model.hpp"

// Some recordings of a run, folded together. Folding is associative and commutative: any split of the
// recordings, in any order, merges into the same model.

namespace mp::trace {

// Hostile recordings name more; a real run has a few ops in each of some thousand layers.
inline constexpr std::size_t kMaxOps = 200'000;
inline constexpr std::size_t kMaxSkips = 10'000;
inline constexpr std::size_t kMaxNotes = 10'000;
inline constexpr std::size_t kMaxGradients = 16;
inline constexpr std::size_t kMaxFirstProblems = 5;
// Replicas are compared on the first sampled steps that a tensor has.
inline constexpr std::size_t kMaxHashedSteps = 256;

class Partial {
public:
    explicit Partial(const FoldOptions& options) : options_(options) {}

    // The records of one recording, between begin() and end().
    void begin();
    void process(const ProcessRecord&);
    void step(const StepRecord&);
    void note(const NoteRecord&);
    void end(const Recording& told);  // path, process and problems of it

    void unreadable(Error error) { unreadable_.push_back(std::move(error)); }
    void merge(const Partial&);
    RunModel model(const std::string& directory) const;

private:
    // Of the sums of an OpRecord, those in doubles.
    static constexpr std::size_t kSums = 8;
    struct OpState {
        OpSum sum;
        std::array<ExactSum, kSums> sums;
        std::vector<std::uint64_t> ranks;  // a bit each
        std::size_t layer = 0;             // in layers_
        Rank first_rank;
    };
    struct StepState {
        StepSummary summary;
        ExactSum loss, twin_loss;
        std::uint64_t losses = 0, twins = 0;
        Rank scale_rank;
    };
    struct SkipState {
        SkipFacts facts;
        StepState step;  // of the ranks that skipped
        std::map<std::string, SkipFacts::Gradient> gradients;
        Rank scale_rank;
    };
    struct Hashes {
        std::uint64_t elements = 0;
        std::pair<Rank, std::uint64_t> lowest;  // rank, and the hash of its bytes
        bool mismatch = false;
        std::pair<Rank, std::uint64_t> differs;  // the lowest rank with another hash
    };
    struct TensorState {
        TensorSum sum;
        std::array<ExactSum, 4> last;
        std::array<ExactSum, 2> moved;
        std::map<std::int64_t, std::vector<Hashes>> hashes;  // by step
    };
    struct CollectiveState {
        CollectiveTotal total;
        std::array<ExactSum, 2> sums;
    };
    struct RankState {
        RankFacts facts;
        Step first_step;
    };
    using NoteKey = std::pair<NoteKind, std::string>;

    static std::string key_of(const OpRecord&);
    OpState* op_of(const OpRecord&, std::size_t row);
    OpState* op_of(const OpRecord&);
    std::size_t layer_of(const OpRecord&);
    void add(OpState&, const OpRecord&, Step);
    void add_to_map(const OpState&, const OpRecord&, double loc, double cum, Step);
    void widen(std::int64_t column_steps);
    void add_step(const StepRecord&);
    void add_skip(const StepRecord&);
    void add(const TensorRecord&, Step);
    void add(const CollectiveRecord&, Step);
    void add(const DTypePlace&, Step);
    void thin();
    void merge_op(const OpState&);
    void merge_skip(const SkipState&);
    static void merge_step(StepState&, const StepState&);
    static void merge_tensor(TensorState&, const TensorState&);
    static void merge_hash(TensorState&, std::int64_t step, const Hashes&);
    static void note_gradient(SkipState&, const SkipFacts::Gradient&);
    static StepState state_of(const StepRecord&, Rank);
    static StepSummary summary_of(const StepState&);
    SkipFacts facts_of(const SkipState&) const;
    void put_steps(RunModel&) const;
    void put_ops(RunModel&) const;
    void put_ranks(RunModel&) const;

    FoldOptions options_;
    std::vector<OpState> ops_;
    std::unordered_map<std::string, std::size_t> op_ids_;
    std::vector<std::size_t> hints_;  // by row: where the op of the step before was
    std::vector<LayerSteps> layers_;
    std::unordered_map<std::string, std::size_t> layer_ids_;
    std::int64_t column_steps_ = 1;
    std::map<std::int64_t, StepState> steps_;
    std::int64_t steps_every_ = 1;
    std::map<std::int64_t, std::int64_t> recorded_;  // intervals of steps: first, last
    std::map<std::int64_t, SkipState> skips_;
    std::map<std::int64_t, std::int64_t> skipped_;   // as recorded_
    std::map<std::pair<TensorKind, std::string>, TensorState> tensors_;
    std::map<std::tuple<std::string, std::string, DType, std::string>, CollectiveState> collectives_;
    std::map<std::tuple<TensorRole, std::string, Phase, DType>, PlaceTotal> places_;
    std::map<DType, std::uint64_t> ops_by_dtype_;
    std::map<std::string, bool> policies_;
    std::map<NoteKey, RunModel::Note> notes_;
    std::vector<RankState> ranks_;
    std::vector<Error> unreadable_;
    Coverage coverage_;
    std::uint64_t seeds_after_first_ = 0, external_after_first_ = 0;
    std::int64_t total_wall_ns_ = 0;
    std::uint64_t ops_left_out_ = 0;

    // Of the recording that is being read.
    Rank rank_;
    RankState facts_;
    std::map<NoteKey, NoteRecord> file_notes_;
    std::int64_t wall_ns_ = 0;
    bool any_step_ = false;
};

}  // namespace mp::trace
