#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/numerics/dtype.hpp"
#include "kernels/numerics/phase.hpp"
#include "kernels/numerics/rank_step.hpp"
#include "runtime/trace/exponents.hpp"
#include "runtime/trace/fields.hpp"
#include "runtime/trace/sketch_records.hpp"

// What an adapter records about a run, as plain values. A recording holds one ProcessRecord, then one StepRecord per
// step (one frame each, so that a killed run is readable to its last complete step), and NoteRecords between them.
// After each struct comes its field list (fields.hpp); docs/trace_format.md defines how records are stored.
//
// Losses and other scalars are doubles: every format of the product is a subset of fp64, so the program's exact value
// is kept.

namespace mp::trace {

enum class Mode : std::uint8_t { off, watch, local, step, trajectory };

// ProcessRecord::framework of a program without torch, whose calls of CUDA's libraries are recorded.
inline constexpr const char* kRawFramework = "CUDA libraries";

// One process of the run, written once when recording starts.
struct ProcessRecord {
    Rank rank;  // unknown: not started by a known launcher
    std::int32_t local_rank = -1;
    std::int32_t world_size = -1;  // -1: unknown
    std::int32_t restart = 0;      // torchelastic's restart count
    std::int64_t pid = 0;
    std::int64_t started_unix_ns = 0;
    std::string host;
    std::string job;       // Slurm job or torchelastic run id; empty: none
    std::string launcher;  // "torchrun", "srun", "openmpi", "mpich"; empty: none
    std::string program;   // the executable, or the script that Python runs; other arguments are never stored
    std::string framework;  // "torch 2.11.0"
    std::string adapter;    // version of the adapter that recorded
    Mode mode = Mode::watch;
    // A CUDA program that has several ranks of its first communicator in this process: how many, and which:
    // "rank 0 on device 0, rank 1 on device 1 of communicator 9f3c". Then `rank` is the launcher's alone. Else 0.
    std::int32_t local_ranks = 0;
    std::string members{};
    // Of NVTX, that a CUDA program had made when its recording began, sorted: "NCCL (of a library), training".
    std::string nvtx_domains{};
};

template <class V>
constexpr void fields(V&& v, Of<ProcessRecord>) {
    using R = ProcessRecord;
    v(Field{"rank"}.reported(), &R::rank);
    v(Field{"local_rank"}.reported(), &R::local_rank);
    v(Field{"world_size"}.reported(), &R::world_size);
    v(Field{"restart"}.reported(), &R::restart);
    v(Field{"pid"}.reported(), &R::pid);
    v(Field{"started_unix_ns"}.reported(), &R::started_unix_ns);
    v(Field{"host"}.reported(), &R::host);
    v(Field{"job"}.reported(), &R::job);
    v(Field{"launcher"}.reported(), &R::launcher);
    v(Field{"program"}.reported(), &R::program);
    v(Field{"framework"}.reported(), &R::framework);
    v(Field{"adapter"}.reported(), &R::adapter);
    v(Field{"mode"}.reported(), &R::mode);
    v(Field{"local_ranks"}.since(1).reported(), &R::local_ranks);
    v(Field{"members"}.since(1).reported(), &R::members);
    v(Field{"nvtx_domains"}.since(1), &R::nvtx_domains);
}

// A root of one backward(). The twin's value is absent (has_twin false) outside twin modes.
struct LossRecord {
    std::int32_t micro_step = 0;   // ordinal of the backward() in this step, from 0
    DType dtype = DType::unknown;  // of the program's loss tensor
    double real = 0;
    double twin = 0;
    bool has_twin = false;
};

template <class V>
constexpr void fields(V&& v, Of<LossRecord>) {
    using R = LossRecord;
    v(Field{"micro_step"}.reported(), &R::micro_step);
    v(Field{"dtype"}.bare().reported(), &R::dtype);
    v(Field{"has_twin"}.hidden(), &R::has_twin);
    v(Field{"real"}, &R::real);
    v(Field{"twin"}, &R::twin);
}

struct DTypeCount {
    DType dtype = DType::unknown;
    std::uint64_t ops = 0;  // ops whose first float output (else input) has this dtype
};

template <class V>
constexpr void fields(V&& v, Of<DTypeCount>) {
    v(Field{"dtype"}.bare(), &DTypeCount::dtype);
    v(Field{"ops", Merge::sum}, &DTypeCount::ops);
}

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
    // Without a twin: calls of an fp16 reduction whose inputs on this rank were finite, and whose inputs were not.
    std::uint64_t finite_inputs = 0;
    std::uint64_t lost_inputs = 0;
    std::uint64_t ranks = 0;  // of the communicator, where NCCL itself was asked; 0: unknown
    std::uint64_t lost_results =
        0;                     // among the calls whose inputs were measured: results that are not finite
    std::uint64_t beyond = 0;  // calls that read or wrote past the end of an allocation
    // Memory of a call that went past its end, else of one whose result was lost: "'gradients', byte 512",
    // "allocation 12 of 4096 bytes"; empty: there was none.
    std::string memory{};
    // What NCCL's profiler interface told, sorted: "RING/SIMPLE x 2, TREE/LL x 2", the last number that of channels.
    std::string algorithms{};
    // Of NCCL's communicator: a number that all of its ranks know; 1 more than the rank in it that called, and than the
    // number of that rank's device. 0: unknown. A process may have several ranks of a communicator; each has records of
    // its own.
    std::uint64_t communicator = 0;
    std::uint64_t member = 0;
    std::uint64_t device = 0;
};

