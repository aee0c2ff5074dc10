// MP306 int-in-half
//
// What   An integer that counts or positions something is stored in fp16, bf16 or fp8.
// Why    fp16 holds every integer up to 2048, bf16 up to 256; beyond, neighbouring positions become
//        the same number, and a count above 65504 is inf in fp16, so a mean becomes 0.
// Fix    Compute with the index or count in float; convert the result.
// Silent Integers whose bound fits (uint8 images, n % 16, small constant loops), booleans,
//        constants that are exact. Of unknown size are a warning an index that is stored or added, and a
//        divisor of 64 bits, which is made for large counts; any other integer is a note: an exponent, the
//        taps of a filter, a quantised weight look the same, and half rounds a small divisor no more than it
//        rounds the result. An index that host code converts is a note, too: it fills arrays to try a kernel out.
//        Python: positions of unknown number are a note in fp16, a warning in bf16.
// Tests  testdata/lint/MP306.md, tests/analyzer/rules/int_in_half_test.cpp

#include <array>
#include <cmath>
#include <optional>

#include "analyzer/analyses/numbers.hpp"
#include "analyzer/analyses/python_counts.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

// The cast that starts from the integer: c itself, or int -> float inside it.
const Cast* integer_source(const Function& f, const Cast& c) {
    if (is_integer(c.from)) return &c;
    if (c.inner < 0 || static_cast<std::size_t>(c.inner) >= f.casts.size()) return nullptr;
    const Cast& inner = f.casts[static_cast<std::size_t>(c.inner)];
    return is_integer(inner.from) && is_wide(inner.to) ? &inner : nullptr;
}

std::uint64_t bound_of(const Cast& from) {
    if (from.bound != 0) return from.bound;
    if (from.from == DType::uint8) return 255;
    if (from.from == DType::int8) return 128;
    return 0;
}

// __half_as_ushort(h): the bits of a number, which no count is.
bool is_bits(const Operand& source) {
    return naming(source).find("_as_ushort") != std::string_view::npos ||
           naming(source).find("_as_short") != std::string_view::npos;
}

std::optional<Severity> severity_of(const Function& f, const Cast& cast, const Cast& from) {
    if (is_bits(from.source)) return Severity::note;
    const std::uint64_t bound = bound_of(from), first = first_inexact_integer(cast.to);
    if (bound != 0 && bound < first) return std::nullopt;
    const bool indexes = from.loop_index || cast.loop_index;
    const bool divides = cast.role == Role::divisor || from.role == Role::divisor;
    if (indexes && f.kind == FunctionKind::host) return Severity::note;
    if (bound != 0 && (indexes || divides)) return Severity::warning;
    const bool is_large = from.from == DType::int64 || from.from == DType::uint64;
    const bool is_position = indexes && (cast.purpose == Purpose::store || cast.role == Role::added);
    const bool matters = is_position || (divides && is_large);
    return matters ? Severity::warning : Severity::note;
}

// A constant is judged by its value; MP301 has those that do not fit at all.
bool is_exact_or_overflows(const Cast& cast, double value) {
    const double r = rounded(cast.to, value);
    return r == value || !std::isfinite(r);
}

std::string message_of(const Cast& cast, const Cast& from) {
    std::string what = from.loop_index || cast.loop_index                         ? "index"
                       : cast.role == Role::divisor || from.role == Role::divisor ? "count"
                                                                                  : "integer";
    what += quoted(naming(from.source));
    return what + " is held in " + std::string(label(cast.to)) + ": integers are exact only up to " +
           stalls_at(cast.to) + and_overflows(cast.to);
}

void check(const RuleContext& context, Findings& out) {
    python_int_in_half(context, out);
    for_each(context, &Function::casts, [&](const Function& f, const Cast& cast) {
        if (!is_low_precision(cast.to)) return;
        const Cast* from = integer_source(f, cast);
        if (!from || from->form == CastForm::reinterpret) return;  // bits, and no number
        const auto value = number_of(from->source);
        if (value && is_exact_or_overflows(cast, *value)) return;
        const auto severity = value ? std::optional(Severity::warning) : severity_of(f, cast, *from);
        if (!severity) return;
        std::string message = value ? shown(*value, 9) + " becomes " + shown(rounded(cast.to, *value), 9) +
                                          " in " + std::string(label(cast.to)) +
                                          ": integers are exact only up to " + stalls_at(cast.to)
                                    : message_of(cast, *from);
        emit(context, f,
             {.rule = "MP306",
              .severity = *severity,
              .span = cast.span,
              .message = std::move(message),
              .fix = "compute with it in float and convert the result",
              .notes = {},
              .function = {}},
             out);
    });
}

// Positions in the dtype of a buffer, which a cast of the model elsewhere makes half.
constexpr std::array<std::string_view, 1> kOwnTriggers{"register_buffer"};

}  // namespace

extern constinit const Rule kIntInHalf{.id = "MP306",
                                       .name = "int-in-half",
                                       .severity = Severity::error,
                                       .on_by_default = true,
                                       .confirmed_by = "MPT010",
                                       .triggers = {kLowDtypes, kRegions, kEngines, kOwnTriggers},
                                       .check = check};

}  // namespace mp::lint
