// MP406 cublas-compute-16f
//
// What   A cuBLAS, cuBLASLt or cuDNN call computes in fp16: CUBLAS_COMPUTE_16F, the legacy
//        computeType CUDA_R_16F, cublasHgemm*, a cuDNN compute type HALF, or fp32 data rounded to
//        half on the way in (CUBLAS_COMPUTE_32F_FAST_16F, _FAST_16BF).
// Why    The dot product over K terms is summed in fp16: it rounds to 11 bits at every step and
//        ends at 65504. alpha and beta must have the scale type: a float read as half gives
//        garbage, no error.
// Fix    CUBLAS_COMPUTE_32F with float alpha and beta; the matrices stay half.
// Silent Float compute types, compute types that are not constants (the constant that one of them
//        can be is reported where a trait chooses it), alpha through void*. A constant K of at most 64,
//        a function that times it, the function's second such call, and the inference profile are notes; a wrong
//        scale type is an error.
// Tests  testdata/lint/MP406.md, tests/analyzer/rules/cublas_compute_16f_test.cpp

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_set>

#include "analyzer/analyses/numbers.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

constexpr double kShortSum = 64;  // so few products lose little, as measured by their users

// Positions of the legacy interface (cudaDataType as computeType) and of alpha, from 0.
struct Gemm {
    std::string_view name;
    std::size_t compute;
    std::size_t k;
    std::size_t alpha;
    std::size_t beta;
};
constexpr std::array<Gemm, 3> kGemms{{{"cublasGemmEx", 17, 5, 6, 13},
                                      {"cublasGemmBatchedEx", 18, 5, 6, 13},
                                      {"cublasGemmStridedBatchedEx", 21, 5, 6, 15}}};

constexpr std::size_t kHgemmK = 5;  // of cublasHgemm and its batched forms

std::string_view without_suffix(std::string_view name) {
    if (name.ends_with("_64")) name.remove_suffix(3);
    return name;
}

const Gemm* gemm(std::string_view name) {
    const auto found = std::ranges::find(kGemms, without_suffix(name), &Gemm::name);
    return found == kGemms.end() ? nullptr : &*found;
}

std::string_view constant(const Call& call, std::size_t i) {
    return i < call.args.size() ? leaf(call.args[i].constant.str()) : std::string_view();
}

bool has_constant(const Call& call, std::string_view prefix) {
    return std::ranges::any_of(call.args,
                               [&](const Operand& a) { return leaf(a.constant.str()).starts_with(prefix); });
}

bool computes_in_16f(const Call& call, const Gemm* g) {
    if (has_constant(call, "CUBLAS_COMPUTE_16F")) return true;
    return g && constant(call, g->compute) == "CUDA_R_16F";
}

bool computes_in_32f(const Call& call, const Gemm* g) {
    if (has_constant(call, "CUBLAS_COMPUTE_32F")) return true;
    return g && constant(call, g->compute) == "CUDA_R_32F";
}

// The position of an alpha or beta that the compute type reads as another type.
std::optional<std::size_t> wrong_scale(const Call& call, const Gemm& g) {
    const bool half = computes_in_16f(call, &g), single = computes_in_32f(call, &g);
    for (const std::size_t i : {g.alpha, g.beta}) {
        if (i >= call.args.size()) continue;
        const DType d = call.args[i].dtype;
        if ((half && is_wide(d)) || (single && is_low_precision(d))) return i;
    }
    return std::nullopt;
}

bool is_short(const Call& call, const Gemm* g) {
    const bool is_hgemm = leaf(call.name.str()).starts_with("cublasHgemm");
    const std::size_t at = g ? g->k : is_hgemm ? kHgemmK : call.args.size();
    const auto k = at < call.args.size() ? number_of(call.args[at]) : std::nullopt;
    return k && *k <= kShortSum;
}

std::string sums_in_fp16() {
    return "sums K products in fp16: every step rounds to " + std::to_string(significant_bits(DType::fp16)) +
           " bits, and from " + shown(overflows_from(DType::fp16)) + " on the result overflows";
}

constexpr std::array<std::string_view, 6> kSetters{"setComputeDataType",  "set_compute_data_type",
                                                   "setComputeType",      "setMathPrecision",
                                                   "setComputePrecision", "set_compute_type"};

// The names that are judged below.
bool may_compute_16f(std::string_view name) {
    const std::string_view last = without_suffix(leaf(name));
    return last.starts_with("cublas") || last.starts_with("cudnn") || any_of(last, kSetters);
}

// The first type among the arguments is that of A. What follows the compute type is a scale type, and the last is that
// of the result.
bool multiplies_floats(const Call& call) {
    for (const Operand& value : call.args) {
        const std::string_view constant = leaf(value.constant.str());
        if (constant.starts_with("CUBLAS_COMPUTE")) return false;
        if (constant.starts_with("CUDA_R_")) return constant == "CUDA_R_32F";
    }
    return false;
}