template <class V>
constexpr void fields(V&& v, Of<CollectiveRecord>) {
    using R = CollectiveRecord;
    using enum Merge;
    v(Field{"op"}.bare().reported(), &R::op);
    v(Field{"reduction"}.reported(), &R::reduction);
    v(Field{"dtype"}.bare().reported(), &R::dtype);
    v(Field{"group"}.reported(), &R::group);
    v(Field{"calls", sum}.reported(), &R::calls);
    v(Field{"bytes", sum}.reported(), &R::bytes);
    v(Field{"compared", sum}.since(1), &R::compared);
    v(Field{"error_squares", sum}.since(1), &R::error_squares);
    v(Field{"sum_squares", sum}.since(1), &R::sum_squares);
    v(Field{"made_nonfinite", sum}.since(1).reported(), &R::made_nonfinite);
    v(Field{"finite_inputs", sum}.since(3), &R::finite_inputs);
    v(Field{"lost_inputs", sum}.since(3), &R::lost_inputs);
    v(Field{"ranks"}.since(4), &R::ranks);
    v(Field{"lost_results", sum}.since(4), &R::lost_results);
    v(Field{"beyond", sum}.since(5), &R::beyond);
    v(Field{"memory", place}.since(6).reported(), &R::memory);
    v(Field{"algorithms", place}.since(6).reported(), &R::algorithms);
    v(Field{"communicator", place}.since(7), &R::communicator);
    v(Field{"member", place}.since(7), &R::member);
    v(Field{"device", place}.since(7), &R::device);
}

// Calls of a matrix product in one layer and phase that the program asked for in the same way.
struct MatmulRecord {
    std::string layer;
    std::string op;
    Phase phase = Phase::unknown;
    DType a = DType::unknown;
    DType b = DType::unknown;
    DType result = DType::unknown;
    std::string how;  // "fp32 sums", "fp16 sums, 2 parts added in the result, bias and GELU", ...
    std::uint64_t calls = 0;
    // The largest of each: A is m x k, B is k x n.
    std::uint64_t m = 0;
    std::uint64_t n = 0;
    std::uint64_t k = 0;
    std::uint64_t batches = 0;
};

