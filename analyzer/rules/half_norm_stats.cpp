// MP405 half-norm-stats
//
// What   A variance, a mean square, a mean or an inverse root of a normalisation is held or
//        inverted in fp16 or bf16, or squares are computed in fp16 before a float sum.
// Why    fp16 is 0 up to 3e-08 and inf from 65520 on, so the square of an input overflows from 256 on.
//        The rounding error reaches every normalised value through the inverse root.
// Fix    Keep statistics and their inverse root in float; convert the normalised value once.
// Silent Float statistics with a half result; a plain average (no variance is computed). In Python a warning for
//        bf16.
// Tests  testdata/lint/MP405.md, tests/analyzer/rules/half_norm_stats_test.cpp
//
// This rule reports sums of squares, not MP401. One line gives one finding.

#include <algorithm>
#include <array>
#include <cmath>

#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/norm_stats.hpp"
#include "analyzer/analyses/numbers.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/tensor_dtypes.hpp"
#include "analyzer/region/calls.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

constexpr std::uint64_t kFewTerms = 16;

std::string_view name_of_stat(Stat stat) {
    switch (stat) {
        case Stat::variance:
            return "variance";
        case Stat::sum_of_squares:
            return "sum of squares";
        case Stat::mean:
            return "mean";
        case Stat::rstd:
            return "inverse standard deviation";
        default:
            return "value";
    }
}

bool is_spread(Stat stat) { return stat == Stat::variance || stat == Stat::sum_of_squares; }

// A variance leaves the range of fp16; a mean or an inverse root only loses bits. An inverse root that scales a row and
// is not kept for the backward pass loses no more than the row does when it is rounded.
Severity severity_of(Stat stat, DType to, bool is_kept) {
    if (is_spread(stat)) return error_if_proven(to);
    return stat == Stat::rstd && !is_kept ? Severity::note : Severity::warning;
}

// Stored where another kernel can read it; __stcs and its like store their argument.
bool is_kept(const Cast& c) {
    return c.output || (c.purpose == Purpose::argument && leaf(c.function.str()).starts_with("__st"));
}

std::string cost(Stat stat, DType from, DType to) {
    std::string text = "it keeps " + std::to_string(significant_bits(to)) + " of " +
                       std::to_string(significant_bits(is_wide(from) ? from : DType::fp32)) + " bits";
    if (is_spread(stat) && to != DType::bf16)
        text += ", is 0 up to " + shown(vanishes_below(to), 3) + " and overflows from " +
                shown(overflows_from(to));
    return text;
}

constexpr std::string_view kFix =
    "keep the statistics and their inverse root in float, convert the result once";

class Judge {
public:
    Judge(const RuleContext& context, const Function& function, Findings& out)
        : context_(context), function_(function), out_(out) {}

    void cast(const Cast& c) {
        if (!is_low_precision(c.to) || !(is_wide(c.from) || is_integer(c.from))) return;
        narrowed(c.span, c.source, c.from, c.to, is_kept(c));
    }

    // A converting helper (cuda_cast<half2>(mean)): the cast itself is in its body.
    void converting_call(const Call& c) {
        if (c.args.size() != 1 || !is_wide(c.args[0].dtype) || !is_low_precision(c.result.dtype)) return;
        const Function* helper = context_.program.definition(c.callee);
        if (!helper || !narrows_its_argument(*helper)) return;
        narrowed(c.span, c.args[0], c.args[0].dtype, c.result.dtype, false);
    }

    void inverted(const Call& c) {
        constexpr std::array<std::string_view, 6> kRoots{"hrsqrt", "h2rsqrt", "hsqrt",
                                                         "h2sqrt", "rsqrt",   "sqrt"};
        if (c.args.empty() || !any_of(leaf(c.name.str()), kRoots)) return;
        const Operand& x = c.args[0];
        if (!is_low_precision(x.dtype) || !is_spread(x.stat)) return;
        report(c.span, error_if_proven(x.dtype),
               std::string(leaf(c.name.str())) + " of a " + std::string(name_of_stat(x.stat)) + " held in " +
                   std::string(label(x.dtype)) + ": " + cost(x.stat, DType::fp32, x.dtype));
    }