// What is wrong with a call that computes in fp16; empty when nothing is.
std::string complaint(const Call& call, const Gemm* g) {
    const std::string_view name = without_suffix(leaf(call.name.str()));
    if (name.starts_with("cublasHgemm")) return std::string(name) + " " + sums_in_fp16();
    if (name.starts_with("cublas")) {
        if (computes_in_16f(call, g)) return std::string(name) + " with CUBLAS_COMPUTE_16F " + sums_in_fp16();
        const bool fast = has_constant(call, "CUBLAS_COMPUTE_32F_FAST_16");
        if (fast && multiplies_floats(call))
            return std::string(name) +
                   " rounds its fp32 matrices to 16 bits before multiplying "
                   "(CUBLAS_COMPUTE_32F_FAST_16F or _FAST_16BF)";
        return {};
    }
    const bool cudnn_compute = name.starts_with("cudnnSetConvolution") && !call.args.empty() &&
                               constant(call, call.args.size() - 1) == "CUDNN_DATA_HALF";
    const bool cudnn_rnn = name == "cudnnSetRNNDescriptor_v8" && constant(call, 7) == "CUDNN_DATA_HALF";
    const bool frontend =
        any_of(name, kSetters) && (has_constant(call, "HALF") || has_constant(call, "CUDNN_DATA_HALF"));
    if (cudnn_compute || cudnn_rnn || frontend)
        return std::string(name) + " sets fp16 compute: cuDNN " + sums_in_fp16();
    return {};
}

// cublasLtMatmulDescCreate(desc, compute, scale): fp16 compute exists only with an fp16 scale.
bool wrong_lt_scale(const Call& call) {
    const std::string_view name = leaf(call.name.str());
    if (name != "cublasLtMatmulDescCreate" && name != "cublasLtMatmulDescInit") return false;
    if (has_constant(call, "CUBLAS_COMPUTE_16F")) return has_constant(call, "CUDA_R_32F");
    return has_constant(call, "CUBLAS_COMPUTE_32F") && has_constant(call, "CUDA_R_16F");
}

// A program that times the product throws it away. Training loops that time their steps call the product elsewhere.
bool is_timed(const Function& f) {
    return std::ranges::any_of(
        f.calls, [](const Call& call) { return leaf(call.name.str()) == "cudaEventElapsedTime"; });
}

// A trait's `static const cublasComputeType_t compute = CUBLAS_COMPUTE_16F`.
bool chooses_16f(const TypeUse& use) {
    return use.name.str() == "cublasComputeType_t" && use.args.size() == 1 &&
           use.args[0].text.str().starts_with("CUBLAS_COMPUTE_16F");
}

void check(const RuleContext& context, Findings& out) {
    std::unordered_set<const Function*> told;  // the products of a function are computed with one choice
    for_each_call(context.program, may_compute_16f, [&](const Function& f, const Call& call) {
        const Gemm* g = gemm(leaf(call.name.str()));
        const auto report = [&](Severity severity, std::string message, std::string fix) {
            emit(context, f,
                 {.rule = "MP406",
                  .severity = severity,
                  .span = call.span,
                  .message = std::move(message),
                  .fix = std::move(fix),
                  .notes = {},
                  .function = {}},
                 out);
        };
        if (const auto i = g ? wrong_scale(call, *g) : std::nullopt) {
            const bool half = computes_in_16f(call, g);
            return report(
                Severity::error,
                std::string(*i == g->alpha ? "alpha" : "beta") + " is " +
                    std::string(name_of(call.args[*i].dtype)) + " but this compute type reads " +
                    (half ? "fp16" : "fp32") + ": the product is scaled by garbage, without an error",
                half ? "use CUBLAS_COMPUTE_32F with float alpha and beta" : "pass float alpha and beta");
        }
        if (wrong_lt_scale(call))
            return report(Severity::error,
                          "compute type and scale type disagree: cuBLASLt computes fp16 with an "
                          "fp16 scale and fp32 "
                          "with an fp32 scale only",
                          "use CUBLAS_COMPUTE_32F with CUDA_R_32F");
        std::string message = complaint(call, g);
        if (message.empty()) return;
        const bool quiet = context.inference || is_short(call, g) || is_timed(f) || !told.insert(&f).second;
        report(quiet ? Severity::note : Severity::warning, std::move(message),
               "use CUBLAS_COMPUTE_32F (float compute) and float alpha and beta; the matrices stay "
               "half");
    });
    for_each(context, &Function::types, [&](const Function& f, const TypeUse& use) {
        if (!chooses_16f(use)) return;
        emit(context, f,
             {.rule = "MP406",
              .severity = context.inference ? Severity::note : Severity::warning,
              .span = use.span,
              .message = "constant" + quoted(use.alias.str()) +
                         " is CUBLAS_COMPUTE_16F: a product computed with it " + sums_in_fp16(),
              .fix = "use CUBLAS_COMPUTE_32F and float alpha and beta; the matrices stay half",
              .notes = {},
              .function = {}},
             out);
    });
}

}  // namespace

extern constinit const Rule kCublasCompute16f{.id = "MP406",
                                              .name = "cublas-compute-16f",
                                              .severity = Severity::error,
                                              .on_by_default = true,
                                              .confirmed_by = "MPT010",
                                              .triggers = Triggers::cpp_only(),
                                              .check = check};

}  // namespace mp::lint
