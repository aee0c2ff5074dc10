#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/numerics/dtype.hpp"
#include "kernels/numerics/phase.hpp"
#include "kernels/numerics/rank_step.hpp"
#include "runtime/trace/exponents.hpp"

// What an adapter tells about a run, as plain values. A recording is one ProcessRecord, then one
// StepRecord per step (one frame each, so that a killed run is readable to its last complete step), with
// NoteRecords wherever something worth saying happened. docs/trace_format.md says how they are stored.
//
// Losses and other scalars are doubles: every format of the product is a subset of fp64, so the exact bits
// of the program's value come back from it.

namespace mp::trace {

enum class Mode : std::uint8_t { off, watch, local, step, trajectory };

// One process of the run, written once when recording starts.
struct ProcessRecord {
    Rank rank;  // unknown: not started by a launcher we know
    std::int32_t local_rank = -1;
    std::int32_t world_size = -1;  // -1: unknown
    std::int32_t restart = 0;      // torchelastic's restart count
    std::int64_t pid = 0;
    std::int64_t started_unix_ns = 0;
    std::string host;
    std::string job;        // Slurm job or torchelastic run id; empty: none
    std::string launcher;   // "torchrun", "srun", "openmpi", "mpich"; empty: none
    std::string program;    // argv[0] of the process; arguments are never stored
    std::string framework;  // "torch 2.11.0"
    std::string adapter;    // version of the adapter that recorded
    Mode mode = Mode::watch;
};

// A root of one backward(). The twin's value is absent (has_twin false) outside twin modes.
struct LossRecord {
    std::int32_t micro_step = 0;   // which backward() of this step, from 0
    DType dtype = DType::unknown;  // of the program's loss tensor
    double real = 0;
    double twin = 0;
    bool has_twin = false;
};

struct DTypeCount {
    DType dtype = DType::unknown;
    std::uint64_t ops = 0;  // ops whose first float output (else input) has this dtype
};

// Collectives of one kind in one step, added up.
struct CollectiveRecord {
    std::string op;         // canonical name: "all_reduce", "reduce_scatter", "all_gather", ...
    std::string reduction;  // "sum", "avg", ...; empty where nothing is reduced
    DType dtype = DType::unknown;
    std::string group;  // the process group's name; empty: unknown
    std::uint64_t calls = 0;
    std::uint64_t bytes = 0;  // of this rank's inputs
    // Low-precision reductions against the fp32 reduction of the same inputs; compared is 0 elsewhere.
    std::uint64_t compared = 0;
    double error_squares = 0;
    double sum_squares = 0;
    std::uint64_t made_nonfinite = 0;  // results, where every rank's inputs were finite
};

enum class TensorKind : std::uint8_t { parameter, gradient, buffer, optimizer_state };

// One named tensor against its twin, over this rank's shard. All sums in fp64.
struct TensorRecord {
    TensorKind kind = TensorKind::parameter;
    std::string name;  // as named_parameters() of the model spells it, without the parts of wrappers
    DType dtype = DType::unknown;
    std::uint64_t elements = 0;
    std::uint64_t compared = 0;  // elements finite in both
    std::uint64_t nonfinite_real = 0;
    std::uint64_t nonfinite_twin = 0;
    std::uint64_t differ = 0;  // bits differ after widening to fp32; +0 and -0 are equal
    double error_squares = 0;  // sum of (real - twin)^2 over `compared`
    double twin_squares = 0;   // sum of twin^2 over `compared`
    double amax = 0;           // largest finite magnitude of the real values
    double twin_amax = 0;      // and of the twin's
    std::uint64_t zeros = 0;
    std::uint64_t subnormals = 0;  // below the smallest normal value of `dtype`
    std::uint64_t flushed = 0;     // real 0, twin not
    double flushed_abs = 0;        // sum of |twin| over those
    double twin_abs = 0;           // sum of |twin| over `compared`
    // What the optimizer step moved (parameters and state of 16 bits and less, on sampled steps; else 0).
    // As in kernels/cpu/measure.hpp, Standstill; in watch mode every element with a gradient other than 0
    // was meant to move.
    std::uint64_t meant_to_move = 0;
    std::uint64_t unmoved = 0;
    std::uint64_t below_half_ulp = 0;
    double wanted_squares = 0;
    double moved_dot = 0;
    std::uint64_t hash = 0;  // XXH3-64 of the real bytes, on sampled steps; 0: not taken
};
// relative L2 = sqrt(error_squares / twin_squares); 0/0 is 0. Without a twin `compared` is 0 and elements > 0.

// All calls of one op in one layer and phase with results of one dtype, in one step, added up. Only float
// results count; an in-place op's target is its result.
struct OpRecord {
    std::string layer;     // "blocks.2.fc2"; no module: "(loss)", "(optimizer)", "(update)", "(clipping)",
                           // "(scaler)", "(data)"; empty: unknown
    bool guessed = false;  // the layer is inferred (from the node before, or a call path)
    std::string op;        // "aten::addmm", "c10d::allreduce_"
    Phase phase = Phase::unknown;
    DType dtype = DType::unknown;  // of the results
    std::uint64_t first = 0;       // ordinal of the first call within the step: the order of events
    std::uint64_t calls = 0;
    std::string source;  // "train.py:88" of the first call; empty: unknown
    // One-sided, over the results.
    std::uint64_t elements = 0;
    std::uint64_t nan = 0;
    std::uint64_t pos_inf = 0;
    std::uint64_t neg_inf = 0;
    std::uint64_t zeros = 0;
    std::uint64_t subnormals = 0;
    double amax = 0;
    double amin = 0;
    // Against the twin (CUM): the total error of the results.
    std::uint64_t compared = 0;        // 0: no twin, or not measured
    std::uint64_t nonfinite_real = 0;  // in the real result alone
    std::uint64_t nonfinite_twin = 0;  // in the twin alone
    double twin_amax = 0;
    double error_squares = 0;
    double twin_squares = 0;
    double flushed_abs = 0;
    double twin_abs = 0;
    // LOC, on sampled steps: against the fp32 op on the real inputs; what the op itself introduced.
    std::uint64_t loc_compared = 0;  // 0: not sampled
    double loc_error_squares = 0;
    double loc_squares = 0;           // of the fp32 op's results
    double loc_dot = 0;               // sum of error * fp32 result: gain bias = loc_dot / loc_squares
    double loc_worst = 0;             // largest relative L2 of a single call
    std::uint64_t loc_nonfinite = 0;  // non-finite in the real result, finite in the fp32 op's
    // PROP, on the same steps: the fp32 op on the real inputs against the twin; inherited error.
    double prop_error_squares = 0;
    // Sums that swallow what is added (add, add_, sub ... with low-precision results; sampled steps):
    std::uint64_t added = 0;     // elements to which something other than 0 was added
    std::uint64_t absorbed = 0;  // of those, unchanged
    // Largest |value| among the inputs of the call that first gave a non-finite result (0: none did), and
    // whether its inputs were all finite: then the op itself made it.
    double input_amax = 0;
    std::uint64_t origins = 0;       // calls with finite inputs and a result that is non-finite where the
                                     // twin's (in watch mode: a mask's) is not
    std::uint64_t first_origin = 0;  // ordinal of the first of them
    // Largest relative L2 to the twin among the float inputs of a call that made a large inherited error (PROP
    // above a tenth) out of them; 0: none did. What is far below PROP was amplified here.
    double input_error = 0;
    // Of low-precision results, in sampled steps of a mode with a twin; empty: not taken.
    Exponents exponents;
};

enum class TensorRole : std::uint8_t {
    parameter,
    buffer,
    activation,
    gradient,
    collective,
    optimizer_state,
    checkpoint,
};

// Which dtype a role has in a layer; recorded at step 0 and whenever it differs from the step before.
struct DTypePlace {
    TensorRole role = TensorRole::parameter;
    std::string layer;  // of a parameter: the module that owns it; of a checkpoint: its file name
    Phase phase = Phase::unknown;
    DType dtype = DType::unknown;
    std::uint64_t tensors = 0;
    std::uint64_t elements = 0;
};

// What the twin could and could not follow in one step.
struct Coverage {
    std::uint64_t ops = 0;             // leaf ops the dispatcher showed us
    std::uint64_t shadowed = 0;        // re-run on the twin
    std::uint64_t unshadowed = 0;      // float ops that the twin could not follow
    std::uint64_t shadowed_bytes = 0;  // of the real outputs of such ops
    std::uint64_t unshadowed_bytes = 0;
    std::uint64_t seeds = 0;  // shadows made from real values: 0 after the first step, or a history was lost
    std::uint64_t seeded_bytes = 0;
    std::uint64_t external = 0;  // of the seeds: data from outside the dispatcher (numpy, torch.tensor)
    std::uint64_t stale = 0;     // of the seeds: the program wrote behind the dispatcher
    std::uint64_t flips = 0;     // integer or boolean results that differ in the twin
    std::uint64_t leaks = 0;     // values that left through .item() while they differed from the twin's
    double worst_leak = 0;       // largest |real - twin| among them
    std::uint64_t failed = 0;    // shadow ops that threw; part of unshadowed
};

struct StepRecord {
    Step step;                   // k-th step() of the first optimizer seen, from 0
    std::int32_t optimizer = 0;  // 0: the first optimizer seen; others are numbered beside it
    bool skipped = false;        // the optimizer did not move the weights
    bool has_loss_scale = false;
    double loss_scale = 0;     // in force during this step
    std::int64_t wall_ns = 0;  // since the previous record of a step
    std::vector<LossRecord> losses;
    std::vector<DTypeCount> dtypes;
    std::vector<CollectiveRecord> collectives;
    std::vector<TensorRecord> tensors;
    Coverage coverage;
    bool sampled = false;  // LOC, standstill and hashes were measured in this step
    std::vector<OpRecord> ops;
    std::vector<DTypePlace> places;
};

enum class NoteKind : std::uint8_t {
    not_observed,  // an op or a region that the twin does not follow; text names it and why
    seed,          // where a history was lost after the first step
    leak,          // an op through which a differing value left
    disarmed,      // an internal fault stopped a source; the program went on
    lossy,         // records were dropped: the queue or the disk was full
    memory,        // the memory forecast of a twin
    end,           // the process ended in an orderly way; count is its number of steps
    policy,        // a declared precision found in the program: "fsdp:param=bf16,reduce=fp32,buffer=fp32",
                   // "autocast:cpu=bf16", "ddp", "tf32:matmul=off,cudnn=on"; "@layer" may follow
};

// Said once per (kind, text), then counted.
struct NoteRecord {
    NoteKind kind = NoteKind::not_observed;
    Step step;
    std::string text;
    std::uint64_t count = 1;
};

}  // namespace mp::trace