template <class V>
constexpr void fields(V&& v, Of<MatmulRecord>) {
    using R = MatmulRecord;
    using enum Merge;
    v(Field{"layer"}.bare(), &R::layer);
    v(Field{"op"}.bare(), &R::op);
    v(Field{"phase"}.bare(), &R::phase);
    v(Field{"a"}, &R::a);
    v(Field{"b"}, &R::b);
    v(Field{"result"}, &R::result);
    v(Field{"how"}, &R::how);
    v(Field{"calls", sum}, &R::calls);
    v(Field{"m", largest}, &R::m);
    v(Field{"n", largest}, &R::n);
    v(Field{"k", largest}, &R::k);
    v(Field{"batches", largest}, &R::batches);
}

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
    // The effect of the optimizer step (parameters and state of 16 bits and less, on sampled steps; else 0).
    // As in kernels/cpu/measure.hpp, Stagnation; in watch mode every element with a gradient other than 0
    // was meant to move.
    std::uint64_t meant_to_move = 0;
    std::uint64_t unmoved = 0;
    std::uint64_t below_half_ulp = 0;
    double wanted_squares = 0;
    double moved_dot = 0;
    std::uint64_t hash = 0;  // XXH3-64 of the real bytes, on sampled steps; 0: not taken
    // Elements that are the rounding of an fp32 master. The effect of the step is then that on the master, or absent.
    std::uint64_t mastered = 0;
    // How far the optimizer step moved a parameter, on sampled steps: sums over some of its elements of the squares of
    // the real change, of the twin's, and of their difference.
    double change_squares = 0;
    double twin_change_squares = 0;
    double change_error_squares = 0;
    // Elements of an fp32 parameter that holds 16-bit values again, although the twin of the sampled step before needs
    // more, and of which no memory has the other bits. `narrow` is the format; the squares are what one rounding to it
    // takes from the values of the twin, over the elements of change_squares.
    std::uint64_t rounded = 0;
    DType narrow = DType::unknown;
    double rounding_squares = 0;
};
// relative L2 = sqrt(error_squares / twin_squares); 0/0 is 0. Without a twin `compared` is 0 and elements > 0.

template <class V>
constexpr void fields(V&& v, Of<TensorRecord>) {
    using R = TensorRecord;
    using enum Merge;
    v(Field{"kind"}.bare(), &R::kind);
    v(Field{"name"}.bare(), &R::name);
    v(Field{"dtype", largest}.bare(), &R::dtype);
    v(Field{"elements", sum}, &R::elements);
    v(Field{"compared", sum}, &R::compared);
    v(Field{"nonfinite_real", sum}, &R::nonfinite_real);
    v(Field{"nonfinite_twin", sum}, &R::nonfinite_twin);
    v(Field{"differ", sum}, &R::differ);
    v(Field{"error_squares", sum}, &R::error_squares);
    v(Field{"twin_squares", sum}, &R::twin_squares);
    v(Field{"amax", largest}.since(1), &R::amax);
    v(Field{"twin_amax", largest}.since(1), &R::twin_amax);
    v(Field{"zeros", sum}.since(1), &R::zeros);
    v(Field{"subnormals", sum}.since(1), &R::subnormals);
    v(Field{"flushed", sum}.since(1), &R::flushed);
    v(Field{"flushed_abs", sum}.since(1), &R::flushed_abs);
    v(Field{"twin_abs", sum}.since(1), &R::twin_abs);
    v(Field{"meant_to_move", sum}.since(1), &R::meant_to_move);
    v(Field{"unmoved", sum}.since(1), &R::unmoved);
    v(Field{"below_half_ulp", sum}.since(1), &R::below_half_ulp);
    v(Field{"wanted_squares", sum}.since(1), &R::wanted_squares);
    v(Field{"moved_dot", sum}.since(1), &R::moved_dot);
    v(Field{"hash", agree}.since(1), &R::hash);
    v(Field{"mastered", sum}.since(2), &R::mastered);
    v(Field{"change_squares", sum}.since(3), &R::change_squares);
    v(Field{"twin_change_squares", sum}.since(3), &R::twin_change_squares);
    v(Field{"change_error_squares", sum}.since(3), &R::change_error_squares);
    v(Field{"rounded", sum}.since(4), &R::rounded);
    v(Field{"narrow", largest}.since(4), &R::narrow);
    v(Field{"rounding_squares", sum}.since(4), &R::rounding_squares);
}

