// MP301 half-constant-overflow
//
// What   A constant outside the range of fp16, bf16 or fp8 is converted to it. In Python also: the
//        forward of a module fills it into tensors of its inputs' dtype, and the same package casts
//        models of any class to fp16 (a note).
// Why    It becomes inf: -1e9 as a mask value makes an all-masked row NaN in softmax, 70000 as a
//        bound bounds nothing, and FLT_MAX rounds to inf even in bf16.
// Fix    -INFINITY where inf is meant; std::numeric_limits<T>::lowest(), or compute in float.
// Silent Infinity itself; values that fit; branches that are dead in this instantiation, or that ask for
//        the dtype first. The start value of a max or min and a comparison are notes: inf serves them
//        as well. In C++ and CUDA a warning: whether -inf harms depends on the values beside it; an extreme
//        (above 1e30) is a note there, because it starts a maximum as a rule.
// Tests  testdata/lint/MP301.md, tests/analyzer/rules/half_constant_overflow_test.cpp

#include <array>
#include <cmath>

#include "analyzer/analyses/constants.hpp"
#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/numbers.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

constexpr double kExtreme = 1e30;

Severity severity_of(const ConstantUse& use) {
    if (use.role == Role::max_identity || use.role == Role::compared) return Severity::note;
    // In bf16 it fits, and in fp16 a bound that is inf lets inf pass.
    if (use.role == Role::clamp && use.dtype == DType::lowp) return Severity::note;
    // bf16 has fp32's range, so only an fp32 extreme leaves it; a clamp to inf clamps nothing, and
    // says so.
    if (use.role == Role::clamp || use.dtype == DType::bf16 || !use.proven) return Severity::warning;
    // C++ converts it without a word, and what inf does depends on what it meets: as the start of a maximum, which is
    // what such extremes are for, nothing. PyTorch raises.
    if (!use.call && !use.tensor) return std::fabs(use.value) > kExtreme ? Severity::note : Severity::warning;
    // A tensor of small values survives a large factor; the -1e9 of a mask is meant to be large.
    if (use.call && use.role == Role::multiplier && use.value > 0) return Severity::warning;
    return Severity::error;
}

std::string limit_of(const ConstantUse& use) {
    return "torch.finfo(" + std::string(use.met->name.str()) + ".dtype)." + (use.value < 0 ? "min" : "max");
}

// Where the tensor has a name, its own limit can stand in for the number.
bool has_limit(const ConstantUse& use) {
    return use.met && use.met->shape != Shape::dtype && !use.met->name.empty();
}

std::vector<Edit> edits_of(const ConstantUse& use) {
    if (use.in_cast_model) return {};  // the tensor may be one of integers, which finfo refuses
    if (use.role != Role::mask_fill || !has_limit(use) || !use.constant) return {};
    if (!use.constant->span.known()) return {};
    return {{use.constant->span, rewritten(*use.constant, limit_of(use))}};
}

std::string fix_of(const ConstantUse& use) {
    if (use.call && use.role == Role::mask_fill)
        return "fill with " + (has_limit(use) ? limit_of(use) : "torch.finfo(x.dtype).min");
    if (use.call && (use.role == Role::multiplier || use.role == Role::added))
        return "use masked_fill with torch.finfo(x.dtype).min for a mask, or do this step in fp32";
    if (use.call) return "keep it in fp32, or use torch.finfo(dtype).max";
    if (use.role == Role::mask_fill || use.role == Role::max_identity || use.role == Role::added)
        return "use -INFINITY where a masked value is meant, or std::numeric_limits<T>::lowest() "
               "of the half type";
    return "keep the constant and what it meets in float, or use the largest value of the half "
           "type";
}

std::string message_of(const ConstantUse& use) {
    const std::string what = shown(use.value) + " does not fit " + std::string(label(use.dtype)) +
                             " (largest value " + shown(largest_value(use.dtype)) + "): ";
    if (use.in_cast_model) return what + "this module runs in fp16 when its package casts the model to it";
    const bool to_inf = std::isinf(rounded(use.dtype, use.value));
    return what + "it becomes " + (!to_inf ? "nan" : use.value < 0 ? "-inf" : "inf");
}

void report(const RuleContext& context, const ConstantUse& use, Severity severity, Findings& out) {
    emit(context, *use.function,
         {.rule = "MP301",
          .severity = severity,
          .span = use.span,
          .message = message_of(use),
          .fix = fix_of(use),
          .notes = use.notes,
          .function = {},
          .edits = edits_of(use)},
         out);
}

void check(const RuleContext& context, Findings& out) {
    for (const ConstantUse& use : constant_uses(context))
        if (!std::isfinite(rounded(use.dtype, use.value))) report(context, use, severity_of(use), out);
    // Who casts the model is known, and which model he gets is not.
    for (const ConstantUse& use : overflows_in_cast_models(context))
        report(context, use, Severity::note, out);
}

// Numbers above 65504 that fill tensors of a model which another file of the package casts, and to which no call
// leads: masked_fill(m, -9e15), where(m, x, 1e5), x[m] = 70000.0, -3.4e38.
constexpr std::array<std::string_view, 15> kOwnTriggers{
    "-#e",       "-#E",    "-#.#e",    "-#####",    ", #e#",    ", #e+",       ", #.#e#", ", #####.",
    ", ######.", "] = #e", "] = #.#e", "] = #####", "value=#e", "value=#####", "e38"};

}  // namespace

extern constinit const Rule kHalfConstantOverflow{.id = "MP301",
                                                  .name = "half-constant-overflow",
                                                  .severity = Severity::error,
                                                  .on_by_default = true,
                                                  .confirmed_by = "MPT001",
                                                  .triggers = {kLowDtypes, kRegions, kEngines, kOwnTriggers},
                                                  .check = check};

}  // namespace mp::lint
