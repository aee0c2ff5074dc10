// MP123 upcast-undone-by-autocast
//
// What   Inside an autocast region a product gets operands that the program has just cast to fp32, and autocast casts
//        them back: x.float() @ w.float().
// Why    Whoever wrote the casts wanted the product in fp32. It has the 8 or 11 bits of the region, overflows from
//        65520 on in fp16, and the casts only cost time.
// Fix    Leave the region for this product: with torch.autocast(device_type, enabled=False).
// Silent Ops that the region's list does not lower; casts to fp64, which autocast leaves alone; disabled regions;
//        functions that ask for the autocast state or that custom_fwd decorates. A note: one operand whose dtype before
//        the cast is not known, which may have been one of integers; a region whose way is not proven, or that a test
//        opens.
// Tests  testdata/lint/MP123.md, tests/analyzer/rules/upcast_undone_by_autocast_test.cpp

#include <algorithm>
#include <array>
#include <vector>

#include "analyzer/analyses/angles.hpp"
#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/module_dtypes.hpp"
#include "analyzer/analyses/python_code.hpp"
#include "analyzer/analyses/regions.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/trials.hpp"
#include "analyzer/rules/rule.hpp"
#include "kernels/numerics/op_traits.hpp"

namespace mp::lint {
namespace {

bool is_product(std::string_view op) {
    constexpr std::array<std::string_view, 9> kProducts{
        "matmul", "mm", "bmm", "addmm", "baddbmm", "linear", "einsum", "mv", "scaled_dot_product_attention"};
    return any_of(op, kProducts);
}

bool casts_to_fp32(const Call& call) {
    constexpr std::array<std::string_view, 3> kCasts{"float", "to", "type"};
    return call.kind == CallKind::method && !call.args.empty() && call.result.dtype == DType::fp32 &&
           any_of(leaf(call.name.str()), kCasts) && call.args.front().shape != Shape::module;
}

// x.float(), x.to(torch.float32), a view of it, or what ops made of it that keep its dtype: x.float().sigmoid();
// nullptr: anything else.
const Call* upcast_of(const Function& f, const Operand& operand) {
    constexpr int kMostOps = 3;
    const Operand* at = &operand;
    for (int i = 0; i <= kMostOps; ++i) {
        const Call* made = call_of(f, moved_from(f, *at));
        if (!made || casts_to_fp32(*made)) return made;
        if (made->args.empty() || !traits_of(made->op).has(Trait::keeps)) return nullptr;
        at = &made->args.front();
    }
    return nullptr;
}

struct Upcasts {
    std::vector<const Call*> casts;  // each once
    int operands = 0;
    bool from_low = false;  // the value was half before
};

Upcasts upcasts_of(TensorDTypes& dtypes, const Function& f, const Call& product) {
    Upcasts found;
    for (const Operand& operand : product.args) {
        const Call* cast = upcast_of(f, operand);
        if (!cast) continue;
        ++found.operands;
        if (std::ranges::find(found.casts, cast) == found.casts.end()) found.casts.push_back(cast);
        const DType was = dtypes.of(f, cast->args.front()).dtype;
        if (is_integer(was) || was == DType::boolean) return {};
        found.from_low = found.from_low || is_low_precision(was);
    }
    return found;
}

void check_product(const RuleContext& context, TensorDTypes& dtypes, const Function& f, const Call& product,
                   Findings& out) {
    const Context* region = lowering_region(context, f, product);
    if (!region) return;
    const Upcasts upcasts = upcasts_of(dtypes, f, product);
    // MP124 has products of angles.
    if (upcasts.casts.empty() || handles_autocast(f) || angle_taken(f, product)) return;
    const bool is_meant = upcasts.from_low || upcasts.operands > 1;
    // A flag that opens the region is a way to run the program.
    const bool is_open = region->proven || !region->condition.empty();
    const bool is_sure = is_meant && is_open && !is_opened_by_a_trial(context, *region);
    std::vector<Note> notes;
    for (const Call* cast : upcasts.casts) notes.push_back({cast->span, "cast to fp32 here"});
    for (Note& note : notes_of(*region)) notes.push_back(std::move(note));
    emit(context, f,
         {.rule = "MP123",
          .severity = is_sure ? Severity::warning : Severity::note,
          .span = product.span,
          .message = "operands of " + std::string(product.op.name()) + " are cast to fp32, and " +
                     describe(*region) + " casts them back: it runs in " + std::string(label(region->dtype)),
          .fix = "leave the region for this product: with torch.autocast(device_type, enabled=False)",
          .notes = std::move(notes),
          .function = {}},
         out);
}

void check(const RuleContext& context, Findings& out) {
    ModuleDTypes modules(context, DTypeOf::output);
    for_each_op(context.program, is_product, [&](const Function& f, const Call& call) {
        check_product(context, modules.tensors(), f, call, out);
    });
}

}  // namespace

extern constinit const Rule kUpcastUndoneByAutocast{.id = "MP123",
                                                    .name = "upcast-undone-by-autocast",
                                                    .severity = Severity::warning,
                                                    .on_by_default = true,
                                                    .confirmed_by = "",
                                                    .triggers = {kRegions, kEngines},
                                                    .check = check};

}  // namespace mp::lint
