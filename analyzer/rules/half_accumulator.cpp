// MP401 half-accumulator
//
// What   A sum is kept in fp16, bf16 or fp8 while a loop, a tree reduction or repeated calls add to
//        it.
// Why    Every addition rounds to the few bits of the accumulator: a sum of ones stops growing at
//        2048 in fp16 and at 256 in bf16, and fp16 ends at 65504. A tree rounds at each level: a warning.
// Fix    Accumulate in float and convert once, when the result is stored.
// Silent Float accumulators with a half store at the end; max, min and products; templates that are
//        only instantiated with float. Few terms are a note: 32 in sequence, or a tree over 16; so
//        are a tree whose steps add in float, a residual connection per layer, a blend, the results of the experts
//        of a token, and what a program offers with an fp32 sum too. A sum of an unknown number of terms is a
//        warning, and a note in Python: they can be four splits or all columns; so is one where a branch, a
//        way out of the loop or another change of the total lets a round add nothing, and one of too few terms
//        to stop growing that is added up in float. It is a note where it is the share of one thread,
//        and the shares are then added in fp32. Sums of squares are MP405's, which knows their worse
//        range. Rows of a tensor that each round of a Python loop makes anew are no sum, and who adds up one number
//        (torch.tensor(0.01)) tries the dtype out. An accumulator is reported once in a function.
// Tests  testdata/lint/MP401.md, tests/analyzer/rules/half_accumulator_test.cpp

#include <algorithm>
#include <cctype>

#include "analyzer/analyses/accumulators.hpp"
#include "analyzer/analyses/numbers.hpp"
#include "analyzer/analyses/python_code.hpp"
#include "analyzer/analyses/sum_variants.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

// The rounding of so few terms stays near the format's own. What a tree joins are sums already, so
// it is allowed less: a whole warp is more than a few.
constexpr std::uint64_t kFewTerms = 32;
constexpr std::uint64_t kFewTermsOfATree = 16;

bool is_sum(const Accumulation& a) { return adds_in_half(a) && a.stat != Stat::sum_of_squares; }

// The weights of a blend are one together: it stays as small as its terms.
bool is_blend(const Accumulation& a) { return a.stat == Stat::mean; }

// Whether many terms certainly end up in the sum. A tree of n steps joins 2^n terms.
bool are_many(std::uint64_t steps, AccumulateForm form) {
    if (form != AccumulateForm::tree) return steps > kFewTerms;
    return steps >= 64 || (std::uint64_t{1} << steps) > kFewTermsOfATree;
}

// What one expression and another call the array by: "x" of `x + i * width` and of `this->x`.
std::string_view spelling_of(const Operand& value) {
    constexpr std::string_view kThis = "this->";
    const std::string_view text = naming(value);
    return text.starts_with(kThis) ? text.substr(kThis.size()) : text;
}

// "x" of `x + i * width`: the rows of one array.
std::string_view array_of(std::string_view text) {
    return text.substr(
        0, static_cast<std::size_t>(std::ranges::find_if_not(text, is_part_of_name) - text.begin()));
}

std::string_view array_of(const Operand& value) { return array_of(spelling_of(value)); }

bool is_row(const Operand& value) { return array_of(value).size() < spelling_of(value).size(); }

bool is_pointer(const Operand& value) { return value.shape == Shape::pointer && !array_of(value).empty(); }

// Host code that launches layer after layer: `norm(y, x); matmul(y, ...); add(x, y)`. Other calls of the loop take all
// that the addition takes, so what is added is computed from the total: x = x + f(x) is no sum of independent terms.
// A loop over rows adds to each of them once per layer.
bool is_residual(const Function& f, const Accumulation& a) {
    if (a.form != AccumulateForm::call || f.kind != FunctionKind::host) return false;
    const auto adds = std::ranges::find_if(f.calls, [&](const Call& call) { return call.span == a.span; });
    if (adds == f.calls.end() || std::ranges::none_of(adds->args, is_pointer)) return false;
    return std::ranges::all_of(adds->args, [&](const Operand& value) {
        const int layers = adds->loop_depth - (is_row(value) && adds->loop_depth > 1 ? 1 : 0);
        const auto is_same = [&](const Operand& o) { return array_of(o) == array_of(value); };
        return !is_pointer(value) || std::ranges::any_of(f.calls, [&](const Call& other) {
            return other.callee != adds->callee && other.loop_depth >= layers &&
                   std::ranges::any_of(other.args, is_same);
        });
    });
}

// float v = __half2float(sum): what happens to the sum is not half.
bool is_widened(const Function& f, const Accumulation& a, bool in_loop) {
    const std::string_view sum = array_of(a.name.str());
    return std::ranges::any_of(f.casts, [&](const Cast& cast) {
        return is_wide(cast.to) && is_low_precision(cast.from) && cast.in_loop == in_loop &&
               array_of(cast.source) == sum;
    });
}

// A window: for (...) { half sum = 0; for (64 terms) sum += ...; total += float(sum); }
bool is_window(const Function& f, const Accumulation& a) {
    return a.trips != 0 && a.trips < (std::uint64_t{1} << significant_bits(a.dtype)) &&
           is_widened(f, a, true);
}

