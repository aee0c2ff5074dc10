#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "runtime/fold/partial.hpp"
#include "runtime/trace/dump.hpp"
#include "runtime/trace/info.hpp"
#include "runtime/trace/note_texts.hpp"
#include "tests/fakes/synthetic_run.hpp"
#include "tests/runtime/fold/model_text.hpp"
#include "tests/runtime/trace/samples.hpp"

namespace mp::trace {
namespace {

using fakes::Plan;
using test::text_of;

const OpSum* find(const RunModel& m, const std::string& layer, Phase phase) {
    for (const OpSum& op : m.ops) {
        if (op.total.layer == layer && op.total.phase == phase) return &op;
    }
    return nullptr;
}

Plan rich() {
    Plan plan{.ranks = 7,
              .layers = 5,
              .steps = 13,
              .dtype = DType::fp16,
              .skipped = {0, 1, 9},
              .stagnating = 2,
              .low_reduction = true,
              .absorbing_sum = true,
              .off_policy = 4,
              .missing = {5}};
    plan.overflow = Plan::Overflow{.layer = 3, .op = "aten::addmm", .step = 6, .rank = 2};
    plan.disagreement = Plan::Disagreement{.step = 10, .rank = 4};
    return plan;
}

void add(Partial& into, const Recording& r) {
    into.begin();
    if (r.has_process) into.process(r.process);
    for (const StepRecord& s : r.steps) into.step(s);
    for (const NoteRecord& n : r.notes) into.note(n);
    into.end(r);
}

// A NaN in every value that is compared: it has to win in every order.
void plant_nans(StepRecord& s) {
    s.coverage.worst_leak = -std::nan("");
    s.has_loss_scale = true;
    s.loss_scale = std::nan("");
    s.losses[0].real = -std::nan("");
    for (OpRecord& op : s.ops) {
        for (const auto& column : kOpValues) op.*column.field = std::nan("");
        op.compared = op.loc_compared = op.origins = op.elements;
    }
    for (TensorRecord& t : s.tensors) {
        t.compared = t.hash = 1;
        for (double TensorRecord::* const field :
             {&TensorRecord::error_squares, &TensorRecord::twin_squares, &TensorRecord::amax,
              &TensorRecord::twin_amax, &TensorRecord::moved_dot})
            t.*field = std::nan("");
    }
    for (double ProductRecord::* const field :
         {&ProductRecord::error_squares, &ProductRecord::block_error_squares})
        s.products[0].*field = std::nan("");
    for (CollectiveRecord& c : s.collectives) c.error_squares = std::nan(""), c.compared = 1;
}

// Every value that reports show of what is compared is the NaN, although other steps and ranks have numbers.
void expect_nans(const RunModel& m) {
    EXPECT_TRUE(std::isnan(m.coverage.worst_leak));
    EXPECT_TRUE(std::isnan(m.steps.at(0).loss));
    for (const OpSum& op : m.ops) {
        for (const double value : {op.total.amax, op.total.amin, op.total.twin_amax, op.total.error_squares,
                                   op.total.loc_worst, op.worst_loc_phi, op.worst_cum_phi})
            EXPECT_TRUE(std::isnan(value)) << op.total.layer << " " << op.total.op << " " << value;
        EXPECT_EQ(op.worst_cum.rank, Rank{3}) << op.total.layer;
    }
    for (const TensorSum& t : m.tensors) {
        EXPECT_TRUE(std::isnan(t.worst)) << t.name;
        EXPECT_EQ(t.worst_at.rank, Rank{3}) << t.name;
    }
    // Step 0 is skipped, so the optimizer runs no op in it.
    for (const LayerSteps& layer : m.map)
        EXPECT_TRUE(std::isnan(layer.cells.at(0).cum_phi) || layer.phase == Phase::optimizer) << layer.layer;
    ASSERT_FALSE(m.collectives.empty());
    for (const CollectiveTotal& c : m.collectives) EXPECT_TRUE(std::isnan(c.worst_phi)) << c.total.op;
    ASSERT_FALSE(m.products.empty());
    EXPECT_TRUE(std::isnan(m.products.front().worst.block_error_squares));
    EXPECT_EQ(m.products.front().worst_at.rank, Rank{3});
}

// Sketches of products, of which each step and rank has others.
void plant_products(trace::Run& run) {
    double x = 1;
    for (Recording& r : run.recordings)
        for (StepRecord& s : r.steps)
            for (const char* layer : {"blocks.0", "blocks.1"}) {
                x = std::fmod(x * 7.3, 11);
                s.matmuls.push_back({.layer = layer,
                                     .op = "matmul",
                                     .a = DType::bf16,
                                     .b = x > 5 ? DType::fp16 : DType::bf16,
                                     .how = x > 8 ? "fp16 sums" : "fp32 sums",
                                     .calls = 1,
                                     .m = static_cast<std::uint64_t>(100 * x),
                                     .n = static_cast<std::uint64_t>(1000 / x)});
                s.products.push_back({.layer = layer,
                                      .op = "matmul",
                                      .dtype = DType::bf16,
                                      .rows = 64,
                                      .sketched_rows = 64,
                                      .error_squares = x,
                                      .squares = 1e6 / x,
                                      .rounding_squares = 1,
                                      .block_error_squares = x / 2,
                                      .block_squares = 5e5,
                                      .block_rounding_squares = 0.4});
            }
}

// Steps of a second optimizer, and a second training.
void plant_others(trace::Run& run) {
    for (Recording& r : run.recordings) {
        std::vector<StepRecord> others;
        for (const StepRecord& s : r.steps) {
            others.push_back(s);
            others.back().optimizer = 1 + static_cast<std::int32_t>(s.step.value % 2);
            others.back().skipped = false;
        }
        r.steps.insert(r.steps.end(), others.begin(), others.end());
        r.notes.push_back(
            {NoteKind::not_observed, Step{3}, std::string(kNewTraining) + "3 on: training 2", 1});
        r.notes.push_back({NoteKind::not_observed, Step{4}, std::string(kCountsAgain) + "4 on again", 1});
    }
}

TEST(Fold, StepsOfOtherOptimizersAndTrainingsAreKeptApart) {
    trace::Run run = fakes::run_of(rich());
    const RunModel alone = fold(run);
    EXPECT_TRUE(alone.others.empty() && alone.trainings.empty());
    plant_others(run);
    const RunModel m = fold(run);
    ASSERT_EQ(m.others.size(), 2u);
    EXPECT_EQ(m.others[1].optimizer, 2);
    EXPECT_EQ(m.others[0].steps.size() + m.others[1].steps.size(), m.steps.size());
    EXPECT_EQ(m.others[1].steps[0].step, Step{1});
    EXPECT_EQ(m.others[1].steps[0].loss, m.steps[1].loss);
    EXPECT_EQ(m.trainings, (std::vector{Step{3}, Step{4}}));
    EXPECT_EQ(m.steps.size(), alone.steps.size());
    EXPECT_EQ(fold(run, {.steps = 4}).others.size(), 1u) << "every second step is kept, and 2 has the others";
}

// An op of each step adds to 4 elements, and from another step on in each recording all of them stay.
void plant_additions(trace::Run& run) {
    for (std::size_t i = 0; i < run.recordings.size(); ++i)
        for (StepRecord& s : run.recordings[i].steps) {
            s.ops.back().added = 4;
            s.ops.back().absorbed = s.step.value < static_cast<std::int64_t>(i) ? 3 : 4;
        }
}

TEST(Fold, TheStepFromWhichNothingMovesThatIsAddedTo) {
    trace::Run run = fakes::run_of(rich());
    for (Recording& r : run.recordings)
        for (StepRecord& s : r.steps) {
            s.ops.assign(1, s.ops.front());
            s.ops[0].op = "aten::add_";
            s.ops[0].added = s.step.value == 1 ? 0 : 4;
            s.ops[0].absorbed = s.step.value < 3 ? 3 : 4;
        }
    const RunModel m = fold(run);
    ASSERT_EQ(m.ops.size(), 1u);
    EXPECT_EQ(m.ops[0].last_moved, Step{2});
    EXPECT_EQ(m.ops[0].first_still, Step{3});
    EXPECT_EQ(m.ops[0].still, run.recordings.size() * (m.steps.size() - 3));
}

TEST(Fold, AnySplitInAnyOrderGivesTheSameModel) {
    trace::Run run = fakes::run_of(rich());
    plant_products(run);
    plant_others(run);
    plant_additions(run);
    for (StepRecord& s : run.recordings[1].steps) {
        s.ops[0].loc_dot = std::nan("");
        s.tensors[0].error_squares = std::numeric_limits<double>::infinity();
        s.step = Step{s.step.value * 100};  // wide: the map has several steps in a column
    }
    plant_nans(run.recordings[3].steps[0]);
    plant_nans(run.recordings[3].steps[4]);
    run.recordings.push_back(run.recordings[2]);
    run.recordings.back().process.restart = 1;
    auto& again = run.recordings.back().steps;
    again.pop_back();
    again.erase(again.begin(), again.begin() + 5);
    for (const std::size_t i : {0u, 2u, 4u, 6u}) {
        StepRecord rest = run.recordings[i].steps.back();
        rest.step = Step{i == 6 ? 11 : 13};  // that of the last attempt counts
        rest.optimizer = kNoOptimizer;
        rest.losses[0].real = i == 4 ? std::nan("") : 0.1 * static_cast<double>(i);
        run.recordings[i].steps.push_back(std::move(rest));
    }
    const FoldOptions options{.columns = 16, .steps = 10};
    ASSERT_TRUE(fold(run, options).unfinished);
    EXPECT_EQ(fold(run, options).unfinished->step, Step{11});
    expect_nans(fold(run, options));
    const std::string expected = text_of(fold(run, options));
    std::mt19937 random(1);
    for (int trial = 0; trial < 40; ++trial) {
        std::shuffle(run.recordings.begin(), run.recordings.end(), random);
        std::vector<Partial> parts;
        for (std::size_t n = 1 + random() % 4; n > 0; --n) parts.emplace_back(options);
        for (const Recording& r : run.recordings) add(parts[random() % parts.size()], r);
        while (parts.size() > 1) {
            const std::size_t from = random() % parts.size();
            std::swap(parts[from], parts.back());
            const std::size_t into = random() % (parts.size() - 1);
            parts[into].merge(parts.back());
            parts.pop_back();
        }
        ASSERT_EQ(text_of(parts[0].model(run.directory)), expected) << "trial " << trial;
    }
}

TEST(Fold, FilesGiveWhatRecordingsGiveOnAnyNumberOfThreads) {
    const test::TemporaryDirectory directory;
    ASSERT_TRUE(fakes::write(rich(), directory.path()));
    const auto run = read_run(directory.path());
    ASSERT_TRUE(run);
    const std::string expected = text_of(fold(*run));
    for (const int threads : {1, 2, 3, 8, 64}) {
        const auto model = fold_run(directory.path(), {.threads = threads});
        ASSERT_TRUE(model);
        EXPECT_EQ(text_of(*model), expected) << threads;
    }
}

// What the text and JSON reports list is the same however the recordings were read.
TEST(Fold, TablesAreMadeOnlyWhenAskedForAndOnAnyNumberOfThreads) {
    const test::TemporaryDirectory directory;
    ASSERT_TRUE(fakes::write(rich(), directory.path()));
    const auto run = read_run(directory.path());
    ASSERT_TRUE(run);
    EXPECT_FALSE(fold(*run).ranks.at(0).tables);
    const RunModel expected = fold(*run, {.tables = true});
    const auto model = fold_run(directory.path(), {.threads = 3, .tables = true});
    ASSERT_TRUE(model);
    EXPECT_EQ(text_of(*model), text_of(fold(*run))) << "the rest of the model does not change";
    ASSERT_EQ(model->ranks.size(), run->recordings.size());
    for (std::size_t i = 0; i < model->ranks.size(); ++i) {
        const Recording& recording = run->recordings[i];
        const ProcessTables &made = *model->ranks[i].tables, &wanted = *expected.ranks[i].tables;
        EXPECT_EQ(made.counts.bytes, recording.bytes);
        EXPECT_EQ(made.counts.notes, recording.notes.size());
        ASSERT_EQ(made.steps.size(), recording.steps.size());
        EXPECT_EQ(made.steps.back().losses.back().real, recording.steps.back().losses.back().real);
        EXPECT_EQ(made.coverage.sum.ops, wanted.coverage.sum.ops);
        ASSERT_EQ(made.tensors.size(), wanted.tensors.size());
        for (auto a = made.tensors.begin(), b = wanted.tensors.begin(); a != made.tensors.end(); ++a, ++b) {
            EXPECT_EQ(a->first, b->first);
            EXPECT_EQ(a->second.worst_step, b->second.worst_step);
        }
    }
}

TEST(Fold, TablesThatDoNotFitSayWhatIsLeftOut) {
    const trace::Run run = fakes::run_of(rich());
    Partial partial(FoldOptions{.tables = true});
    partial.begin(3 * sizeof(StepRow));
    for (const StepRecord& s : run.recordings[0].steps) partial.step(s);
    partial.end(run.recordings[0]);
    const RunModel model = partial.model("");
    const ProcessTables& tables = *model.ranks.at(0).tables;
    EXPECT_LE(tables.steps.size(), 3u);
    EXPECT_TRUE(tables.tensors.empty());
    EXPECT_EQ(tables.counts.steps, run.recordings[0].steps.size()) << "counts are of all records";
    ASSERT_EQ(tables.counts.problems.size(), 1u);
    EXPECT_EQ(tables.counts.problems[0].why,
              std::to_string(run.recordings[0].steps.size()) + " records are not listed: too many to hold");
}

TEST(Fold, AHistoryKeepsTheLastAndTheWorstAndANaNIsTheWorst) {
    trace::Run run;
    Recording& r = run.recordings.emplace_back();
    for (const double error : {1.0, 9.0, 4.0}) {
        StepRecord s;
        s.step = Step{static_cast<std::int64_t>(r.steps.size())};
        TensorRecord t;
        t.name = "w";
        t.error_squares = error;
        t.twin_squares = 1;
        s.tensors = {t};
        r.steps.push_back(s);
    }
    const auto history = [&] {
        return fold(run, {.tables = true}).ranks[0].tables->tensors.at({"w", TensorKind::parameter});
    };
    TensorHistory h = history();
    EXPECT_EQ(h.worst, 3.0);
    EXPECT_EQ(h.worst_step.value, 1);
    EXPECT_EQ(h.last_step.value, 2);
    r.steps[0].tensors[0].error_squares = std::nan("");
    h = history();
    EXPECT_TRUE(std::isnan(h.worst));
    EXPECT_EQ(h.worst_step.value, 0);
}

// A restarted recording begins at step 40, say; its first step seeds every shadow all the same.
TEST(Fold, SeedsOfTheFirstStepOfARecordingAreNoLostHistory) {
    trace::Run run;
    Recording& r = run.recordings.emplace_back();
    r.process.restart = 1;
    r.steps.resize(2);
    r.steps[0].step = Step{40};
    r.steps[0].coverage = {.seeds = 5};
    r.steps[1].step = Step{41};
    r.steps[1].coverage = {.seeds = 5, .external = 4};
    const RunModel model = fold(run, {.tables = true});
    const CoverageSum& own = model.ranks[0].tables->coverage;
    for (const CoverageSum& c :
         {own, {model.coverage, model.seeds_after_first, model.external_after_first}}) {
        EXPECT_EQ(c.seeds_after_first, 5u);
        EXPECT_EQ(c.external_after_first, 4u);
        EXPECT_EQ(c.sum.seeds, 10u);
    }
}

TEST(Fold, APlantedOverflowIsFoundWithItsPlace) {
    const RunModel m = fold(fakes::run_of(rich()));
    const OpSum* op = find(m, fakes::layer_name(3), Phase::forward);
    ASSERT_TRUE(op);
    EXPECT_EQ(op->first_origin.step, Step{6});
    EXPECT_EQ(op->first_origin.rank, Rank{2});
    EXPECT_EQ(op->at_origin.input_amax, 301.5);
    EXPECT_EQ(op->ranks, 6u);
    ASSERT_EQ(m.skips.size(), 5u);
    const SkipFacts& skip = m.skips[2];
    EXPECT_EQ(skip.step, Step{6});
    EXPECT_EQ(skip.origin.layer, fakes::layer_name(3));
    EXPECT_EQ(skip.origin_rank, Rank{2});
    EXPECT_EQ(skip.skipped_by.size(), 6u);
    EXPECT_TRUE(skip.stepped_by.empty());
    EXPECT_FALSE(skip.loss_finite);
    EXPECT_EQ(m.skipped_steps, 5);
    ASSERT_EQ(m.missing.size(), 1u);
    EXPECT_EQ(m.missing[0], Rank{5});
}

// The distance of a token to itself is 0: its logarithm is -inf, in fp32 too, and a where() replaces it.
TEST(Fold, WhatASoundTwinHasTooDoesNotCauseASkip) {
    trace::Run run;
    StepRecord& step = run.recordings.emplace_back().steps.emplace_back();
    step.step = Step{0};
    step.skipped = true;
    step.losses = {{.real = 3, .twin = 3, .has_twin = true}};
    OpRecord log, overflow;
    log.layer = "attention", log.op = "aten::log", log.phase = Phase::forward, log.dtype = DType::fp32;
    log.elements = 10, log.compared = 9, log.neg_inf = 1, log.origins = 1, log.first = log.first_origin = 5;
    overflow.layer = "q", overflow.op = "aten::mm", overflow.phase = Phase::backward;
    overflow.dtype = DType::fp16, overflow.elements = 10, overflow.compared = 9, overflow.pos_inf = 1;
    overflow.nonfinite_real = overflow.origins = 1, overflow.first = overflow.first_origin = 9;
    step.ops = {log, overflow};
    step.tensors.push_back({.kind = TensorKind::gradient, .name = "q.weight", .nonfinite_real = 1});
    EXPECT_EQ(fold(run).skips.at(0).origin.layer, "q");
    EXPECT_EQ(fold(run).skips.at(0).forward_origins, 0u);
    step.tensors[0].nonfinite_twin = 1;
    EXPECT_EQ(fold(run).skips.at(0).origin.layer, "attention") << "it reaches the gradients in fp32 too";
}

TEST(Fold, RanksThatDisagreeAreNamedOnBothSides) {
    const RunModel m = fold(fakes::run_of(rich()));
    const SkipFacts& skip = m.skips.back();
    EXPECT_EQ(skip.step, Step{10});
    EXPECT_EQ(skip.skipped_by, std::vector<Rank>{Rank{4}});
    EXPECT_EQ(skip.stepped_by.size(), 5u);
    ASSERT_EQ(skip.gradients.size(), 1u);
    EXPECT_EQ(skip.gradients[0].rank, Rank{4});
    const TensorSum& weight = m.tensors.front();
    EXPECT_EQ(weight.hash_mismatches, 2u) << "steps 10 and 12 are sampled";
    EXPECT_EQ(weight.first_mismatch.step, Step{10});
    EXPECT_EQ(weight.first_mismatch.rank, Rank{4});
}

Exponents exponents(unsigned lowest, const std::vector<std::uint64_t>& counts) {
    Exponents e;
    e.add(lowest, counts);
    return e;
}

TEST(Fold, ExponentsOfALayerAreThoseOfItsOpsStepsAndRanks) {
    trace::Run run = fakes::run_of({.ranks = 2, .layers = 2, .steps = 2, .dtype = DType::fp16});
    EXPECT_TRUE(fold(run).exponents.empty());
    const std::string layer = fakes::layer_name(1);
    for (Recording& r : run.recordings) {
        for (StepRecord& s : r.steps) {
            for (OpRecord& op : s.ops) {
                if (op.layer == layer && op.phase == Phase::forward)
                    op.exponents.add(exponents(120, {1, 0, 5}));
            }
        }
    }
    run.recordings[1].steps[1].ops[0].exponents = exponents(254, {9});
    const OpRecord& odd = run.recordings[1].steps[1].ops[0];
    const RunModel m = fold(run);
    ASSERT_EQ(m.exponents.size(), 2u);
    std::uint64_t rows = 0;
    for (const OpRecord& op : run.recordings[0].steps[0].ops)
        rows += op.layer == layer && op.phase == Phase::forward;
    for (const LayerExponents& e : m.exponents) {
        EXPECT_EQ(e.layer, e.phase == Phase::forward && e.layer == layer ? layer : odd.layer);
        EXPECT_EQ(e.exponents,
                  e.layer == layer ? exponents(120, {4 * rows, 0, 20 * rows}) : exponents(254, {9}));
    }
}

TEST(Fold, ExponentsGrowToBothSides) {
    Exponents e = exponents(120, {0, 0, 3, 0});
    EXPECT_EQ(e.lowest, 122u);
    EXPECT_EQ(e.counts, std::vector<std::uint64_t>{3});
    e.add(exponents(118, {7}));
    e.add(exponents(123, {1, 1}));
    e.add(exponents(0, {}));
    EXPECT_EQ(e, exponents(118, {7, 0, 0, 0, 3, 1, 1}));
}

// Steps 2 and 3 are done again after a restart; rank 1 does not get as far as step 3.
TEST(Fold, AStepDoneAgainAfterARestartIsWhatItWasTheLastTime) {
    trace::Run run = fakes::run_of({.ranks = 2, .steps = 4, .dtype = DType::bf16});
    const auto set_losses = [](Recording& r, double loss) {
        for (StepRecord& s : r.steps) {
            s.losses = {{.dtype = DType::fp32, .real = loss, .twin = loss, .has_twin = true}};
            s.coverage = {.ops = 10};
        }
    };
    for (int rank = 0; rank < 2; ++rank) {
        set_losses(run.recordings[static_cast<std::size_t>(rank)], 1 + 2 * rank);
        Recording again = run.recordings[static_cast<std::size_t>(rank)];
        again.process.restart = 1;
        again.steps.erase(again.steps.begin(), again.steps.begin() + 2);
        if (rank == 1) again.steps.pop_back();
        set_losses(again, 10 + 10 * rank);
        run.recordings.push_back(again);
    }
    for (int turn = 0; turn < 2; ++turn) {
        const RunModel m = fold(run);
        ASSERT_EQ(m.steps.size(), 4u);
        EXPECT_EQ(m.steps[1].loss, 2);
        EXPECT_EQ(m.steps[2].loss, 15);
        EXPECT_EQ(m.steps[2].twin_loss, 15);
        EXPECT_EQ(m.steps[3].loss, 10);
        EXPECT_EQ(m.steps[2].coverage.ops, 20u);
        EXPECT_EQ(m.steps[3].ranks, 2);
        std::reverse(run.recordings.begin(), run.recordings.end());
    }
}

// Two ranks hold a parameter of the same size: replicas that part, replicas, and shards.
// Gradients grow after the first steps, so the last one may have no small values left.
TEST(Fold, TheStepThatFlushedMostIsKept) {
    trace::Run run;
    Recording& r = run.recordings.emplace_back();
    for (const std::uint64_t flushed : {30, 50, 0}) {
        StepRecord& s = r.steps.emplace_back();
        s.step = Step{static_cast<std::int64_t>(r.steps.size()) - 1};
        TensorRecord& t = s.tensors.emplace_back();
        t.name = "w.exp_avg_sq";
        t.compared = 200;
        t.flushed = flushed;
    }
    const RunModel m = fold(run);
    ASSERT_EQ(m.tensors.size(), 1u);
    EXPECT_EQ(m.tensors[0].most_flushed, 0.25);
    EXPECT_EQ(m.tensors[0].most_flushed_at.step, Step{1});
    EXPECT_EQ(m.tensors[0].last.flushed, 0u);
}

TEST(Fold, ReplicasAreWhereTheTwinsAgree) {
    const auto parameter = [](std::string name, std::uint64_t hash, double twin_squares) {
        TensorRecord t;
        t.name = std::move(name);
        t.elements = t.compared = 64;
        t.twin_squares = twin_squares;
        t.hash = hash;
        return t;
    };
    trace::Run run = fakes::run_of({.ranks = 2, .layers = 1, .steps = 2});
    for (std::uint64_t rank = 0; rank < 2; ++rank) {
        for (StepRecord& s : run.recordings[rank].steps) {
            const std::uint64_t later = s.step.value > 0 ? rank : 0;
            s.tensors = {parameter("parted", 7 + later, 4), parameter("replica", 7, 4),
                         parameter("shard", 7 + rank, 4 + static_cast<double>(rank)),
                         parameter("unseen", 7 + rank, 0)};
        }
    }
    const RunModel m = fold(run);
    ASSERT_EQ(m.tensors.size(), 4u);
    EXPECT_EQ(m.tensors[0].replicas, 2u);
    EXPECT_EQ(m.tensors[0].replica_mismatches, 1u);
    EXPECT_EQ(m.tensors[0].first_replica_mismatch.step, Step{1});
    EXPECT_EQ(m.tensors[0].first_replica_mismatch.rank, Rank{1});
    EXPECT_EQ(m.tensors[1].replicas, 2u);
    EXPECT_EQ(m.tensors[1].replica_mismatches, 0u);
    for (const std::size_t other : {2u, 3u}) {
        EXPECT_EQ(m.tensors[other].replicas, 0u) << m.tensors[other].name;
        EXPECT_EQ(m.tensors[other].replica_mismatches, 0u) << m.tensors[other].name;
        EXPECT_EQ(m.tensors[other].hash_mismatches, 2u) << m.tensors[other].name;
    }
}

TEST(Fold, TotalErrorGrowsWithDepthAndIntroducedErrorIsAFloor) {
    const RunModel m = fold(fakes::run_of({.ranks = 2, .layers = 9, .steps = 4}));
    const OpSum* first = find(m, fakes::layer_name(0), Phase::forward);
    const OpSum* last = find(m, fakes::layer_name(8), Phase::forward);
    ASSERT_TRUE(first && last);
    EXPECT_NEAR(first->worst_loc_phi, 1, 0.15);
    EXPECT_NEAR(last->worst_loc_phi, 1, 0.15);
    EXPECT_GT(last->worst_cum_phi, 2.4 * first->worst_cum_phi);
    EXPECT_EQ(m.map.front().layer, fakes::layer_name(0));
    EXPECT_EQ(m.map.front().cells.size(), 4u);
    EXPECT_EQ(m.map.front().cells[1].loc_phi, -1) << "step 1 is not sampled";
}

TEST(Fold, StagnationAndReductionsAreCounted) {
    const RunModel m = fold(fakes::run_of(rich()));
    const auto weight = std::find_if(m.tensors.begin(), m.tensors.end(), [](const TensorSum& t) {
        return t.name == fakes::layer_name(2) + ".weight" && t.kind == TensorKind::parameter;
    });
    ASSERT_NE(weight, m.tensors.end());
    EXPECT_EQ(weight->first_stagnant, Step{2});
    EXPECT_GT(weight->samples, 10u);
    EXPECT_EQ(weight->unmoved * 16, weight->meant_to_move * 15);
    ASSERT_EQ(m.collectives.size(), 1u);
    EXPECT_NEAR(m.collectives[0].worst_phi, 12, 0.1);
}

TEST(Fold, ALongRunKeepsItsBoundsAndItsWorstColumns) {
    Plan plan{.ranks = 2, .layers = 1, .steps = 1000, .dtype = DType::fp16};
    plan.overflow = Plan::Overflow{.layer = 0, .op = "aten::addmm", .step = 777, .rank = 1};
    const RunModel m = fold(fakes::run_of(plan), {.columns = 16, .steps = 100});
    EXPECT_EQ(m.step_count, 1000);
    EXPECT_EQ(m.column_steps, 64);
    EXPECT_LE(m.map.front().cells.size(), 16u);
    EXPECT_EQ(m.map.front().cells[777 / 64].nonfinite, 3u);
    EXPECT_EQ(m.steps_every, 16);
    EXPECT_LE(m.steps.size(), 101u);
    EXPECT_TRUE(std::any_of(m.steps.begin(), m.steps.end(),
                            [](const StepSummary& s) { return s.step == Step{777} && s.skipped == 2; }));
}

TEST(Fold, EdgesOfARun) {
    EXPECT_EQ(fold(trace::Run{}).step_count, 0);
    trace::Run run = fakes::run_of({.ranks = 3, .layers = 1, .steps = 4});
    run.recordings[0].steps.clear();
    run.recordings[1].process.rank = {};
    run.recordings[2].steps.erase(run.recordings[2].steps.begin() + 1);
    Recording restarted = run.recordings[2];
    restarted.process.restart = 1;
    run.recordings.push_back(restarted);
    StepRecord second = run.recordings[2].steps[0];
    second.optimizer = 1;
    run.recordings[2].steps.push_back(second);
    StepRecord nowhere = second;
    nowhere.optimizer = 0;
    nowhere.step = Step{-9};
    run.recordings[2].steps.push_back(nowhere);
    nowhere.step = Step{std::numeric_limits<std::int64_t>::max()};
    run.recordings[2].steps.push_back(nowhere);
    const RunModel m = fold(run);
    EXPECT_EQ(m.step_count, 5);
    EXPECT_EQ(m.steps.front().ranks, 2)
        << "a restart counts once; the second optimizer is no step of the first";
    EXPECT_EQ(m.ranks.size(), 4u);
    EXPECT_FALSE(m.ranks.back().process.rank.known()) << "without a rank: last";
    EXPECT_LE(m.map.front().cells.size(), 512u);
}

TEST(Fold, ATaskThatBeginsTakesTheEndBack) {
    trace::Run run = fakes::run_of({.ranks = 1, .layers = 1, .steps = 2});
    std::vector<NoteRecord>& notes = run.recordings[0].notes;
    std::erase_if(notes, [](const NoteRecord& n) { return n.kind == NoteKind::end; });
    for (const auto& [text, ended] : {std::pair("ValueError", true), {"in a task", false}, {"", true}}) {
        notes.push_back({NoteKind::end, Step{1}, text, 2});
        const RunModel m = fold(run);
        EXPECT_EQ(m.ranks[0].ended, ended) << text;
        EXPECT_EQ(m.ranks[0].ended_by, ended ? text : "");
        EXPECT_EQ(counts_of(run.recordings[0]).ended, ended) << text;
    }
}

}  // namespace
}  // namespace mp::trace
