// MP114 custom-function-without-custom-fwd
//
// What   An autograd.Function that multiplies in forward and again, with saved tensors, in backward,
//        or that calls a compiled extension, is applied in a region and does not set its
//        precision; or it has custom_fwd without custom_bwd, or beside setup_context.
// Why    Forward runs under autocast and saves what it got, backward runs without: the product gets
//        a half gradient and an fp32 tensor and throws, or the extension reads the wrong type.
// Fix    @custom_fwd(device_type="cuda") on forward and @custom_bwd(device_type="cuda") on backward.
// Silent Elementwise, reshaping and communicating functions; functions that cast their inputs; those
//        only applied outside regions. A note: no custom_bwd on a backward without an op that a region decides about.
// Tests  testdata/lint/MP114.md, tests/analyzer/rules/custom_function_without_custom_fwd_test.cpp

#include <algorithm>
#include <array>
#include <unordered_map>

#include "analyzer/analyses/autograd_classes.hpp"
#include "analyzer/analyses/python_code.hpp"
#include "analyzer/analyses/regions.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

bool multiplies(const RuleContext& context, const Function& f) {
    return std::ranges::any_of(f.calls, [&](const Call& call) {
        return context.policy("cuda")->category(call.op) == Category::lower;
    });
}

// Whether the region would decide how an op of the function, or of one that it calls, computes.
bool has_listed_op(const RuleContext& context, const Function& f) {
    const auto is_listed = [&](const Call& call) {
        const Category category = context.policy("cuda")->category(call.op);
        return call.op.known() && category != Category::unlisted && category != Category::banned;
    };
    return std::ranges::any_of(f.calls, [&](const Call& call) {
        const Function* callee = context.program.definition(call.callee);
        return is_listed(call) || (callee && std::ranges::any_of(callee->calls, is_listed));
    });
}

bool calls_leaf(const Function& f, std::span<const std::string_view> names) {
    return std::ranges::any_of(f.calls,
                               [&](const Call& call) { return any_of(leaf(call.name.str()), names); });
}

bool saves(const Function& f) {
    constexpr std::array<std::string_view, 1> kSave{"save_for_backward"};
    return calls_leaf(f, kSave);
}

// It chooses the dtype itself.
bool casts(const Function& f) {
    constexpr std::array<std::string_view, 9> kCasts{"float",   "half",   "bfloat16", "to",         "type",
                                                     "type_as", "double", "toType",   "cached_cast"};
    return calls_leaf(f, kCasts) || reads_autocast_state(f);
}

// A custom op, or a function of a C++ extension of this program.
const Call* extension_call(const Program& program, const Function& f) {
    const auto found = std::ranges::find_if(f.calls, [&](const Call& call) {
        const std::string_view name = call.name.str();
        if (is_within(name, "torch.ops") && !is_within(name, "torch.ops.aten")) return true;
        const Function* callee = program.definition(call.callee);
        return f.kind == FunctionKind::python && callee && callee->kind != FunctionKind::python;
    });
    return found == f.calls.end() ? nullptr : &*found;
}

// Where each class is applied in an enabled region.
using Applications = std::unordered_map<Symbol, const Context*>;

constexpr std::array<std::string_view, 1> kApply{"apply"};

Applications applied_in_regions(const RuleContext& context) {
    Applications found;
    for_each_call(context.program, last_part_in(kApply), [&](const Function& f, const Call& call) {
        const std::string_view name = call.name.str();
        const bool is_cpp = name == "torch::autograd::Function::apply";
        if (is_cpp && call.template_args.empty()) return;
        const Symbol owner =
            is_cpp ? call.template_args.back().text : Symbol(name.substr(0, name.size() - 6));
        // apex replaces the functions of torch, in backward too.
        const Context* region = context.program.enabled_context(f, call);
        const bool counts = region && region->device.str() != "apex" &&
                            code_kind(context, region->opened.file) != CodeKind::test;
        if (counts) found.try_emplace(owner, region);
    });
    return found;
}

void report(const RuleContext& context, const Function& f, Severity severity, std::string message,
            std::string fix, std::vector<Note> notes, Findings& out) {
    emit(context, f,
         {.rule = "MP114",
          .severity = severity,
          .span = f.span,
          .message = std::move(message),
          .fix = std::move(fix),
          .notes = std::move(notes),
          .function = {}},
         out);
}

void check_decorated(const RuleContext& context, const AutogradClass& is, Findings& out) {
    if (is.has_setup_context)
        report(context, *is.forward, Severity::warning,
               "custom_fwd does not work with a separate setup_context: it runs outside of it",
               "save what backward needs in forward(ctx, ...)", {}, out);
    else if (is.backward && !has_decorator(*is.backward, "custom_bwd"))
        report(context, *is.backward,
               has_listed_op(context, *is.backward) ? Severity::warning : Severity::note,
               "forward has custom_fwd and backward no custom_bwd: backward runs in another "
               "autocast state than forward",
               "decorate backward with custom_bwd", {{is.forward->span, "custom_fwd is here"}}, out);
}

void check_plain(const RuleContext& context, const AutogradClass& is, const Context& region, Findings& out) {
    const Function& forward = *is.forward;
    if (casts(forward) || (is.backward && casts(*is.backward))) return;
    const bool products =
        multiplies(context, forward) && saves(forward) && is.backward && multiplies(context, *is.backward);
    const Call* extension = extension_call(context.program, forward);
    if (!products && !extension) return;
    std::vector<Note> notes = notes_of(region);
    if (extension) notes.push_back({extension->span, "calls the extension"});
    const bool is_python = forward.kind == FunctionKind::python;
    // A compiled extension takes its dtypes or refuses them aloud.
    report(context, forward, products ? Severity::warning : Severity::note,
           "this autograd function runs inside " + describe(region) + " without custom_fwd: " +
               (products ? "backward multiplies what forward saved with a gradient of another dtype"
                         : "the extension gets whatever dtype the region left"),
           is_python ? "decorate forward with custom_fwd and backward with custom_bwd"
                     : "cast the inputs at the start of forward, and run it with autocast excluded",
           std::move(notes), out);
}

void check(const RuleContext& context, Findings& out) {
    const auto classes = autograd_classes(context.program);
    if (classes.empty()) return;
    const Applications applied = applied_in_regions(context);
    for (const AutogradClass& is : classes) {
        if (!is.forward) continue;
        if (has_decorator(*is.forward, "custom_fwd")) {
            check_decorated(context, is, out);
            continue;
        }
        const auto region = applied.find(is.name);
        if (region != applied.end()) check_plain(context, is, *region->second, out);
    }
}

// custom_fwd without custom_bwd is wrong in any region.
constexpr std::array<std::string_view, 2> kOwnTriggers{"custom_fwd", "custom_bwd"};

}  // namespace

extern constinit const Rule kCustomFunctionWithoutCustomFwd{.id = "MP114",
                                                            .name = "custom-function-without-custom-fwd",
                                                            .severity = Severity::warning,
                                                            .on_by_default = true,
                                                            .confirmed_by = "MPT060",
                                                            .triggers = {kRegions, kEngines, kOwnTriggers},
                                                            .check = check};

}  // namespace mp::lint
