// MP115 custom-op-without-autocast-kernel
//
// What   A custom op of several tensors (torch.library.custom_op) is called inside a region and has
//        no autocast rule.
// Why    Autocast passes an op it does not know through: the op gets fp32 and half inputs side by
//        side, as the ops before it left them.
// Fix    torch.library.register_autocast("ns::op", "cuda", dtype).
// Silent Ops of one tensor; ops with an autocast rule; ops never called in a region; bodies that
//        cast their inputs.
// Tests  testdata/lint/MP115.md, tests/analyzer/rules/custom_op_without_autocast_kernel_test.cpp

#include <algorithm>
#include <array>
#include <string>
#include <unordered_set>

#include "analyzer/rules/arguments.hpp"
#include "analyzer/rules/regions.hpp"
#include "analyzer/rules/support.hpp"

namespace mp::lint {
namespace {

// "ns::op" of the decorator torch.library.custom_op('ns::op', ...); empty for other functions.
std::string custom_op(const Function& f) {
    constexpr std::string_view kDecorator = "torch.library.custom_op('";
    for (const Symbol annotation : f.annotations) {
        std::string_view text = annotation.str();
        if (!text.starts_with(kDecorator)) continue;
        text.remove_prefix(kDecorator.size());
        return std::string(text.substr(0, text.find('\'')));
    }
    return {};
}

bool takes_tensors(const Function& f) {
    return std::ranges::count(f.params, Shape::tensor, &Parameter::shape) >= 2;
}

bool casts(const Function& f) {
    constexpr std::array<std::string_view, 5> kCasts{"float", "to", "type_as", "half", "bfloat16"};
    return std::ranges::any_of(
        f.calls, [&](const Call& call) { return any_of(leaf(call.name.str()), kCasts); });
}

// The ops that register_autocast names, by string or as a method of the op.
std::unordered_set<std::string> registered(const RuleContext& context) {
    std::unordered_set<std::string> names;
    for_each(context, &Function::calls, [&](const Function&, const Call& call) {
        if (leaf(call.name.str()) != "register_autocast" || call.args.empty()) return;
        const Operand& op = call.args[0];
        names.emplace(op.constant.empty() ? leaf(op.name.str()) : spelled(op));
    });
    return names;
}

// A call of the op in an enabled region, by its function or through torch.ops.
const Context* region_of_use(const RuleContext& context, const Function& f, const std::string& op) {
    for (const Call* call : context.program.callers(f.usr))
        if (const Function* caller = context.program.owner(*call))
            if (const Context* region = context.program.enabled_context(*caller, *call))
                return region;
    std::string path = "torch.ops." + op;
    if (const std::size_t colons = path.find("::"); colons != std::string::npos)
        path.replace(colons, 2, ".");
    for (const Function* caller : context.program.functions())
        for (const Call& call : caller->calls)
            if (call.name.str() == path)
                if (const Context* region = context.program.enabled_context(*caller, call))
                    return region;
    return nullptr;
}

void check(const RuleContext& context, Findings& out) {
    std::unordered_set<std::string> known;
    bool is_read = false;
    for (const Function* f : context.program.functions()) {
        const std::string op = custom_op(*f);
        if (op.empty() || !takes_tensors(*f) || casts(*f)) continue;
        if (!is_read) known = registered(context);
        is_read = true;
        if (known.contains(op) || known.contains(std::string(leaf(f->name.str())))) continue;
        const Context* region = region_of_use(context, *f, op);
        if (!region) continue;
        emit(context, *f,
             {.rule = "MP115",
              .severity = Severity::note,
              .span = f->span,
              .message = "custom op " + op + " has no autocast rule and runs inside " +
                         describe(*region) + ": its inputs keep whatever dtypes they have",
              .fix = "call torch.library.register_autocast for it",
              .notes = notes_of(*region),
              .function = {}},
             out);
    }
}

}  // namespace

extern constinit const Rule kCustomOpWithoutAutocastKernel{
    .id = "MP115",
    .name = "custom-op-without-autocast-kernel",
    .severity = Severity::note,
    .on_by_default = true,
    .confirmed_by = "MPT060",
    .check = check};

}  // namespace mp::lint
