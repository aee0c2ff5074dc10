#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/numerics/divergence.hpp"
#include "runtime/judge/judge.hpp"

// RunModels by hand: a healthy one, and what a test plants in it.

namespace mp::trace::test {

inline constexpr std::uint64_t kElements = 65536;

// Results whose introduced error is `phi` floors, without bias.
inline OpSum op_sum(std::string layer, std::string op, Phase phase, DType dtype, double phi = 1,
                    std::uint64_t first = 0) {
    OpSum s;
    OpRecord& o = s.total;
    o.layer = std::move(layer);
    o.op = std::move(op);
    o.phase = phase;
    o.dtype = dtype;
    o.first = first;
    o.calls = 8;
    o.source = "train.py:88";
    o.elements = o.compared = o.loc_compared = kElements;
    o.amax = o.twin_amax = 4;
    o.amin = 1e-3;
    o.twin_squares = o.loc_squares = kElements;
    const double floor = one_rounding_floor(dtype);
    o.loc_error_squares = phi * phi * floor * floor * o.loc_squares;
    o.error_squares = 2 * o.loc_error_squares;
    o.prop_error_squares = o.loc_error_squares;
    o.twin_abs = 0.8 * static_cast<double>(kElements);
    s.ranks = 1;
    s.first_step = Step{0};
    s.worst_loc = {Rank{0}, Step{3}};
    return s;
}

inline TensorSum tensor_sum(TensorKind kind, std::string name, DType dtype) {
    TensorSum t;
    t.kind = kind;
    t.name = std::move(name);
    t.last.kind = kind;
    t.last.name = t.name;
    t.last.dtype = dtype;
    t.last.elements = t.last.compared = kElements;
    t.last.amax = t.last.twin_amax = 0.3;
    t.last.twin_squares = t.last.twin_abs = 100;
    t.last_step = Step{7};
    return t;
}

// Eight steps of one rank with a twin, two layers in bf16, weights in fp32.
inline RunModel healthy() {
    RunModel m;
    m.directory = "run";
    m.ranks.push_back({.process = {},
                       .path = "r0",
                       .steps = 8,
                       .last_step = Step{7},
                       .ended = true,
                       .ended_by = {},
                       .first_problems = {},
                       .tables = {}});
    m.ranks[0].process.framework = "torch 2.11.0+cpu";
    m.mode = Mode::trajectory;
    m.step_count = 8;
    for (int k = 0; k < 8; ++k) {
        StepSummary s;
        s.step = Step{k};
        s.ranks = 1;
        s.has_loss = s.has_twin = true;
        s.loss = 3.9 - 0.1 * k;
        s.twin_loss = s.loss + 1e-3;
        m.steps.push_back(s);
    }
    m.ops = {op_sum("blocks.0.fc", "aten::addmm", Phase::forward, DType::bf16, 1, 0),
             op_sum("blocks.1.fc", "aten::addmm", Phase::forward, DType::bf16, 1.1, 3),
             op_sum("blocks.1.fc", "aten::mm", Phase::backward, DType::bf16, 1.05, 6)};
    m.tensors = {tensor_sum(TensorKind::parameter, "blocks.0.fc.weight", DType::fp32),
                 tensor_sum(TensorKind::gradient, "blocks.0.fc.weight", DType::bf16)};
    m.coverage.ops = 300;
    m.coverage.shadowed = 100;
    return m;
}

inline SkipFacts skip(std::int64_t step, double scale) {
    SkipFacts f;
    f.step = Step{step};
    f.skipped_by = {Rank{0}};
    f.has_scale = true;
    f.loss_scale = scale;
    f.gradients.push_back({.name = "head.weight",
                           .rank = Rank{0},
                           .dtype = DType::fp16,
                           .nonfinite = 5,
                           .elements = 100,
                           .twin_amax = 2 * scale});
    return f;
}

// Steps 0 to `steps` with a scaler; each step in `skipped` halves the scale.
inline void scaled(RunModel& m, std::int64_t steps, const std::vector<std::int64_t>& skipped,
                   double scale = 65536) {
    m.steps.clear();
    m.step_count = steps;
    m.skipped_steps = static_cast<std::int64_t>(skipped.size());
    for (std::int64_t k = 0; k < steps; ++k) {
        StepSummary s;
        s.step = Step{k};
        s.ranks = 1;
        s.has_loss = s.has_loss_scale = true;
        s.loss = 3;
        s.loss_scale = scale;
        if (std::find(skipped.begin(), skipped.end(), k) != skipped.end()) {
            s.skipped = 1;
            m.skips.push_back(skip(k, scale));
            scale /= 2;
        }
        m.steps.push_back(s);
    }
}

inline const Finding* find(const Judgement& j, std::string_view rule) {
    for (const Finding& f : j.findings) {
        if (f.rule == rule) return &f;
    }
    return nullptr;
}

// For messages: every finding of a judgement on a line.
inline std::string text_of(const Judgement& j) {
    std::string out;
    for (const Finding& f : j.findings) out += f.rule + " " + f.layer + " " + f.op + ": " + f.message + "\n";
    for (const std::string& why : j.inconclusive) out += "inconclusive: " + why + "\n";
    return out;
}

// A gradient whose relative L2 to the twin's is `error`.
inline TensorSum gradient(std::string name, double error, double squares) {
    TensorSum t = tensor_sum(TensorKind::gradient, std::move(name), DType::bf16);
    t.last.elements = kElements / 8;  // as many as one call of op_sum() makes
    t.sampled_twin_squares = squares;
    t.sampled_error_squares = error * error * squares;
    t.first_sample = Step{0};
    t.first_twin_squares = squares;
    t.first_error_squares = t.sampled_error_squares;
    return t;
}

}  // namespace mp::trace::test
