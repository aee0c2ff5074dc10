// MP101 manual-cast-in-autocast
//
// What   A tensor is cast to fp16 or bf16 by hand in a place that runs inside an autocast region.
// Why    Autocast chooses the dtype op by op; a value that is half already stays half where the
//        region would have computed in fp32, and the gradient of the cast is half too.
// Fix    Drop the cast; the region casts what should be half.
// Silent Upcasts; functions that ask for the autocast state first; gradient-free scopes; casts
//        whose result goes straight to a raw pointer (a custom kernel that autocast does not know);
//        disabled regions.
// Tests  testdata/lint/MP101.md, tests/analyzer/rules/manual_cast_in_autocast_test.cpp

#include <algorithm>
#include <array>

#include "analyzer/rules/regions.hpp"
#include "analyzer/rules/support.hpp"

namespace mp::lint {
namespace {

bool is_cast_to_half(const Call& call) {
    constexpr std::array<std::string_view, 7> kCasts{"to",   "half",    "bfloat16", "toType",
                                                     "type", "type_as", "_to_copy"};
    return call.result.shape == Shape::tensor && is_half(call.result.dtype) &&
           any_of(leaf(call.name.str()), kCasts);
}

bool feeds_a_pointer(const Function& f, const Call& cast) {
    const auto index = static_cast<std::int32_t>(&cast - f.calls.data());
    constexpr std::array<std::string_view, 6> kPointers{"data_ptr",          "mutable_data_ptr",
                                                        "const_data_ptr",    "packed_accessor32",
                                                        "packed_accessor64", "data"};
    return std::ranges::any_of(f.calls, [&](const Call& c) {
        return !c.args.empty() && c.args[0].call == index && any_of(leaf(c.name.str()), kPointers);
    });
}

void check(const RuleContext& context, Findings& out) {
    for_each(context, &Function::calls, [&](const Function& f, const Call& call) {
        if (!is_cast_to_half(call)) return;
        const Context* region = context.program.enabled_context(f, call);
        if (!region || region->enabled != Switch::on) return;
        if (reads_autocast_state(f) || is_inference(f) || feeds_a_pointer(f, call)) return;
        emit(context, f,
             {.rule = "MP101",
              .severity = Severity::warning,
              .span = call.span,
              .message =
                  "cast to " + std::string(label(call.result.dtype)) + " by hand inside " +
                  describe(*region) +
                  ": later ops that the region runs in fp32 get a value that is already rounded",
              .fix = "drop the cast; autocast casts the inputs of the ops that should run in half",
              .notes = notes_of(*region),
              .function = {}},
             out);
    });
}

}  // namespace

extern constinit const Rule kManualCastInAutocast{.id = "MP101",
                                                  .name = "manual-cast-in-autocast",
                                                  .severity = Severity::warning,
                                                  .on_by_default = true,
                                                  .confirmed_by = "MPT060",
                                                  .check = check};

}  // namespace mp::lint
