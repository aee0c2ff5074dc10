// MPT071, MPT072, MPT074, MPT075, MPT078, of programs without torch: how matrix products add up, from what the program
// asked of cuBLAS, where a part of one is wrong, and what lost the weights. A cost is measured where elements of the
// product were computed again.

#include <algorithm>
#include <cmath>

#include "kernels/base/figures.hpp"
#include "runtime/fold/product_table.hpp"
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

constexpr std::uint64_t kFewest = 64;  // elements computed again, below which the cost is inferred

bool is_measured(const OpRecord& op) {
    return op.loc_compared >= kFewest && op.loc_squares > 0 && !near_subnormal(op);
}

Basis basis_of(const OpRecord& op) { return is_measured(op) ? Basis::sampled : Basis::inferred; }

// " (sampled, 1,024 elements, 3 calls)"
std::string basis_text(const OpRecord& op, std::uint64_t calls) {
    const std::string basis = std::string(name_of(basis_of(op))) +
                              (is_measured(op) ? ", " + counted(op.loc_compared, "element") : "");
    return " (" + basis + ", " + counted(calls, "call") + ")";
}

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
        if (op.half_sums == 0) return 0.0;
        const double phi = is_measured(op) ? introduced_phi(op) : half_sum_phi(op.depth);
        return phi > widened(c.limits.loc_warn_phi, op.loc_compared) ? phi : 0;
    });
    if (!worst.op) return;
    const OpRecord& op = worst.op->total;
    const bool fails = worst.value > c.limits.loc_fail_phi;
    Finding f = finding_at("MPT071", fails ? Severity::error : Severity::warning, op);
    f.step = worst.op->first_step;
    f.value = worst.value;
    f.limit = fails ? c.limits.loc_fail_phi : c.limits.loc_warn_phi;
    f.unit = "phi";
    f.basis = basis_of(op);
    f.importance = importance::kHalfSums(1 - f.limit / f.value);
    f.message = place_text(op) + " adds " + figure(op.depth) +
                " terms in fp16: " + (is_measured(op) ? "" : "about ") + phi(worst.value) + " (limit " +
                phi(f.limit) + "), and a sum above 65504 overflows" + basis_text(op, op.half_sums) +
                others_text(worst);
    f.advice = "use CUBLAS_COMPUTE_32F: tensor cores add in fp32 at the same speed";
    c.out.findings.push_back(std::move(f));
}

// A split that costs no more than other roundings is worth a note.
Severity severity_of_split(const OpRecord& op, const Limits& limits) {
    if (!is_measured(op)) return Severity::warning;
    const double phi = introduced_phi(op);
    if (phi > widened(limits.loc_fail_phi, op.loc_compared)) return Severity::error;
    return phi > widened(limits.loc_warn_phi, op.loc_compared) ? Severity::warning : Severity::note;
}

void judge_split_sums(Case& c) {
    const Worst worst = worst_of(c.model, [](const OpRecord& op) {
        if (op.split_sums == 0) return 0.0;
        return is_measured(op) ? introduced_phi(op) : 1.0;  // a cost that is known comes first
    });
    if (!worst.op) return;
    const OpRecord& op = worst.op->total;
    Finding f = finding_at("MPT072", severity_of_split(op, c.limits), op);
    f.step = worst.op->first_step;
    f.basis = basis_of(op);
    f.importance = importance::kSplitSums();
    f.message = place_text(op) + " splits its sums of " + figure(op.depth) + " terms and adds the parts in " +
                std::string(name_of(op.dtype));
    if (is_measured(op)) {
        f.value = introduced_phi(op);
        f.limit = f.severity == Severity::error ? c.limits.loc_fail_phi : c.limits.loc_warn_phi;
        f.unit = "phi";
        f.message += ": " + phi(f.value) + " (limit " + phi(f.limit) + ")";
    }
    f.message += basis_text(op, op.split_sums) + others_text(worst);
    f.advice =
        "allow only CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE in the preference, or "
        "CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION";
    c.out.findings.push_back(std::move(f));
}

// Correct, but each product runs in fp32 after a conversion: the memory of bf16 at the speed of fp32 or less, and
// fp16 is the format that the cores have.
void judge_emulated(Case& c) {
    const Worst worst =
        worst_of(c.model, [](const OpRecord& op) { return static_cast<double>(op.emulated); });
    if (!worst.op) return;
    const OpRecord& op = worst.op->total;
    Finding f = finding_at("MPT075", Severity::warning, op);
    f.step = worst.op->first_step;
    f.value = worst.value;
    f.unit = "calls";
    f.importance = importance::kEmulated();
    f.message = place_text(op) +
                " multiplies bf16 on a device whose cores do not have it (compute capability below "
                "8.0), " +
                counted(op.emulated, "call") + others_text(worst);
    f.advice = "train in fp16 with a loss scale on this device, or in bf16 on one of capability 8.0 or above";
    c.out.findings.push_back(std::move(f));
}

