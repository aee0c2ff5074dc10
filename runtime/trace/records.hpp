#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/numerics/dtype.hpp"
#include "kernels/numerics/rank_step.hpp"

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
    Rank rank;                      // unknown: not started by a launcher we know
    std::int32_t local_rank = -1;
    std::int32_t world_size = -1;   // -1: unknown
    std::int32_t restart = 0;       // torchelastic's restart count
    std::int64_t pid = 0;
    std::int64_t started_unix_ns = 0;
    std::string host;
    std::string job;                // Slurm job or torchelastic run id; empty: none
    std::string launcher;           // "torchrun", "srun", "openmpi", "mpich"; empty: none
    std::string program;            // argv[0] of the process; arguments are never stored
    std::string framework;          // "torch 2.11.0"
    std::string adapter;            // version of the adapter that recorded
    Mode mode = Mode::watch;
};

// A root of one backward(). The twin's value is absent (has_twin false) outside twin modes.
struct LossRecord {
    std::int32_t micro_step = 0;    // which backward() of this step, from 0
    DType dtype = DType::unknown;   // of the program's loss tensor
    double real = 0;
    double twin = 0;
    bool has_twin = false;
};

struct DTypeCount {
    DType dtype = DType::unknown;
    std::uint64_t ops = 0;          // ops whose first float output (else input) has this dtype
};

// Collectives of one kind in one step, added up.
struct CollectiveRecord {
    std::string op;                 // canonical name: "all_reduce", "reduce_scatter", "all_gather", ...
    std::string reduction;          // "sum", "avg", ...; empty where nothing is reduced
    DType dtype = DType::unknown;
    std::string group;              // the process group's name; empty: unknown
    std::uint64_t calls = 0;
    std::uint64_t bytes = 0;        // of this rank's inputs
};

enum class TensorKind : std::uint8_t { parameter, gradient, buffer, optimizer_state };

// One named tensor against its twin, over this rank's shard. All sums in fp64.
struct TensorRecord {
    TensorKind kind = TensorKind::parameter;
    std::string name;               // as named_parameters() spells it
    DType dtype = DType::unknown;
    std::uint64_t elements = 0;
    std::uint64_t compared = 0;     // elements finite in both
    std::uint64_t nonfinite_real = 0;
    std::uint64_t nonfinite_twin = 0;
    std::uint64_t differ = 0;       // bits differ after widening to fp32; +0 and -0 are equal
    double error_squares = 0;       // sum of (real - twin)^2 over `compared`
    double twin_squares = 0;        // sum of twin^2 over `compared`
};
// relative L2 = sqrt(error_squares / twin_squares); 0/0 is 0.

// What the twin could and could not follow in one step.
struct Coverage {
    std::uint64_t ops = 0;              // leaf ops the dispatcher showed us
    std::uint64_t shadowed = 0;         // re-run on the twin
    std::uint64_t unshadowed = 0;       // float ops that the twin could not follow
    std::uint64_t shadowed_bytes = 0;   // of the real outputs of such ops
    std::uint64_t unshadowed_bytes = 0;
    std::uint64_t seeds = 0;            // shadows made from real values: 0 after the first step, or a history was lost
    std::uint64_t seeded_bytes = 0;
    std::uint64_t external = 0;         // of the seeds: data from outside the dispatcher (numpy, torch.tensor)
    std::uint64_t stale = 0;            // of the seeds: the program wrote behind the dispatcher
    std::uint64_t flips = 0;            // integer or boolean results that differ in the twin
    std::uint64_t leaks = 0;            // values that left through .item() while they differed from the twin's
    double worst_leak = 0;              // largest |real - twin| among them
    std::uint64_t failed = 0;           // shadow ops that threw; part of unshadowed
};

struct StepRecord {
    Step step;                          // k-th step() of the first optimizer seen, from 0
    std::int32_t optimizer = 0;         // 0: the first optimizer seen; others are numbered beside it
    bool skipped = false;               // the optimizer did not move the weights
    bool has_loss_scale = false;
    double loss_scale = 0;              // in force during this step
    std::int64_t wall_ns = 0;           // since the previous record of a step
    std::vector<LossRecord> losses;
    std::vector<DTypeCount> dtypes;
    std::vector<CollectiveRecord> collectives;
    std::vector<TensorRecord> tensors;
    Coverage coverage;
};

enum class NoteKind : std::uint8_t {
    not_observed,   // an op or a region that the twin does not follow; text names it and why
    seed,           // where a history was lost after the first step
    leak,           // an op through which a differing value left
    disarmed,       // an internal fault stopped a source; the program went on
    lossy,          // records were dropped: the queue or the disk was full
    memory,         // the memory forecast of a twin
    end,            // the process ended in an orderly way; count is its number of steps
};

// Said once per (kind, text), then counted.
struct NoteRecord {
    NoteKind kind = NoteKind::not_observed;
    Step step;
    std::string text;
    std::uint64_t count = 1;
};

}  // namespace mp::trace
