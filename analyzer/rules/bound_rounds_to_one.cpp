// MP310 bound-rounds-to-one
//
// What   A clamp of an fp16, bf16 or fp8 tensor has a bound just below 1 that is 1 in that format:
//        clamp(p, max=1 - 1e-4).
// Why    It bounds nothing: fp16 has no number between 0.9995 and 1, bf16 none between 0.996 and 1. log(1 - p),
//        acos(p) and atanh(p) behind it are infinite, and so are their gradients.
// Fix    Clamp in fp32, p.float().clamp(...), or compute from the logits: logsigmoid.
// Silent Bounds that the format holds, tensors in fp32 or of unknown dtype. A note where no op that is infinite at 1
//        is seen in the function.
// Tests  testdata/lint/MP310.md, tests/analyzer/rules/bound_rounds_to_one_test.cpp

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "analyzer/analyses/constants.hpp"
#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/numbers.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

bool rounds_to_one(const ConstantUse& use) {
    const DType dtype = use.dtype == DType::lowp ? DType::bf16 : use.dtype;
    return use.role == Role::clamp && std::fabs(use.value) < 1 && std::fabs(rounded(dtype, use.value)) == 1;
}

// What is infinite at 1 itself, and what is so of the distance to 1.
bool ends_at_one(const Call& call) {
    constexpr std::array<std::string_view, 5> kOps{"acos", "asin", "atanh", "logit", "erfinv"};
    return any_of(call.op.name(), kOps);
}

bool ends_at_zero(const Call& call) {
    constexpr std::array<std::string_view, 6> kOps{"log", "log2", "log10", "reciprocal", "rsqrt", "div"};
    return any_of(call.op.name(), kOps);
}

// What takes the bounded value, or its distance to 1, where that is infinite; nullptr: nothing in the function.
const Call* infinite_at(const Function& f, const Call& clamp) {
    struct Value {
        std::int32_t call;
        bool is_distance;
    };
    std::vector<Value> values{{index_of(f, clamp), false}};
    for (const Call& call : f.calls) {
        if (&call <= &clamp) continue;
        for (std::size_t at = 0; at < call.args.size(); ++at) {
            const auto value = std::ranges::find(values, call.args[at].call, &Value::call);
            if (call.args[at].call == kNone || value == values.end()) continue;
            const bool divides = call.op.name() == "div" && at == 0;
            if (value->is_distance ? ends_at_zero(call) && !divides : ends_at_one(call)) return &call;
            const bool is_distance =
                value->is_distance || call.op.name() == "sub" || call.op.name() == "rsub";
            if (only_moves(call) || is_distance != value->is_distance)
                values.push_back({index_of(f, call), is_distance});
        }
    }
    return nullptr;
}

void check(const RuleContext& context, Findings& out) {
    for (const ConstantUse& use : constant_uses(context)) {
        if (!use.call || !use.constant || !rounds_to_one(use)) continue;
        const Call* end = infinite_at(*use.function, *use.call);
        std::vector<Note> notes;
        if (end) notes.push_back({end->span, std::string(end->op.name()) + " is infinite there"});
        notes.insert(notes.end(), use.notes.begin(), use.notes.end());
        emit(context, *use.function,
             {.rule = "MP310",
              .severity = end ? Severity::warning : Severity::note,
              .span = use.span,
              .message = "the bound " + shown(use.value, 5) + " is " + (use.value < 0 ? "-1" : "1") + " in " +
                         std::string(label(use.dtype)) + ", so that it bounds nothing",
              .fix = "clamp in fp32 (.float()), or compute from the logits",
              .notes = std::move(notes),
              .function = {}},
             out);
    }
}

}  // namespace

extern constinit const Rule kBoundRoundsToOne{.id = "MP310",
                                              .name = "bound-rounds-to-one",
                                              .severity = Severity::warning,
                                              .on_by_default = true,
                                              .confirmed_by = "MPT001",
                                              .triggers = {kLowDtypes, kRegions, kEngines},
                                              .check = check};

}  // namespace mp::lint