// An error of all rows alike is one of the arithmetic and has findings of its own: half and split sums, roundings
// inside an epilogue. One of some rows alone is none of these.
constexpr double kMoreThanOthers = 3;

// What that costs a row depends on its values, so some rows have more of it.
bool adds_in_16_bits(const RunModel& model, const ProductRecord& r) {
    return std::ranges::any_of(model.ops, [&](const OpSum& sum) {
        const OpRecord& op = sum.total;
        return op.half_sums + op.split_sums > 0 && op.layer == r.layer && op.op == r.op &&
               op.phase == r.phase && op.dtype == r.dtype;
    });
}

void judge_local_fault(Case& c) {
    const ProductSum* worst = nullptr;
    double most = 0;
    std::uint64_t places = 0;
    for (const ProductSum& p : c.model.products) {
        const LocalExcess excess = local_excess(p.worst);
        const double off = std::sqrt(excess.rounding);
        if (!(off > c.limits.local_fault_phi) || !(std::sqrt(excess.others) > kMoreThanOthers)) continue;
        if (adds_in_16_bits(c.model, p.worst)) continue;
        ++places;
        if (worst && !(off > most)) continue;
        worst = &p;
        most = off;
    }
    if (!worst) return;
    const ProductRecord& r = worst->worst;
    OpRecord op;
    op.layer = r.layer;
    op.op = r.op;
    op.phase = r.phase;
    op.dtype = r.dtype;
    op.device = r.device;
    Finding f = finding_at("MPT078", Severity::error, op);
    f.rank = worst->worst_at.rank;
    f.step = worst->worst_at.step;
    f.value = most;
    f.limit = c.limits.local_fault_phi;
    f.unit = "times rounding";
    f.basis = Basis::sampled;
    f.importance = importance::kLocalFault();
    const double others =
        relative(r.error_squares - r.block_error_squares, r.rounding_squares - r.block_rounding_squares);
    const std::uint64_t last = std::min(r.first_row + ProductRecord::kRows, r.rows) - 1;
    const double size = r.block_squares > 0 ? relative(r.block_error_squares, r.block_squares) : 1;
    f.message = place_text(op) + ": rows " + std::to_string(r.first_row) + " to " + std::to_string(last) +
                " of " + std::to_string(r.rows) + " of the result are wrong by " + percent(size) + ", " +
                figure(most) + " times what rounding explains (limit " + figure(f.limit) +
                "); that of the other rows is " + figure(others) +
                " times it (sampled, a sketch of the whole result)" +
                (places > 1 ? "; the same holds for " + counted(places - 1, "other place") : std::string());
    f.advice =
        "a tile was lost or written over: look for a workspace that two streams share, a kernel or copy "
        "that writes there meanwhile (compute-sanitizer --tool racecheck), and errors of the memory "
        "(nvidia-smi -q -d ECC)";
    c.out.findings.push_back(std::move(f));
}

// The values themselves have a finding of their own, MPT001; this is why one bad step ended the run.
void judge_unguarded(Case& c) {
    const OpSum* first = nullptr;
    for (const OpSum& sum : c.model.ops)
        if (sum.total.unguarded > 0 && (!first || sum.total.unguarded < first->total.unguarded)) first = &sum;
    if (!first) return;
    Finding f = finding("MPT074", Severity::error);
    f.phase = Phase::optimizer;
    f.step = Step{static_cast<std::int64_t>(first->total.unguarded) - 1};
    f.basis = Basis::inferred;  // that it ran, from its range
    f.importance = importance::kUnguarded();
    f.message = "the optimizer ran in step " + std::to_string(f.step.value) +
                " on gradients that are not finite, and the next forward began with such values in " +
                place_text(first->total) + ": the weights are lost";
    f.advice =
        "skip the update unless the norm of the gradients is finite: "
        "`if (!isfinite(norm)) return;` (`norm > limit` is false for NaN)";
    c.out.findings.push_back(std::move(f));
}

}  // namespace

void judge_products(Case& c) {
    judge_half_sums(c);
    judge_split_sums(c);
    judge_emulated(c);
    judge_local_fault(c);
    judge_unguarded(c);
}

}  // namespace mp::trace
