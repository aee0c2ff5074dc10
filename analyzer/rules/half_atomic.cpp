// MP403 half-atomic
//
// What   An atomic addition sums into fp16, bf16 or fp8 memory.
// Why    Each of the many small additions rounds to the few bits of the total, so the total stops
//        growing early; and the order, hence the result, changes from run to run.
// Fix    Add into a float buffer and convert once.
// Silent Atomic max, min and exchange; additions into float; the body of a wrapper that is itself
//        called like an atomic addition (its callers are reported). A note in a helper that nothing calls, and in a
//        kernel that is given experts: a token gets the results of top-k of them, which are few. Where a kernel adds to
//        one buffer in several places, as for pairs and for single values, the first one is reported.
// Tests  testdata/lint/MP403.md, tests/analyzer/rules/half_atomic_test.cpp

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "analyzer/analyses/accumulators.hpp"
#include "analyzer/analyses/numbers.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

constexpr std::array<std::string_view, 11> kMayAdd{"atomicAdd",        "atomicAdd_block",
                                                   "atomicAdd_system", "atomicAddNoRet",
                                                   "gpuAtomicAdd",     "gpuAtomicAddNoReturn",
                                                   "fastAtomicAdd",    "fastSpecializedAtomicAdd",
                                                   "atomAdd",          "fetch_add",
                                                   "atomicCAS"};
constexpr auto kAdders = std::span(kMayAdd).first<9>();

// cuda::atomic_ref<__half>(x).fetch_add(v): the template argument is the type of the sum.
DType added_to(const Call& call) {
    const std::string_view name = leaf(call.name.str());
    if (any_of(name, kAdders) && !call.args.empty()) return call.args[0].dtype;
    if (name != "fetch_add" || !is_within(call.name.str(), "cuda")) return DType::unknown;
    const auto low = std::ranges::find_if(call.template_args, is_low_precision, &TemplateArgument::dtype);
    return low == call.template_args.end() ? DType::unknown : low->dtype;
}

bool swaps(std::string_view name) { return leaf(name) == "atomicCAS"; }

// do { sum = __hadd(assumed, value); old = atomicCAS(address, assumed, sum); } while (...)
DType added_by_swap(const Function& f, const Call& swap) {
    if (swap.loop_depth == 0) return DType::unknown;
    const auto added = std::find_if(f.calls.data(), &swap, [&](const Call& call) {
        return call.op.name() == "add" && call.loop_depth == swap.loop_depth &&
               is_low_precision(call.result.dtype);
    });
    return added == &swap ? DType::unknown : added->result.dtype;
}

// Adds what it is given, where it is told to.
bool is_helper(const Function& f, const Call& adds) {
    return f.kind == FunctionKind::device && !adds.args.empty() && adds.args[0].param != kNone;
}

// The results of the experts of a token are few. A helper matters where something calls it that adds more than those.
bool is_minor(const Program& program, const Function& f, const Call& adds) {
    if (is_given_experts(f)) return true;
    return is_helper(f, adds) && std::ranges::all_of(program.callers(f.usr), [&program](const Call* call) {
               const Function* const caller = program.owner(*call);
               return caller && is_given_experts(*caller);
           });
}

struct Addition {
    const Function* function;
    const Call* call;
    DType dtype;
};

// "table" of `(__half2*)&table[i + c]` and of `table + i`.
std::string_view buffer_of(const Operand& address) {
    const std::string_view text = naming(address);
    std::string_view before = text.substr(0, text.find_first_of("[+"));
    while (!before.empty() && !is_part_of_name(before.back())) before.remove_suffix(1);
    const auto end = std::find_if_not(before.rbegin(), before.rend(), is_part_of_name);
    return before.substr(static_cast<std::size_t>(before.rend() - end));
}

// One buffer of one function, in whichever instantiation.
using Place = std::tuple<Symbol, std::uint32_t, std::string_view>;

std::optional<Place> place_of(const Addition& a) {
    const std::string_view buffer = a.call->args.empty() ? std::string_view() : buffer_of(a.call->args[0]);
    if (buffer.empty()) return std::nullopt;
    return Place{a.function->span.file, a.function->span.line, buffer};
}

std::vector<Addition> additions(const RuleContext& context) {
    std::vector<Addition> found;
    for_each_call(context.program, last_part_in(kMayAdd), [&](const Function& f, const Call& call) {
        const DType dtype = swaps(call.name.str()) ? added_by_swap(f, call) : added_to(call);
        if (is_low_precision(dtype) && !any_of(leaf(f.name.str()), kAdders))
            found.push_back({.function = &f, .call = &call, .dtype = dtype});
    });
    return found;
}

// The line of the first addition to each buffer.
std::map<Place, std::uint32_t> first_lines(const std::vector<Addition>& all) {
    std::map<Place, std::uint32_t> lines;
    for (const Addition& a : all)
        if (const auto place = place_of(a)) {
            const std::uint32_t line = a.call->span.line;
            const auto [known, is_new] = lines.emplace(*place, line);
            known->second = std::min(known->second, line);
        }
    return lines;
}

void check(const RuleContext& context, Findings& out) {
    const std::vector<Addition> all = additions(context);
    const std::map<Place, std::uint32_t> first = first_lines(all);
    for (const Addition& a : all) {
        const auto place = place_of(a);
        if (place && a.call->span.line != first.at(*place)) continue;
        const bool minor = is_minor(context.program, *a.function, *a.call);
        const bool by_swap = swaps(a.call->name.str());
        emit_sum(context, *a.function,
                 {.rule = "MP403",
                  .severity = minor ? Severity::note : Severity::warning,
                  .span = a.call->span,
                  .message = (by_swap ? "a loop around atomicCAS" : std::string(leaf(a.call->name.str()))) +
                             " sums in " + std::string(label(a.dtype)) + ": a sum of ones stops growing at " +
                             stalls_at(a.dtype) +
                             ", and the order of additions changes the result from run to run",
                  .fix = "add into a float buffer and convert it once",
                  .notes = {},
                  .function = {}},
                 out);
    }
}

}  // namespace

extern constinit const Rule kHalfAtomic{.id = "MP403",
                                        .name = "half-atomic",
                                        .severity = Severity::warning,
                                        .on_by_default = true,
                                        .confirmed_by = "MPT010",
                                        .triggers = Triggers::cpp_only(),
                                        .check = check};

}  // namespace mp::lint
