// MPT071, MPT072: how matrix products add up, from what the program asked of cuBLAS. Inferred: no value was measured.

#include <algorithm>
#include <cmath>

#include "kernels/base/figures.hpp"
#include "runtime/judge/floors.hpp"
#include "runtime/judge/importance.hpp"
#include "runtime/judge/rules.hpp"
#include "runtime/trace/display.hpp"

namespace mp::trace {
namespace {

// A tensor core adds 16 terms exactly and rounds the running sum then. The variances of these roundings grow with the
// sum, so that n of them leave sqrt(n / 2) times the error of the last one.
constexpr double kTermsPerRounding = 16;

double half_sum_phi(double depth) { return std::sqrt(std::max(depth / kTermsPerRounding / 2, 1.0)); }

struct Worst {
    const OpSum* op = nullptr;
    double value = 0;
    std::uint64_t others = 0;
};

template <class Value>
Worst worst_of(const RunModel& model, const Value& value) {
    Worst worst;
    for (const OpSum& sum : model.ops) {
        const double v = value(sum.total);
        if (!(v > 0)) continue;
        if (worst.op) ++worst.others;
        if (v > worst.value) worst.op = &sum, worst.value = v;
    }
    return worst;
}

std::string others_text(const Worst& worst) {
    return worst.others > 0 ? "; the same holds for " + counted(worst.others, "other place") : std::string();
}

void judge_half_sums(Case& c) {
    const Worst worst = worst_of(c.model, [&](const OpRecord& op) {
        const double phi = op.half_sums > 0 ? half_sum_phi(op.depth) : 0;
        return phi > c.limits.loc_warn_phi ? phi : 0;
    });
    if (!worst.op) return;
    const OpRecord& op = worst.op->total;
    const bool fails = worst.value > c.limits.loc_fail_phi;
    Finding f = finding_at("MPT071", fails ? Severity::error : Severity::warning, op);
    f.step = worst.op->first_step;
    f.value = worst.value;
    f.limit = fails ? c.limits.loc_fail_phi : c.limits.loc_warn_phi;
    f.unit = "phi";
    f.importance = importance::kHalfSums(1 - f.limit / f.value);
    f.message = place_text(op) + " adds " + figure(op.depth) + " terms in fp16: about " + phi(worst.value) +
                " (limit " + phi(f.limit) + "), and a sum above 65504 overflows (inferred, " +
                counted(op.half_sums, "call") + ")" + others_text(worst);
    f.advice = "use CUBLAS_COMPUTE_32F: tensor cores add in fp32 at the same speed";
    c.out.findings.push_back(std::move(f));
}

void judge_split_sums(Case& c) {
    const Worst worst =
        worst_of(c.model, [](const OpRecord& op) { return static_cast<double>(op.split_sums); });
    if (!worst.op) return;
    const OpRecord& op = worst.op->total;
    Finding f = finding_at("MPT072", Severity::warning, op);
    f.step = worst.op->first_step;
    f.value = worst.value;
    f.importance = importance::kSplitSums();
    f.message = place_text(op) + " splits its sums of " + figure(op.depth) + " terms and adds the parts in " +
                std::string(name_of(op.dtype)) + " (inferred, " + counted(op.split_sums, "call") + ")" +
                others_text(worst);
    f.advice =
        "allow only CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE in the preference, or "
        "CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION";
    c.out.findings.push_back(std::move(f));
}

}  // namespace

void judge_products(Case& c) {
    judge_half_sums(c);
    judge_split_sums(c);
}

}  // namespace mp::trace