// All calls of one op in one layer and phase with results of one dtype, in one step, added up. Only float
// results count; an in-place op's target is its result.
struct OpRecord {
    std::string layer;     // "blocks.2.fc2"; no module: "(loss)", "(optimizer)", "(update)", "(clipping)",
                           // "(scaler)", "(data)", "(bucket)"; empty: unknown
    bool guessed = false;  // the layer is inferred (from the node before, or a call path)
    std::string op;        // "aten::addmm", "c10d::allreduce_"
    Phase phase = Phase::unknown;
    DType dtype = DType::unknown;  // of the results
    std::uint64_t first = 0;       // ordinal of the first call within the step: the order of events
    std::uint64_t calls = 0;
    // "train.py:88" of the first call; in a CUDA program the memory of the first result that was lost: "'logits'",
    // "allocation 12 of 4096 bytes, byte 512". Empty: unknown.
    std::string source;
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
    // Addends that leave a running sum unchanged (add, add_, sub ... with low-precision results; sampled steps):
    std::uint64_t added = 0;     // elements to which something other than 0 was added
    std::uint64_t absorbed = 0;  // of those, unchanged
    // Largest |value| among the inputs of the call that first gave a non-finite result (0: none did), and
    // whether its inputs were all finite: then the op itself made it.
    double input_amax = 0;
    std::uint64_t origins = 0;       // calls with finite inputs and a result that is non-finite where the
                                     // twin's (in watch mode: a mask's) is not
    std::uint64_t first_origin = 0;  // ordinal of the first of them
    // Largest relative L2 to the twin among the float inputs of a call whose inherited error is large (PROP
    // above a tenth); 0: no such call. If it is far below PROP, this op amplified the error.
    double input_error = 0;
    // Largest ratio of PROP to the inputs' relative L2 among the same calls: how much an op amplifies the error of its
    // inputs, whatever that error is. 0: no such call.
    double amplification = 0;
    // Calls of a matrix product, from its descriptor: those that add their terms in fp16, those that split the sum and
    // add its parts in the 16 bits of the result, those that round fp32 inputs to TF32 or 16 bits first. `depth`: terms
    // of the longest sum.
    std::uint64_t half_sums = 0;
    std::uint64_t split_sums = 0;
    std::uint64_t tf32 = 0;
    double depth = 0;
    // Calls with bf16 inputs on a device whose cores have no bf16 (compute capability below 8.0).
    std::uint64_t emulated = 0;
    // Number, from 1, of the first step whose optimizer ran although gradients were not finite, after which this op of
    // forward had inputs that are not finite; 0: none.
    double unguarded = 0;
    // 1 more than the number of the device, in a CUDA program that uses several in one process; else 0. Each device has
    // records of its own.
    std::uint64_t device = 0;
    // Integers that the op made or cast in 16 bits and that this format does not have, on sampled steps: above 256 in
    // bf16 every second one.
    std::uint64_t inexact = 0;
    // Single values of 16 bits that were added up, in all steps: how many addends the longest of these totals had, and
    // how far it was from what its addends add up to, as a share of the largest value that the total had. 0: none is
    // long.
    double total_of = 0;
    double drift = 0;
    // Without a twin, of memory in 16 bits that the program updates from step to step: elements that an exact sum would
    // have changed, and of those, unchanged. On sampled steps, of a part of each call's elements.
    std::uint64_t updated = 0;
    std::uint64_t stood = 0;
    // Histogram of low-precision results, in sampled steps of a mode with a twin; empty: not taken.
    Exponents exponents;
};

