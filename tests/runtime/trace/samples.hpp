#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>

#include "runtime/trace/records.hpp"

// Records with every field set to something else than its default, and a directory to put files in.

namespace mp::trace::test {

inline ProcessRecord sample_process(std::int32_t rank = 1) {
    ProcessRecord p;
    p.rank = Rank{rank};
    p.local_rank = rank;
    p.world_size = 2;
    p.restart = 3;
    p.pid = 4711;
    p.started_unix_ns = 1'700'000'000'123'456'789;
    p.host = "node-7";
    p.job = "job-1";
    p.launcher = "torchrun";
    p.program = "/usr/bin/python3";
    p.framework = "torch 2.11.0";
    p.adapter = "0.1.0";
    p.mode = Mode::trajectory;
    return p;
}

inline OpRecord sample_op(std::int64_t step, int number) {
    const auto n = static_cast<std::uint64_t>(number);
    const double x = static_cast<double>(step) + 0.5;
    OpRecord o;
    o.layer = "blocks." + std::to_string(number) + ".attention.query";
    o.guessed = number % 2 == 1;
    o.op = "aten::addmm";
    o.phase = Phase::backward;
    o.dtype = DType::bf16;
    o.source = "train.py:" + std::to_string(80 + number);
    std::uint64_t count = 1000 * (n + 1);
    for (std::uint64_t* v :
         {&o.first, &o.calls, &o.elements, &o.nan, &o.pos_inf, &o.neg_inf, &o.zeros, &o.subnormals,
          &o.compared, &o.nonfinite_real, &o.nonfinite_twin, &o.loc_compared, &o.loc_nonfinite, &o.added,
          &o.absorbed, &o.origins, &o.first_origin})
        *v = ++count;
    double value = x;
    for (double* v : {&o.amax, &o.amin, &o.twin_amax, &o.error_squares, &o.twin_squares, &o.flushed_abs,
                      &o.twin_abs, &o.loc_error_squares, &o.loc_squares, &o.loc_dot, &o.loc_worst,
                      &o.prop_error_squares, &o.input_amax, &o.input_error})
        *v = value += 0.25;
    const std::uint64_t counts[] = {n + 1, 0, 300};
    if (number % 2 == 0) o.exponents.add(static_cast<unsigned>(number) % (Exponents::kBins - 2), counts);
    return o;
}

inline StepRecord sample_step(std::int64_t number, int tensors = 4) {
    const auto n = static_cast<std::uint64_t>(number);
    const auto x = static_cast<double>(number);
    StepRecord s;
    s.step = Step{number};
    s.optimizer = static_cast<std::int32_t>(number % 2);
    s.skipped = number % 3 == 1;
    s.has_loss_scale = true;
    s.loss_scale = 65536;
    s.wall_ns = 1'000'000 + number;
    s.losses.push_back({.micro_step = 0,
                        .dtype = DType::bf16,
                        .real = 2.5 - x / 64,
                        .twin = 2.501 - x / 64,
                        .has_twin = true});
    s.losses.push_back(
        {.micro_step = 1, .dtype = DType::fp16, .real = std::numeric_limits<double>::infinity()});
    s.dtypes.push_back({.dtype = DType::bf16, .ops = 100 + n});
    s.dtypes.push_back({.dtype = DType::fp32, .ops = 7});
    s.collectives.push_back({.op = "reduce_scatter",
                             .reduction = "avg",
                             .dtype = DType::fp32,
                             .group = "0",
                             .calls = 3,
                             .bytes = 4096,
                             .compared = 1024,
                             .error_squares = 1e-4,
                             .sum_squares = 9,
                             .made_nonfinite = 2,
                             .memory = {},
                             .algorithms = {}});
    for (int i = 0; i < tensors; ++i) {
        TensorRecord t;
        t.kind = i % 2 ? TensorKind::gradient : TensorKind::parameter;
        t.name = "blocks." + std::to_string(i / 2) + ".attention.query.weight";
        t.dtype = DType::bf16;
        t.elements = 1000;
        t.compared = 998;
        t.nonfinite_real = 2;
        t.nonfinite_twin = 1;
        t.differ = 400 + static_cast<std::uint64_t>(i);
        t.error_squares = 1e-6 * (x + i + 1) / 3;
        t.twin_squares = 10.0 + i;
        t.amax = 3.5;
        t.twin_amax = 3.25;
        t.zeros = 11;
        t.subnormals = 12;
        t.flushed = 13;
        t.flushed_abs = 0.125;
        t.twin_abs = 99.5;
        t.meant_to_move = 900;
        t.unmoved = 300;
        t.below_half_ulp = 299;
        t.wanted_squares = 1e-9;
        t.moved_dot = 8e-10;
        t.hash = 0xfedcba9876543210u + n;
        t.mastered = 1000;
        t.change_squares = 2e-6;
        t.twin_change_squares = 3e-6;
        t.change_error_squares = 1e-6;
        t.rounded = 1000;
        t.narrow = DType::bf16;
        t.rounding_squares = 4e-6;
        s.tensors.push_back(t);
    }
    s.sampled = number % 2 == 1;
    for (int i = 0; i < tensors; ++i) s.ops.push_back(sample_op(number, i));
    s.places.push_back({TensorRole::checkpoint, "model.pt", Phase::optimizer, DType::fp32, 3, 4096 + n});
    s.products.push_back({.layer = "blocks.0.mlp",
                          .op = "cublasLt::matmul",
                          .phase = Phase::forward,
                          .dtype = DType::bf16,
                          .device = 2,
                          .rows = 144,
                          .sketched_rows = 143,
                          .error_squares = 0.25,
                          .squares = 1000 + x,
                          .rounding_squares = 0.2,
                          .first_row = 32,
                          .block_error_squares = 0.1,
                          .block_squares = 200,
                          .block_rounding_squares = 0.05});
    s.matmuls.push_back({.layer = "blocks.0.mlp",
                         .op = "cublasLt::matmul",
                         .phase = Phase::backward,
                         .a = DType::bf16,
                         .b = DType::fp16,
                         .result = DType::fp32,
                         .how = "fp32 sums, bias",
                         .calls = 3,
                         .m = 64,
                         .n = 128 + n,
                         .k = 256,
                         .batches = 2});
    // clang-format off: a table
    s.coverage = {.ops = 1000, .shadowed = 990, .unshadowed = 10, .shadowed_bytes = 1 << 20,
                  .unshadowed_bytes = 512, .seeds = number ? 0u : 5u, .seeded_bytes = number ? 0u : 640u,
                  .external = number ? 0u : 2u, .stale = 1, .flips = 2, .leaks = 3, .worst_leak = 0.25, .failed = 4,
                  .regrouped = 5, .relaid = 6, .outside = 7, .drawn = 8, .by_name = 9};
    // clang-format on
    return s;
}

// One frame in a file instead of two.
inline StepRecord sample_step_without_ops(std::int64_t number, int tensors = 4) {
    StepRecord s = sample_step(number, tensors);
    s.ops.clear();
    return s;
}

inline NoteRecord sample_note(std::string text = "aten::_weird: no rule") {
    NoteRecord n;
    n.kind = NoteKind::not_observed;
    n.step = Step{2};
    n.text = std::move(text);
    n.count = 9;
    return n;
}

class TemporaryDirectory {
public:
    TemporaryDirectory() {
        std::string pattern = (std::filesystem::temp_directory_path() / "mp-trace-test-XXXXXX").string();
        if (!::mkdtemp(pattern.data())) std::abort();
        path_ = pattern;
    }
    ~TemporaryDirectory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

    const std::string& path() const { return path_; }
    std::string file(const std::string& name) const { return path_ + "/" + name; }

private:
    std::string path_;
};

inline std::string bytes_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline void write_bytes(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

}  // namespace mp::trace::test