    // acc += __half2float(__hmul(x, x)): a float sum of squares that have already overflowed. The rounding
    // of single terms averages out, so bf16 is no finding.
    void squared(const Accumulation& a) {
        if (!is_wide(a.dtype) || a.element != DType::fp16 || a.stat != Stat::sum_of_squares) return;
        report(a.span, Severity::error,
               "squares are computed in fp16 before the float sum" + quoted(a.name.str()) +
                   ": one input above " + shown(std::floor(std::sqrt(overflows_from(a.element)))) +
                   " overflows");
    }

    void accumulated(const Accumulation& a) {
        squared(a);
        if (!is_low_precision(a.dtype) || a.stat != Stat::sum_of_squares) return;
        if (a.op == AccumulateOp::max || a.op == AccumulateOp::min || a.op == AccumulateOp::multiply) return;
        const bool few = a.trips != 0 && a.trips <= kFewTerms && a.form != AccumulateForm::tree;
        const double input = std::floor(std::sqrt(overflows_from(a.dtype)));
        std::string message =
            "sum of squares" + quoted(a.name.str()) + " is kept in " + std::string(label(a.dtype)) + ": ";
        message += a.dtype == DType::bf16
                       ? "a sum of ones stops growing at " + stalls_at(a.dtype)
                       : "one input above " + shown(input) +
                             " overflows it, and a sum of ones stops growing at " + stalls_at(a.dtype);
        std::vector<Note> notes;
        if (a.declared.known())
            notes.push_back(
                {a.declared, "the accumulator is declared here as " + std::string(label(a.dtype))});
        report(a.span, few ? Severity::note : error_if_proven(a.dtype), std::move(message), std::move(notes));
    }

private:
    static bool normalises(const Function& f) {
        const auto spread = [](const Operand& x) { return is_spread(x.stat) || x.stat == Stat::rstd; };
        const auto in_call = [&](const Call& c) {
            return std::ranges::any_of(c.args, spread) || spread(c.result);
        };
        return std::ranges::any_of(f.calls, in_call) ||
               std::ranges::any_of(f.casts, [&](const Cast& c) { return spread(c.source); }) ||
               std::ranges::any_of(f.accumulations,
                                   [](const Accumulation& a) { return a.stat == Stat::sum_of_squares; });
    }

    static bool narrows_its_argument(const Function& helper) {
        return std::ranges::any_of(helper.casts, [](const Cast& c) {
            return c.source.param == 0 && is_wide(c.from) && is_low_precision(c.to);
        });
    }

    void narrowed(const SourceSpan& span, const Operand& source, DType from, DType to, bool kept) {
        const Stat stat = source.stat;
        if (stat < Stat::sum_of_squares) return;
        const bool is_average = stat == Stat::mean && !normalises(function_);
        if (is_average) return;
        std::string message = std::string(name_of_stat(stat));
        if (!source.name.empty()) message += quoted(source.name.str());
        message += " is narrowed to " + std::string(label(to)) + ": " + cost(stat, from, to);
        report(span, severity_of(stat, to, kept), std::move(message));
    }

    void report(const SourceSpan& span, Severity severity, std::string message,
                std::vector<Note> notes = {}) {
        const auto same_line = [&](const SourceSpan& s) {
            return s.file == span.file && s.line == span.line;
        };
        if (span.known() && std::ranges::any_of(reported_, same_line)) return;
        reported_.push_back(span);
        emit_sum(context_, function_,
                 {.rule = "MP405",
                  .severity = severity,
                  .span = span,
                  .message = std::move(message),
                  .fix = std::string(kFix),
                  .notes = std::move(notes),
                  .function = {}},
                 out_);
    }

    const RuleContext& context_;
    const Function& function_;
    Findings& out_;
    std::vector<SourceSpan> reported_;
};

// Python: statistics written in tensor ops. What a region runs in fp32 has an fp32 result.
class TensorJudge {
public:
    TensorJudge(const RuleContext& context, Findings& out) : context_(context), dtypes_(context), out_(out) {}

