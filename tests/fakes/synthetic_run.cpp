#include "tests/fakes/synthetic_run.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <system_error>

#include "kernels/numerics/float_format.hpp"
#include "runtime/trace/identity.hpp"
#include "runtime/trace/recorder.hpp"

namespace mp::trace::fakes {
namespace {

constexpr std::uint64_t kElements = 4096;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool holds(const std::vector<int>& list, int value) {
    return std::find(list.begin(), list.end(), value) != list.end();
}

// SplitMix64 (Steele, Lea, Flood 2014), used as a hash of its argument.
std::uint64_t mixed(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

// The relative L2 of one rounding; metrics.md gives 0.425 of the unit roundoff.
double floor_of(DType d) {
    const FloatFormat* f = format_of(d);
    return f ? 0.425 * unit_roundoff(*f) : 0;
}

DType other_half(DType d) { return d == DType::bf16 ? DType::fp16 : DType::bf16; }

class Maker {
public:
    Maker(const Plan& plan, int rank) : plan_(plan), rank_(rank), scale_(plan.first_scale) {}

    StepRecord step(int number) {
        StepRecord s;
        number_ = number;
        ordinal_ = 0;
        tainted_ = false;
        sampled_ = plan_.sample_every > 0 && number % plan_.sample_every == 0;
        s.step = Step{number};
        s.sampled = sampled_;
        s.wall_ns = 20'000'000 + static_cast<std::int64_t>(2'000'000 * spread(1));
        forward(s);
        backward(s);
        const bool skips = skipped();
        s.skipped = skips;
        s.has_loss_scale = scaled();
        s.loss_scale = scaled() ? scale_ : 0;
        tensors(s, skips);
        optimizer(s, skips);
        collectives(s);
        coverage(s);
        if (number == 0) places(s);
        if (skips) scale_ /= 2;
        return s;
    }

private:
    bool twin() const { return plan_.mode == Mode::step || plan_.mode == Mode::trajectory; }
    bool scaled() const {
        return plan_.loss_scale || !plan_.skipped.empty() || plan_.disagreement ||
               (plan_.overflow && plan_.dtype == DType::fp16);
    }
    bool overflows_here() const { return plan_.overflow && plan_.overflow->step == number_; }
    bool disagrees_here() const {
        return plan_.disagreement && plan_.disagreement->step == number_ && plan_.disagreement->rank == rank_;
    }
    bool skipped() const {
        return scaled() && (overflows_here() || holds(plan_.skipped, number_) || disagrees_here());
    }
    // In [0, 1), the same for the same question.
    double spread(std::uint64_t what) const {
        std::uint64_t x = mixed(plan_.seed);
        for (const int part : {rank_, number_}) x = mixed(x ^ static_cast<std::uint64_t>(part));
        return static_cast<double>(mixed(x ^ what) >> 11) / 9007199254740992.0;
    }
    double about(double value, std::uint64_t what) const { return value * (0.9 + 0.2 * spread(what)); }
    DType dtype_of(int layer) const {
        return layer == plan_.off_policy ? other_half(plan_.dtype) : plan_.dtype;
    }

    void make_nonfinite(OpRecord& op, bool origin) const {
        op.pos_inf = origin ? 3 : op.elements / 4;
        op.nan = origin ? 0 : op.elements / 4;
        op.amax = 65504;
        if (twin()) {
            op.nonfinite_real = op.pos_inf + op.nan;
            op.compared -= op.nonfinite_real;
        }
        if (!origin) return;
        op.input_amax = 301.5;
        op.twin_amax = 90'000;
        op.origins = 1;
        op.first_origin = op.first;
        if (sampled_) op.loc_nonfinite = op.pos_inf;
    }

    OpRecord& add_op(StepRecord& s, std::string layer, const char* name, Phase phase, DType dtype,
                     int depth) {
        OpRecord op;
        op.layer = std::move(layer);
        op.op = name;
        op.phase = phase;
        op.dtype = dtype;
        op.first = ordinal_;
        op.calls = 1;
        op.source = "train.py:" + std::to_string(phase == Phase::forward ? 20 : 88);
        op.elements = kElements;
        op.zeros = 7;
        op.amax = about(4.2, ordinal_ * 8);
        op.amin = about(1e-4, ordinal_ * 8 + 1);
        if (twin()) {
            const double squares = about(static_cast<double>(kElements), ordinal_ * 8 + 2);
            const double introduced = about(floor_of(dtype), ordinal_ * 8 + 3);
            const double total = introduced * std::sqrt(1.0 + depth);
            op.compared = kElements;
            op.twin_amax = op.amax;
            op.twin_squares = squares;
            op.error_squares = total * total * squares;
            op.twin_abs = 0.8 * squares;
            if (sampled_) {
                op.loc_compared = kElements;
                op.loc_squares = squares;
                op.loc_error_squares = introduced * introduced * squares;
                op.loc_dot = introduced * squares * 1e-3 * (spread(ordinal_ * 8 + 4) - 0.5);
                op.loc_worst = introduced;
                op.prop_error_squares = op.error_squares - op.loc_error_squares;
            }
        }
        ordinal_ += 3;
        s.ops.push_back(std::move(op));
        return s.ops.back();
    }

    void forward(StepRecord& s) {
        for (int i = 0; i < plan_.layers; ++i) {
            OpRecord& op = add_op(s, layer_name(i), "aten::addmm", Phase::forward, dtype_of(i), i);
            taint(op, i);
        }
        OpRecord& loss =
            add_op(s, "(loss)", "aten::nll_loss_forward", Phase::forward, DType::fp32, plan_.layers);
        if (twin())
            loss.error_squares =
                std::pow(floor_of(plan_.dtype), 2) * (1.0 + plan_.layers) * loss.twin_squares;
        if (tainted_) make_nonfinite(loss, false);
        if (plan_.absorbing_sum) absorb(s);
        LossRecord root;
        root.dtype = DType::fp32;
        root.real = tainted_ ? kInfinity : 2.5 - 0.1 * number_ + 0.01 * spread(2);
        root.has_twin = twin();
        if (twin()) root.twin = 2.5 - 0.1 * number_ + 0.01 * spread(2) + 1e-4 * spread(3);
        s.losses.push_back(root);
    }

    void absorb(StepRecord& s) {
        OpRecord& sum = add_op(s, "(loss)", "aten::add_", Phase::forward, plan_.dtype, plan_.layers);
        sum.calls = 512;
        sum.elements = 512;
        if (!sampled_) return;
        sum.added = 512;
        sum.absorbed = 256;
        // Each absorbed addend is lost to the sum: a bias of half of the added values.
        sum.loc_compared = twin() ? 512 : 0;
        sum.loc_error_squares = 9 * sum.loc_squares * std::pow(floor_of(plan_.dtype), 2);
        sum.loc_dot = -2 * floor_of(plan_.dtype) * sum.loc_squares;
    }

    void taint(OpRecord& op, int layer) {
        const auto& plant = plan_.overflow;
        if (tainted_) {
            make_nonfinite(op, false);
        } else if (overflows_here() && plant->rank == rank_ && plant->layer == layer && plant->op == op.op) {
            make_nonfinite(op, true);
            tainted_ = true;
        }
    }

    void backward(StepRecord& s) {
        for (int i = plan_.layers - 1; i >= 0; --i) {
            OpRecord& op =
                add_op(s, layer_name(i), "aten::mm", Phase::backward, dtype_of(i), 2 * plan_.layers - i);
            // A gradient too large by the loss scale: the last layer's backward leaves the format first.
            if (holds(plan_.skipped, number_) && rank_ == 0 && !tainted_) {
                make_nonfinite(op, true);
                op.input_amax = scale_;
                tainted_ = true;
            } else {
                taint(op, i);
            }
            if (twin()) op.flushed_abs = 1e-4 * op.twin_abs;
        }
    }

    void tensors(StepRecord& s, bool skips) {
        const bool bad = overflows_here() || holds(plan_.skipped, number_) || disagrees_here();
        for (int i = 0; i < plan_.layers; ++i) {
            TensorRecord weight =
                tensor(TensorKind::parameter, i, DType::fp32, 1e-6 * std::sqrt(1.0 + number_));
            TensorRecord gradient = tensor(TensorKind::gradient, i, dtype_of(i), 3 * floor_of(plan_.dtype));
            if (i == plan_.off_policy) weight.dtype = dtype_of(i);
            if (i == plan_.stagnating) stagnate(weight, skips);
            if (bad && i + 1 == plan_.layers) {
                gradient.nonfinite_real = 5;
                if (twin()) gradient.compared -= 5;
                gradient.twin_amax = scaled() ? 2 * scale_ : 4;
            }
            if (sampled_) weight.hash = hash(i);
            s.tensors.push_back(std::move(weight));
            s.tensors.push_back(std::move(gradient));
        }
    }

    TensorRecord tensor(TensorKind kind, int layer, DType dtype, double error) const {
        TensorRecord t;
        t.kind = kind;
        t.name = layer_name(layer) + ".weight";
        t.dtype = dtype;
        t.elements = kElements;
        t.amax = about(0.3, 40 + static_cast<std::uint64_t>(layer));
        if (!twin()) return t;
        t.compared = kElements;
        t.differ = kElements / 2;
        t.twin_squares = 0.01 * kElements;
        t.error_squares = error * error * t.twin_squares;
        t.twin_amax = t.amax;
        t.twin_abs = 0.08 * kElements;
        return t;
    }

    void stagnate(TensorRecord& weight, bool skips) const {
        weight.dtype = plan_.dtype;
        if (!sampled_ || skips) return;
        weight.meant_to_move = kElements;
        weight.unmoved = kElements - kElements / 16;
        weight.below_half_ulp = weight.unmoved;
        weight.wanted_squares = 1e-8 * kElements;
        weight.moved_dot = 0.06 * weight.wanted_squares;
    }

    // All ranks hold the same bytes until one of them went its own way.
    std::uint64_t hash(int layer) const {
        const bool apart =
            plan_.disagreement && plan_.disagreement->rank == rank_ && number_ >= plan_.disagreement->step;
        const std::uint64_t who = apart ? static_cast<std::uint64_t>(rank_) + 1 : 0;
        return mixed(plan_.seed ^ mixed(static_cast<std::uint64_t>(number_) * 65536 +
                                        static_cast<std::uint64_t>(layer) + (who << 40))) |
               1;
    }

    void optimizer(StepRecord& s, bool skips) {
        if (!skips) add_op(s, "(optimizer)", "aten::addcdiv_", Phase::optimizer, DType::fp32, 0);
    }

    void collectives(StepRecord& s) const {
        CollectiveRecord c;
        c.op = "all_reduce";
        c.reduction = "avg";
        c.dtype = plan_.low_reduction ? plan_.dtype : DType::fp32;
        c.group = "0";
        c.calls = static_cast<std::uint64_t>(plan_.layers);
        c.bytes = c.calls * kElements * (plan_.low_reduction ? 2 : 4);
        if (plan_.low_reduction && twin()) {
            c.compared = c.calls * kElements;
            c.sum_squares = static_cast<double>(c.compared);
            c.error_squares = std::pow(12 * floor_of(plan_.dtype), 2) * c.sum_squares;
        }
        s.collectives.push_back(c);
    }

    void coverage(StepRecord& s) const {
        s.coverage.ops = s.ops.size() * 3;
        if (twin()) {
            s.coverage.shadowed = s.ops.size();
            s.coverage.shadowed_bytes = s.ops.size() * kElements * 2;
            if (number_ == 0) s.coverage.seeds = static_cast<std::uint64_t>(plan_.layers);
        }
        s.dtypes = {{plan_.dtype, s.ops.size()}, {DType::fp32, 2}};
    }

    void places(StepRecord& s) const {
        for (int i = 0; i < plan_.layers; ++i) {
            const DType weights = i == plan_.off_policy || i == plan_.stagnating ? dtype_of(i) : DType::fp32;
            s.places.push_back({TensorRole::parameter, layer_name(i), Phase::unknown, weights, 1, kElements});
            s.places.push_back(
                {TensorRole::activation, layer_name(i), Phase::forward, dtype_of(i), 1, kElements});
            s.places.push_back(
                {TensorRole::gradient, layer_name(i), Phase::backward, dtype_of(i), 1, kElements});
        }
    }

    const Plan& plan_;
    int rank_;
    double scale_;
    int number_ = 0;
    std::uint64_t ordinal_ = 0;
    bool tainted_ = false;
    bool sampled_ = false;
};

ProcessRecord process_of(const Plan& plan, int rank) {
    ProcessRecord p;
    p.rank = Rank{rank};
    p.local_rank = rank % 8;
    p.world_size = plan.ranks;
    p.pid = 1000 + rank;
    p.started_unix_ns = 1'790'000'000'000'000'000 + rank;
    p.host = "node-" + std::to_string(rank / 8);
    p.job = "synthetic";
    p.launcher = "torchrun";
    p.program = "python3";
    p.framework = "torch 2.11.0";
    p.adapter = "0.1.0";
    p.mode = plan.mode;
    return p;
}

std::vector<NoteRecord> notes_of(const Plan& plan) {
    std::vector<NoteRecord> notes;
    notes.push_back({.kind = NoteKind::policy,
                     .step = Step{0},
                     .text = plan.dtype == DType::fp16 ? "autocast:cuda=fp16" : "autocast:cuda=bf16"});
    if (!plan.killed)
        notes.push_back({.kind = NoteKind::end,
                         .step = Step{plan.steps - 1},
                         .text = "",
                         .count = static_cast<std::uint64_t>(plan.steps)});
    return notes;
}

std::string file_name(const ProcessRecord& p) {
    Identity identity;
    identity.rank = p.rank;
    identity.host = p.host;
    identity.pid = p.pid;
    return recording_name(identity);
}

}  // namespace

std::string layer_name(int layer) { return "blocks." + std::to_string(layer) + ".fc"; }

Recording recording_of(const Plan& plan, int rank) {
    Recording r;
    r.has_process = true;
    r.process = process_of(plan, rank);
    r.path = file_name(r.process);
    Maker maker(plan, rank);
    for (int k = 0; k < plan.steps; ++k) r.steps.push_back(maker.step(k));
    r.notes = notes_of(plan);
    return r;
}

Run run_of(const Plan& plan) {
    Run run;
    run.directory = "synthetic";
    for (int rank = 0; rank < plan.ranks; ++rank) {
        if (holds(plan.missing, rank)) {
            run.missing.push_back(Rank{rank});
        } else {
            run.recordings.push_back(recording_of(plan, rank));
        }
    }
    return run;
}

Status write(const Plan& plan, const std::string& directory) {
    constexpr int kPatience = 60'000;
    for (int rank = 0; rank < plan.ranks; ++rank) {
        if (holds(plan.missing, rank)) continue;
        const ProcessRecord process = process_of(plan, rank);
        auto recorder = Recorder::open(directory, file_name(process),
                                       {.file_bytes = 4ull << 30, .queue_bytes = 256u << 20});
        if (!recorder) return recorder.error();
        (*recorder)->process(process);
        Maker maker(plan, rank);
        for (int k = 0; k < plan.steps; ++k) {
            (*recorder)->step(maker.step(k));
            if (k % 16 == 15) (*recorder)->flush(kPatience);
        }
        for (const NoteRecord& note : notes_of(plan)) (*recorder)->note(note);
        if (!(*recorder)->flush(kPatience)) return Error{(*recorder)->path() + ": not written", {}};
        const std::string path = (*recorder)->path();
        recorder->reset();
        if (rank != plan.truncated) continue;
        std::error_code failed;
        std::filesystem::resize_file(path, std::filesystem::file_size(path, failed) * 3 / 5, failed);
        if (failed) return Error{path + ": not truncated", {}};
    }
    return Done{};
}

}  // namespace mp::trace::fakes
