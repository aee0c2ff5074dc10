// MP606 lost-cast
//
// What   In a loop over the parameters, buffers or state of a module, one of them is cast and the
//        result is dropped: `p = p.float()`, `p.data.half()` alone, or `p.to_(dtype)`, which no tensor has.
//        Also a statement that casts any other tensor and does nothing else: `grad_output.half()`.
// Why    A cast of a tensor makes a new tensor. The assignment binds the variable of the loop, and the
//        module keeps its tensor in the old dtype, although the code reads as if it were cast.
// Fix    p.data = p.data.float(), or module.float(); for a state, state[name] = value.float().
// Silent A result that is read afterwards; modules, which a cast changes in place; casts to a dtype
//        that is not known; values that may be modules. A value that had the dtype before is a note.
// Tests  testdata/lint/MP606.md, tests/analyzer/rules/lost_cast_test.cpp

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "analyzer/analyses/autograd_classes.hpp"
#include "analyzer/analyses/module_operands.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/tensor_dtypes.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

constexpr std::array<std::string_view, 7> kCasts{"to", "to_", "type", "half", "float", "bfloat16", "double"};

DType cast_to(const Call& call) {
    if (is_float(call.result.dtype)) return call.result.dtype;
    for (const Operand& o : call.args)
        if (o.shape == Shape::dtype) return o.dtype;
    return DType::unknown;
}

// A tensor of what this call lists, as the user calls it.
struct Held {
    std::string_view what;
    std::string_view fix;
};
Held held_by(const Call& listing) {
    const std::string_view method = leaf(listing.name.str());
    if (method == "items" || method == "values")
        return {.what = "the dictionary keeps its tensor", .fix = "store the result under its key again"};
    if (method == "buffers" || method == "named_buffers")
        return {.what = "the module keeps its buffer", .fix = "assign to its .data, or cast the module"};
    return {.what = "the module keeps its parameter", .fix = "assign to its .data, or cast the module"};
}

// parameters(), list(net.buffers()), state_dict().items(). Any other list may hold modules, which a cast changes in
// place.
bool lists_tensors(const Function& f, const Call& listing) {
    constexpr std::array<std::string_view, 5> kTensors{"parameters", "named_parameters", "buffers",
                                                       "named_buffers", "state_dict"};
    constexpr std::array<std::string_view, 4> kModules{"modules", "named_modules", "children",
                                                       "named_children"};
    constexpr int kDeepest = 3;
    const Call* at = &listing;
    if (any_of(leaf(listing.name.str()), kModules)) return false;
    for (int step = 0; at && step < kDeepest; ++step) {
        if (any_of(leaf(at->name.str()), kTensors)) return true;
        at = at->args.empty() ? nullptr : call_of(f, at->args.back());
    }
    return false;
}

// The arguments of an autograd.Function's own methods, behind ctx, are tensors when they are cast.
bool is_autograd_argument(const Function& f, const Operand& value, const std::set<Symbol>& autograd) {
    return value.param > 0 && autograd.contains(f.parent_class);
}

// `x.half()` as a statement of its own, for a value that cannot be a module.
std::optional<Held> statement_of(const Function& f, const Call& call, const std::set<Symbol>& autograd) {
    const Operand& value = call.args.front();
    if (!call.result.name.empty() || call.kind != CallKind::method) return std::nullopt;
    if (value.shape != Shape::tensor && !is_autograd_argument(f, value, autograd)) return std::nullopt;
    const bool moves = leaf(call.name.str()) == "to" && std::ranges::none_of(call.args, [](const Operand& o) {
                           return o.shape == Shape::dtype;
                       });
    if (value.name.empty() || moves) return std::nullopt;
    return Held{.what = "the variable keeps its tensor", .fix = "bind the result: x = x.to(...)"};
}

// fp32 zeros, cast to fp32: the line does nothing, and nothing is lost by that.
bool had_the_dtype(TensorDTypes& dtypes, const Function& f, const Call& call, DType dtype) {
    const TensorDType before = dtypes.of(f, call.args.front());
    return before.dtype == dtype && before.proven;
}

void check_cast(const RuleContext& context, TensorDTypes& dtypes, const Function& f, const Call& call,
                const std::set<Symbol>& autograd, Findings& out) {
    const bool no_method = leaf(call.name.str()) == "to_";
    if ((!call.unused && !no_method) || !is_python(f) || call.args.empty()) return;
    const DType dtype = cast_to(call);
    if (!is_float(dtype) && !no_method) return;
    const Call* listing = listing_of(f, call.args.front());
    const bool listed = listing && lists_tensors(f, *listing);
    const auto held = listed ? std::optional(held_by(*listing)) : statement_of(f, call, autograd);
    if (!held || (no_method && !listed)) return;
    emit(context, f,
         {.rule = "MP606",
          .severity = !no_method && had_the_dtype(dtypes, f, call, dtype) ? Severity::note : Severity::error,
          .span = call.span,
          .message = no_method ? "a tensor has no method to_(): " + std::string(held->what) + " as it is"
                               : "nothing reads the tensor that this cast to " + std::string(label(dtype)) +
                                     " makes: " + std::string(held->what) + " as it is",
          .fix = std::string(held->fix),
          .notes = {},
          .function = {}},
         out);
}

void check(const RuleContext& context, Findings& out) {
    std::set<Symbol> autograd;
    for (const AutogradClass& known : autograd_classes(context.program)) autograd.insert(known.name);
    TensorDTypes dtypes(context);
    for_each_call(context.program, last_part_in(kCasts), [&](const Function& f, const Call& call) {
        check_cast(context, dtypes, f, call, autograd, out);
    });
}

}  // namespace

extern constinit const Rule kLostCast{.id = "MP606",
                                      .name = "lost-cast",
                                      .severity = Severity::error,
                                      .on_by_default = true,
                                      .confirmed_by = "",
                                      .triggers = {kLowDtypes},
                                      .check = check};

}  // namespace mp::lint