Severity severity_of(const RuleContext& context, const Function& f, const Accumulation& a) {
    const bool tree = a.form == AccumulateForm::tree;
    if (context.inference || (a.trips != 0 && !are_many(a.trips, a.form))) return Severity::note;
    if ((tree && is_wide(a.element)) || is_residual(f, a) || is_blend(a)) return Severity::note;
    if (!tree && is_given_experts(f)) return Severity::note;
    // The launch decides how many terms one of the threads gets: n / blockDim.x are few as a rule.
    if (a.shared && is_widened(f, a, false)) return Severity::note;
    // How often a method is called on one object is not known either.
    const bool certain = are_many(a.at_least, a.form) && a.form != AccumulateForm::member && !is_window(f, a);
    // A tree joins totals level by level: each rounds once, and none of them stops growing.
    if (certain && !tree) return error_if_proven(a.dtype);
    return is_python(f) ? Severity::note : Severity::warning;
}

std::string message_of(const Accumulation& a) {
    const std::string dtype(label(a.dtype));
    if (a.form == AccumulateForm::tree)
        return "tree reduction of" + quoted(a.name.str()) + " adds in " + dtype + ": every level rounds to " +
               std::to_string(significant_bits(a.dtype)) + " bits" + and_overflows(a.dtype, "the result");
    return "accumulator" + quoted(a.name.str()) + " is " + dtype + ": a sum of ones stops growing at " +
           stalls_at(a.dtype) + and_overflows(a.dtype);
}

// The statements that add to one accumulator: an unrolled loop has one for each step.
std::vector<const Accumulation*> additions(const Function& f, const Accumulation& a) {
    std::vector<const Accumulation*> found;
    for (const Accumulation& other : f.accumulations) {
        const bool is_same = a.declared.known() && other.declared == a.declared && other.name == a.name;
        if (&other == &a || (is_same && other.form == a.form && is_sum(other))) found.push_back(&other);
    }
    return found;
}

std::vector<Note> notes_of(const Accumulation& a, const std::vector<const Accumulation*>& all) {
    std::vector<Note> notes;
    if (a.declared.known())
        notes.push_back({a.declared, "the accumulator is declared here as " + std::string(label(a.dtype))});
    if (a.through_span.known())
        notes.push_back({a.through_span, std::string(a.through.str()) + " adds here"});
    if (a.shared)
        notes.push_back({a.span, "each thread adds its share of the terms: the launch decides how many"});
    if (all.size() > 1)
        notes.push_back({all.back()->span, "the last of " + std::to_string(all.size()) + " such statements"});
    return notes;
}

// count[:, a:b] += 1, where a is the start of a tile: tiles overlap a few times, and no element gets a whole sum.
bool adds_tiles(const Accumulation& a) {
    const std::string_view target = a.name.str();
    const std::size_t colon = target.find('[') == std::string_view::npos ? target.npos : target.find(':');
    for (std::size_t at = colon; at != target.npos; at = target.find(':', at + 1)) {
        const char before = target[at - 1];
        if (std::isalpha(static_cast<unsigned char>(before)) || before == '_') return true;
    }
    return false;
}

// s += torch.tensor(0.01, dtype=torch.float16): the total is known, and shows what the dtype does to it.
bool adds_one_number(const Accumulator& a) {
    const Call* const made = a.added ? call_of(*a.function, *a.added) : nullptr;
    return made && made->name.str() == "torch.tensor" && !made->args.empty() && number_of(made->args[0]);
}

// Python: tensors that a loop adds up. A loop over the items of a list may have a few of them: experts, heads,
// codebooks.
void check_python(const RuleContext& context, Findings& out) {
    for (const Accumulator& a : python_accumulators(context)) {
        if (a.over_steps || !a.proven || adds_tiles(*a.fact) || adds_one_number(a)) continue;
        Accumulation known = *a.fact;
        known.dtype = a.dtype;
        known.at_least = a.certain ? known.trips : 0;
        emit(context, *a.function,
             {.rule = "MP401",
              .severity = severity_of(context, *a.function, known),
              .span = known.span,
              .message = message_of(known),
              .fix = "keep the accumulator in fp32 and convert once, after the loop",
              .notes = a.notes,
              .function = {}},
             out);
    }
}

void check(const RuleContext& context, Findings& out) {
    check_python(context, out);
    for_each(context, &Function::accumulations, [&](const Function& f, const Accumulation& a) {
        if (is_python(f) || !is_sum(a)) return;
        // One accumulator is one report: at the first of its worst statements.
        const std::vector<const Accumulation*> all = additions(f, a);
        const auto severity = [&](const Accumulation* one) { return severity_of(context, f, *one); };
        if (*std::ranges::max_element(all, {}, severity) != &a) return;
        emit_sum(context, f,
                 {.rule = "MP401",
                  .severity = severity(&a),
                  .span = a.span,
                  .message = message_of(a),
                  .fix = a.form == AccumulateForm::tree
                             ? "reduce in float and convert the result once"
                             : "keep the accumulator in float and convert once, when it is stored",
                  .notes = notes_of(a, all),
                  .function = {}},
                 out);
    });
}

}  // namespace

extern constinit const Rule kHalfAccumulator{.id = "MP401",
                                             .name = "half-accumulator",
                                             .severity = Severity::error,
                                             .on_by_default = true,
                                             .confirmed_by = "MPT010",
                                             .triggers = {kLowDtypes, kRegions, kEngines},
                                             .check = check};

}  // namespace mp::lint