// Stored in columns (op_columns.hpp). Generation 1 comes after generation 0 among the counts and among the values.
// A new field has generation 2 or more and 8 bytes; its column gets the next bit of the mask.
template <class V>
constexpr void fields(V&& v, Of<OpRecord>) {
    using R = OpRecord;
    using enum Merge;
    using enum Part;
    v(Field{"layer"}, &R::layer);
    v(Field{"guessed", place}.bare(), &R::guessed);
    v(Field{"op"}.bare(), &R::op);
    v(Field{"phase"}.bare(), &R::phase);
    v(Field{"dtype"}.bare(), &R::dtype);
    v(Field{"first", place}, &R::first);
    v(Field{"calls", sum}, &R::calls);
    v(Field{"source", place}, &R::source);
    v(Field{"elements", sum}.reported(), &R::elements);
    v(Field{"nan", sum}.reported(), &R::nan);
    v(Field{"pos_inf", sum}.reported(), &R::pos_inf);
    v(Field{"neg_inf", sum}.reported(), &R::neg_inf);
    v(Field{"zeros", sum}.reported(), &R::zeros);
    v(Field{"subnormals", sum}.reported(), &R::subnormals);
    v(Field{"amax", largest}.reported(), &R::amax);
    v(Field{"amin", smallest}.reported(), &R::amin);
    v(Field{"input_amax", largest}.since(1), &R::input_amax);
    v(Field{"origins", sum}.since(1), &R::origins);
    v(Field{"first_origin", place}.since(1), &R::first_origin);
    v(Field{"compared", sum}.in(cum).reported(), &R::compared);
    v(Field{"nonfinite_real", sum}.in(cum).reported(), &R::nonfinite_real);
    v(Field{"nonfinite_twin", sum}.in(cum).reported(), &R::nonfinite_twin);
    v(Field{"twin_amax", largest}.in(cum), &R::twin_amax);
    v(Field{"error_squares", sum}.in(cum), &R::error_squares);
    v(Field{"twin_squares", sum}.in(cum), &R::twin_squares);
    v(Field{"flushed_abs", sum}.in(cum), &R::flushed_abs);
    v(Field{"twin_abs", sum}.in(cum), &R::twin_abs);
    v(Field{"loc_compared", sum}.in(loc), &R::loc_compared);
    v(Field{"loc_error_squares", sum}.in(loc), &R::loc_error_squares);
    v(Field{"loc_squares", sum}.in(loc), &R::loc_squares);
    v(Field{"loc_dot", sum}.in(loc), &R::loc_dot);
    v(Field{"loc_worst", largest}.in(loc), &R::loc_worst);
    v(Field{"loc_nonfinite", sum}.in(loc), &R::loc_nonfinite);
    v(Field{"prop_error_squares", sum}.in(loc), &R::prop_error_squares);
    v(Field{"input_error", largest}.in(loc).since(1), &R::input_error);
    v(Field{"amplification", largest}.in(loc).since(2), &R::amplification);
    v(Field{"exponents", sum}.since(1), &R::exponents);
    v(Field{"half_sums", sum}.since(3), &R::half_sums);
    v(Field{"split_sums", sum}.since(3), &R::split_sums);
    v(Field{"tf32", sum}.since(3), &R::tf32);
    v(Field{"depth", largest}.since(3), &R::depth);
    v(Field{"emulated", sum}.since(4), &R::emulated);
    v(Field{"unguarded", smallest}.since(4), &R::unguarded);
    v(Field{"device", place}.since(5), &R::device);
    v(Field{"inexact", sum}.since(6), &R::inexact);
    v(Field{"total_of", largest}.since(7), &R::total_of);
    v(Field{"drift", largest}.since(7), &R::drift);
    v(Field{"updated", sum}.since(7), &R::updated);
    v(Field{"stood", sum}.since(7), &R::stood);
    v(Field{"added", sum}.in(sums), &R::added);
    v(Field{"absorbed", sum}.in(sums), &R::absorbed);
}

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

