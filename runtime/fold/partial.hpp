#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/fold/exact_sum.hpp"
#include "runtime/fold/interner.hpp"
#include "runtime/fold/intervals.hpp"
#include "runtime/fold/op_table.hpp"
#include "runtime/fold/process_tables.hpp"
#include "runtime/fold/product_table.hpp"
#include "runtime/fold/run_model.hpp"
#include "runtime/fold/sketches.hpp"
#include "runtime/fold/tensor_table.hpp"

// Some recordings of a run, folded together. Folding is associative and commutative: any split of the
// recordings, in any order, merges into the same model.

namespace mp::trace {

inline constexpr std::size_t kMaxSkips = 10'000;
inline constexpr std::size_t kMaxNotes = 10'000;
inline constexpr std::size_t kMaxGradients = 16;
inline constexpr std::size_t kMaxExponents = 20'000;  // layers, phases and dtypes: 40 MB at most
inline constexpr std::size_t kMaxFirstProblems = 5;
inline constexpr std::uint64_t kTablesRoom = std::uint64_t{256}
                                             << 20;  // bytes, for the tables of all recordings

class Partial {
public:
    explicit Partial(const FoldOptions& options) : options_(options), ops_(options.columns) {}

    // The records of one recording, between begin() and end().
    void begin(std::uint64_t tables_room = kTablesRoom);
    void process(const ProcessRecord&);
    void step(const StepRows&, const OpColumns* ops, const NameList&);
    void step(const StepRecord&);  // through the same frames as in a file
    void note(const NoteRecord&);
    void end(const Recording& told);  // path, process and problems of it

    void unreadable(Error error) { unreadable_.push_back(std::move(error)); }
    void merge(const Partial&);
    RunModel model(const std::string& directory) const;

private:
    // The latest attempt: after a restart the ranks repeat the last steps, and only the repetition counts.
    struct StepState {
        std::int32_t restart = 0;
        StepSummary summary;
        ExactSum loss, twin_loss, gradient_error, gradient_twin;  // of gradients: squares
        std::uint64_t losses = 0, twins = 0;
        Rank scale_rank;
    };
    struct SkipState {
        SkipFacts facts;
        StepState step;  // of the ranks that skipped
        std::map<std::string, SkipFacts::Gradient> gradients;
        Rank scale_rank;
    };
    struct CollectiveState {
        CollectiveTotal total;
        std::array<ExactSum, kDoubleSums<CollectiveRecord>.size()> sums;
    };
    struct RankState {
        RankFacts facts;
        Intervals recorded, skipped;  // steps of the first optimizer
    };
    using NoteKey = std::pair<NoteKind, std::string>;

    using PlaceKey = std::tuple<TensorRole, std::uint32_t, Phase, DType>;

    using ExponentsKey = std::tuple<std::string, Phase, DType>;

    void add_step(const StepRows&, const OpColumns*, const NameList&);
    void add_other(const StepRecord&);
    void add_unfinished(const StepState&);
    void add_skip(const StepRows&, const OpColumns*, const NameList&);
    void add(const CollectiveRecord&, Step);
    void add_places(const StepRows&, const NameList&);
    void add_exponents(const OpColumns&, const NameList&);
    void keep_exponents(const ExponentsKey&, const Exponents&);
    void thin();
    void drop_between();
    void merge_skip(const SkipState&);
    static void merge_step(StepState&, const StepState&);
    static void note_gradient(SkipState&, const SkipFacts::Gradient&);
    StepState state_of(const StepRecord&) const;
    static StepSummary summary_of(const StepState&);
    std::vector<RankState> by_rank() const;
    static SkipFacts facts_of(const SkipState&, const std::vector<RankState>&);
    void put_steps(RunModel&) const;
    void put_trainings(RunModel&) const;
    void put_places(RunModel&) const;
    void put_ranks(RunModel&) const;

    FoldOptions options_;
    Interner names_;
    OpTable ops_;
    TensorTable tensors_;
    std::map<std::int64_t, StepState> steps_;
    std::map<std::pair<std::int32_t, std::int64_t>, StepState> others_;  // of optimizers after the first
    std::int64_t steps_every_ = 1;
    std::optional<StepState> unfinished_;
    std::map<std::int64_t, SkipState> skips_;
    std::map<std::tuple<std::string, std::string, DType, std::string, std::uint64_t>, CollectiveState>
        collectives_;
    SketchTable sketches_;
    ProductTable products_;
    void add(const MatmulRecord&);
    using MatmulKey = std::tuple<std::string, std::string, Phase, DType, DType, DType, std::string>;
    std::map<MatmulKey, MatmulRecord> matmuls_;
    std::map<std::pair<std::string, Phase>, std::pair<std::uint64_t, std::uint64_t>> times_;  // kernels, ns
    std::map<PlaceKey, PlaceTotal> places_;
    std::vector<std::map<PlaceKey, PlaceTotal>::iterator>
        place_hints_;  // by row of the latest step with places
    std::map<ExponentsKey, Exponents> exponents_;
    std::map<DType, std::uint64_t> ops_by_dtype_;
    std::map<std::string, bool> policies_;
    std::map<NoteKey, RunModel::Note> notes_;
    std::vector<RankState> ranks_;
    std::vector<Error> unreadable_;
    CoverageSum coverage_;
    std::int64_t total_wall_ns_ = 0;

    // State of the recording that is being read.
    Rank rank_;
    RankState facts_;
    std::map<NoteKey, NoteRecord> file_notes_;
    std::int64_t wall_ns_ = 0;
    Step first_step_;
    std::optional<TableMaker> tables_;
};

}  // namespace mp::trace
