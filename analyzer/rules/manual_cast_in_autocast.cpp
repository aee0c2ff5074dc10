// MP101 manual-cast-in-autocast
//
// What   A tensor is cast to fp16 or bf16 by hand in a place that runs inside an autocast region, or
//        a module is, that runs in one later.
// Why    Autocast chooses the dtype op by op; a value that is half already stays half where the
//        region would have computed in fp32, and the gradient of the cast is half too.
// Fix    Drop the cast; the region casts what should be half.
// Silent Upcasts; functions that ask for the autocast state first, or that custom_fwd decorates;
//        gradient-free scopes; tests, which compare precisions; casts
//        whose result goes straight to a raw pointer (a custom kernel that autocast does not know);
//        disabled regions.
// Tests  testdata/lint/MP101.md, tests/analyzer/rules/manual_cast_in_autocast_test.cpp

#include <algorithm>
#include <array>
#include <unordered_set>

#include "analyzer/rules/autograd_classes.hpp"
#include "analyzer/rules/python_code.hpp"
#include "analyzer/region/arguments.hpp"
#include "analyzer/rules/regions.hpp"
#include "analyzer/rules/support.hpp"

namespace mp::lint {
namespace {

bool is_cast_to_half(const Call& call) {
    constexpr std::array<std::string_view, 7> kCasts{"to",   "half",    "bfloat16", "toType",
                                                     "type", "type_as", "_to_copy"};
    return is_half(call.result.dtype) && call.kind != CallKind::constructor &&
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

// The region in which the cast matters: open, and with gradients.
const Context* training_region(const RuleContext& context, const Function& f, const Call& call) {
    for (const Context& region : context.program.contexts(f, call))
        // In C++ a gradient-free scope is looked for in the function itself (is_inference).
        if (region.enabled == Switch::on && (region.grad != Switch::off || !is_python(f)))
            return &region;
    return nullptr;
}

bool knows_what_it_does(const Function& f) {
    return reads_autocast_state(f) || is_inference(f) || has_decorator(f, "custom_fwd") ||
           has_decorator(f, "custom_bwd");
}

// `x.half()` without the call: from the end of the receiver to the end.
std::vector<Edit> removal(const Call& call) {
    if (call.kind != CallKind::method || call.args.empty()) return {};
    const std::string_view name = leaf(call.name.str());
    const bool is_only_a_cast =
        name == "half" || name == "bfloat16" ||
        (name == "to" && call.args.size() == 2 && call.args[1].shape == Shape::dtype);
    const SourceSpan& receiver = call.args[0].span;
    if (!is_only_a_cast || !receiver.known() || receiver.end_column == 0 ||
        call.span.end_column == 0)
        return {};
    SourceSpan at = call.span;
    at.line = receiver.end_line;
    at.column = receiver.end_column;
    return {{at, ""}};
}

void report(const RuleContext& context, const Function& f, const Call& cast, const Context& region,
            std::string message, std::vector<Edit> edits, Findings& out) {
    Finding finding{
        .rule = "MP101",
        .severity = Severity::warning,
        .span = cast.span,
        .message = std::move(message),
        .fix = "drop the cast; autocast casts the inputs of the ops that should run in half",
        .notes = notes_of(region),
        .function = {}};
    finding.edits = std::move(edits);
    finding.safe_edits = !finding.edits.empty();
    emit(context, f, std::move(finding), out);
}

void check_cast(const RuleContext& context, const Function& f, const Call& call, Findings& out) {
    if (call.result.shape != Shape::tensor && call.result.shape != Shape::other) return;
    const Context* region = training_region(context, f, call);
    if (!region || knows_what_it_does(f) || feeds_a_pointer(f, call)) return;
    report(context, f, call, *region,
           "cast to " + std::string(label(call.result.dtype)) + " by hand inside " +
               describe(*region) +
               ": later ops that the region runs in fp32 get a value that is already rounded",
           removal(call), out);
}

// The cast of a module that this call runs: `net = net.half()`, or `net.half()` before it.
const Call* module_cast(const Function& f, const Call& run) {
    const Operand& module = run.args[0];
    if (module.shape != Shape::module || !is_half(module.dtype)) return nullptr;
    const Call* found = nullptr;
    for (const Call& call : f.calls) {
        if (&call == &run) break;
        if (!is_cast_to_half(call) || call.result.shape != Shape::module || call.args.empty())
            continue;
        const bool is_same = (!module.name.empty() && (call.args[0].name == module.name ||
                                                       call.result.name == module.name)) ||
                             module.call == static_cast<std::int32_t>(&call - f.calls.data());
        if (is_same) found = &call;
    }
    return found;
}

void check_module(const RuleContext& context, const Function& f, const Call& call,
                  std::unordered_set<const Call*>& reported, Findings& out) {
    if (call.kind != CallKind::method || call.args.empty()) return;
    const std::string_view name = leaf(call.name.str());
    if (name != "forward" && name != "__call__") return;
    const Call* cast = module_cast(f, call);
    const Context* region = cast ? training_region(context, f, call) : nullptr;
    if (!region || knows_what_it_does(f) || !reported.insert(cast).second) return;
    report(context, f, *cast, *region,
           "the weights are cast to " + std::string(label(cast->result.dtype)) +
               " and the module then runs inside " + describe(*region) +
               ": autocast needs fp32 weights",
           {}, out);
}

void check(const RuleContext& context, Findings& out) {
    if (context.inference) return;
    std::unordered_set<const Call*> reported;
    for_each(context, &Function::calls, [&](const Function& f, const Call& call) {
        if (code_kind(f.span.file.str()) == CodeKind::test) return;  // compares precisions
        if (is_cast_to_half(call)) check_cast(context, f, call, out);
        check_module(context, f, call, reported, out);
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