template <class V>
constexpr void fields(V&& v, Of<DTypePlace>) {
    using R = DTypePlace;
    using enum Merge;
    v(Field{"role"}.bare(), &R::role);
    v(Field{"layer"}.bare(), &R::layer);
    v(Field{"phase"}.bare(), &R::phase);
    v(Field{"dtype"}.bare(), &R::dtype);
    v(Field{"tensors", sum}, &R::tensors);
    v(Field{"elements", sum}, &R::elements);
}

// Which parts of one step the twin could follow.
struct Coverage {
    std::uint64_t ops = 0;             // leaf ops that the dispatcher passed to the adapter
    std::uint64_t shadowed = 0;        // re-run on the twin
    std::uint64_t unshadowed = 0;      // float ops that the twin could not follow
    std::uint64_t shadowed_bytes = 0;  // of the real outputs of such ops
    std::uint64_t unshadowed_bytes = 0;
    std::uint64_t seeds = 0;  // shadows made from real values: 0 after the first step, or a history was lost
    std::uint64_t seeded_bytes = 0;
    std::uint64_t external = 0;   // seeds with data from outside the dispatcher (numpy, torch.tensor)
    std::uint64_t stale = 0;      // seeds after a write that bypassed the dispatcher
    std::uint64_t flips = 0;      // integer or boolean results that differ in the twin
    std::uint64_t leaks = 0;      // values that left through .item() while they differed from the twin's
    double worst_leak = 0;        // largest |real - twin| among them
    std::uint64_t failed = 0;     // shadow ops that threw; part of unshadowed
    std::uint64_t regrouped = 0;  // sums of gradients that the twin adds in another order than an fp32 run
    std::uint64_t relaid = 0;   // results whose strides are not those of the twin's, casts laid out otherwise
    std::uint64_t outside = 0;  // values computed outside the dispatcher: compiled regions, custom kernels
    std::uint64_t drawn = 0;  // draws of numbers in 16 bits: an fp32 run draws others, the twin has the run's
    std::uint64_t by_name = 0;  // launches of kernels that are known by their names alone
};

template <class V>
constexpr void fields(V&& v, Of<Coverage>) {
    using R = Coverage;
    using enum Merge;
    v(Field{"ops", sum}, &R::ops);
    v(Field{"shadowed", sum}, &R::shadowed);
    v(Field{"unshadowed", sum}, &R::unshadowed);
    v(Field{"shadowed_bytes", sum}, &R::shadowed_bytes);
    v(Field{"unshadowed_bytes", sum}, &R::unshadowed_bytes);
    v(Field{"seeds", sum}, &R::seeds);
    v(Field{"seeded_bytes", sum}, &R::seeded_bytes);
    v(Field{"external", sum}.since(1), &R::external);
    v(Field{"stale", sum}, &R::stale);
    v(Field{"flips", sum}, &R::flips);
    v(Field{"leaks", sum}, &R::leaks);
    v(Field{"worst_leak", largest}, &R::worst_leak);
    v(Field{"failed", sum}, &R::failed);
    v(Field{"regrouped", sum}.since(2), &R::regrouped);
    v(Field{"relaid", sum}.since(2), &R::relaid);
    v(Field{"outside", sum}.since(2), &R::outside);
    v(Field{"drawn", sum}.since(3), &R::drawn);
    v(Field{"by_name", sum}.since(4), &R::by_name);
}

// The optimizer of a record that belongs to no step: what was seen after the last one.
inline constexpr std::int32_t kNoOptimizer = -1;