    void look_at(const Function& f, const Call& call) {
        if (is_mean_of_squares(f, call)) return held(f, call, "mean of squares", Severity::error);
        if (is_variance_by_difference(f, call)) return cancelled(f, call);
        if (!variance_under_root(f, call)) return;
        // PyTorch computes the variance in fp32. Its root is rounded once more, and small ones matter in a division.
        const bool normalises = call.op.name() == "rsqrt" || !divisions_by(f, call).empty();
        held(f, call, "root of a variance", normalises ? Severity::error : Severity::note);
    }

    // BatchNorm2d(c).half(): the running mean and variance become half with the weights.
    void look_at_batch_norm(const Function& f, const Call& made) {
        const std::int32_t index = index_of(f, made);
        for (const Call& call : f.calls) {
            const bool casts = call.result.shape == Shape::module && !call.args.empty() &&
                               call.args.front().call == index && is_low_precision(call.result.dtype);
            if (!casts) continue;
            report(f, call, Severity::warning,
                   "the running statistics of " + std::string(leaf(made.name.str())) + " become " +
                       std::string(label(call.result.dtype)) + ": " +
                       cost(Stat::variance, DType::fp32, call.result.dtype),
                   "leave batch norms in fp32 when the model is cast", {});
        }
    }

private:
    void held(const Function& f, const Call& call, std::string_view what, Severity most) {
        TensorDType is = dtypes_.of(f, call.args.front());
        if (!is_low_precision(is.dtype)) return;
        // PyTorch adds in fp32, so in bf16 only squares and results are rounded; fp16 overflows.
        const bool certain = is.proven && is_proven_low(is.dtype) && is.dtype != DType::bf16 &&
                             !context_.program.enabled_context(f, call);
        report(f, call, std::min(most, certain ? Severity::error : Severity::warning),
               std::string(what) + " in " + std::string(label(is.dtype)) + ": " +
                   cost(Stat::variance, DType::fp32, is.dtype),
               kFix, std::move(is.chain));
    }

    // The rounding of both parts stays when most of them cancels.
    void cancelled(const Function& f, const Call& call) {
        TensorDType is = dtypes_.of(f, call.args.front());
        if (!is_low_precision(is.dtype)) return;
        report(f, call, Severity::warning,
               "variance as a difference of two means in " + std::string(label(is.dtype)) +
                   ": each is rounded to " + std::to_string(significant_bits(is.dtype)) +
                   " bits, and the difference may be all rounding, or below zero",
               kFix, std::move(is.chain));
    }

    void report(const Function& f, const Call& call, Severity severity, std::string message,
                std::string_view fix, std::vector<Note> notes) {
        emit_sum(context_, f,
                 {.rule = "MP405",
                  .severity = context_.inference ? Severity::note : severity,
                  .span = call.span,
                  .message = std::move(message),
                  .fix = std::string(fix),
                  .notes = std::move(notes),
                  .function = {}},
                 out_);
    }

    const RuleContext& context_;
    TensorDTypes dtypes_;
    Findings& out_;
};

void check_python(const RuleContext& context, Findings& out) {
    TensorJudge judge(context, out);
    for_each_op(context.program, may_end_statistic, [&](const Function& f, const Call& call) {
        if (is_python(f)) judge.look_at(f, call);
    });
    const auto is_batch_norm = [](std::string_view name) { return name.starts_with("torch.nn.BatchNorm"); };
    for_each_call(context.program, is_batch_norm, [&](const Function& f, const Call& made) {
        if (is_python(f)) judge.look_at_batch_norm(f, made);
    });
}

void check(const RuleContext& context, Findings& out) {
    check_python(context, out);
    for (const Function* function : context.program.functions()) {
        if (is_python(*function)) continue;
        Judge judge(context, *function, out);
        for (const Accumulation& a : function->accumulations) judge.accumulated(a);
        for (const Cast& c : function->casts) judge.cast(c);
        for (const Call& c : function->calls) judge.inverted(c);
        for (const Call& c : function->calls) judge.converting_call(c);
    }
}

}  // namespace

extern constinit const Rule kHalfNormStats{.id = "MP405",
                                           .name = "half-norm-stats",
                                           .severity = Severity::error,
                                           .on_by_default = true,
                                           .confirmed_by = "MPT010",
                                           .triggers = {kLowDtypes, kRegions, kEngines},
                                           .check = check};

}  // namespace mp::lint