struct StepRecord {
    Step step;                   // k-th step() of the first optimizer seen, from 0
    std::int32_t optimizer = 0;  // 0: the first optimizer seen; others have their own numbers
    bool skipped = false;        // the optimizer did not change the weights
    bool has_loss_scale = false;
    double loss_scale = 0;     // in force during this step
    std::int64_t wall_ns = 0;  // since the previous record of a step
    std::vector<LossRecord> losses;
    std::vector<DTypeCount> dtypes;
    std::vector<CollectiveRecord> collectives;
    std::vector<TensorRecord> tensors;
    Coverage coverage;
    bool sampled = false;  // LOC, stagnation and hashes were measured in this step
    std::vector<OpRecord> ops;
    std::vector<DTypePlace> places;
    std::vector<SketchRecord> sketches;
    std::vector<TimeRecord> times;
    std::vector<ProductRecord> products;
    std::vector<MatmulRecord> matmuls;
};

template <class V>
constexpr void fields(V&& v, Of<StepRecord>) {
    using R = StepRecord;
    v(Field{"step"}, &R::step);
    v(Field{"optimizer"}, &R::optimizer);
    v(Field{"skipped"}.flag(0), &R::skipped);
    v(Field{"has_loss_scale"}.flag(1).hidden(), &R::has_loss_scale);
    v(Field{"loss_scale"}, &R::loss_scale);
    v(Field{"wall_ns"}, &R::wall_ns);
    v(Field{"sampled"}.flag(2), &R::sampled);
    v(Field{"losses"}, &R::losses);
    v(Field{"dtypes"}, &R::dtypes);
    v(Field{"collectives"}, &R::collectives);
    v(Field{"coverage"}, &R::coverage);
    v(Field{"ops"}.elsewhere(), &R::ops);
    v(Field{"tensors"}, &R::tensors);
    v(Field{"places"}.since(1), &R::places);
    v(Field{"sketches"}.since(2), &R::sketches);
    v(Field{"times"}.since(2), &R::times);
    v(Field{"products"}.since(3), &R::products);
    v(Field{"matmuls"}.since(4), &R::matmuls);
}

enum class NoteKind : std::uint8_t {
    not_observed,  // an op or a region that the twin does not follow; `text` names it and the reason
    seed,          // where a history was lost after the first step
    leak,          // an op through which a value that differs from the twin's left the dispatcher
    disarmed,      // an internal fault stopped a source; the program continued
    lossy,         // records were dropped: the queue or the disk was full
    memory,        // the memory forecast of a twin
    end,     // the process ended by itself; count is its number of steps, `text` the exception that ended it
             // or "exit status 1", empty: neither. The last one counts
    policy,  // a declared precision found in the program: "fsdp:param=bf16,reduce=fp32,buffer=fp32",
             // "autocast:cpu=bf16", "ddp", "tf32:matmul=off,cudnn=on"; "@layer" may follow
    outdated_copy,  // a layer whose forward read autocast's copy of a weight after the weight had changed
    decision,  // an op whose integers differ in the twin and which the program reads: the twin uses the program's
    sampled,   // how many steps were measured in full, where the time for it is limited
    given_up,  // what was freed from this step on because a device had no memory left, and is unknown since
};

// Recorded once per (kind, text), then counted.
struct NoteRecord {
    NoteKind kind = NoteKind::not_observed;
    Step step;
    std::string text;
    std::uint64_t count = 1;
};

template <class V>
constexpr void fields(V&& v, Of<NoteRecord>) {
    using R = NoteRecord;
    v(Field{"kind"}.bare(), &R::kind);
    v(Field{"step"}, &R::step);
    v(Field{"text"}.bare(), &R::text);
    v(Field{"count"}, &R::count);
}

// The last value of each enumeration that a recording holds. Values are numbers in files, so a new one goes to the end.
inline constexpr Mode last_of(Mode) { return Mode::trajectory; }
inline constexpr TensorKind last_of(TensorKind) { return TensorKind::optimizer_state; }
inline constexpr TensorRole last_of(TensorRole) { return TensorRole::checkpoint; }
inline constexpr Phase last_of(Phase) { return Phase::optimizer; }
inline constexpr NoteKind last_of(NoteKind) { return NoteKind::given_up; }

}  // namespace mp::trace
