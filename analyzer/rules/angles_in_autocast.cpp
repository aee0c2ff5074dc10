// MP124 angles-in-autocast
//
// What   A product inside an autocast region gives angles: of positions and frequencies, whose cosine or sine is taken.
// Why    Autocast casts the positions to the region's dtype: from 256 on in bf16 and from 2048 on in fp16 neighbours
//        become equal, and an angle of n is off by up to n / 256. Far positions get the rotation of others.
// Fix    torch.outer(), which autocast leaves alone, or the product in a region with enabled=False.
// Silent Products outside of regions and in disabled ones, ops that the region's list does not lower, fp64 operands,
//        which autocast does not cast. Angles of what is not known to be positions, and of few of them, are a note.
// Tests  testdata/lint/MP124.md, tests/analyzer/rules/angles_in_autocast_test.cpp

#include <algorithm>
#include <array>
#include <cmath>

#include "analyzer/analyses/angles.hpp"
#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/module_dtypes.hpp"
#include "analyzer/analyses/numbers.hpp"
#include "analyzer/analyses/python_code.hpp"
#include "analyzer/analyses/regions.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/trials.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

bool is_product(std::string_view op) {
    constexpr std::array<std::string_view, 4> kProducts{"matmul", "bmm", "mm", "einsum"};
    return any_of(op, kProducts);
}

const Call* made_by_arange(const Function& f, const Operand& operand) {
    return origin(f, operand, [](const Call& call) { return leaf(call.name.str()) == "arange"; });
}

// The region's dtype counts them all.
bool are_few(const Call& arange, DType dtype) {
    const Operand* last = nullptr;
    for (const Operand& o : arange.args)
        if (o.keyword.empty()) last = &o;
    const auto number = last ? number_of(*last) : std::nullopt;
    return number && std::fabs(*number) <= std::exp2(significant_bits(dtype));
}

// arange(seq_len), position_ids[:, None, :].float()
bool holds_positions(const Function& f, const Operand& operand, DType dtype) {
    if (const Call* made = made_by_arange(f, operand)) return !are_few(*made, dtype);
    return derives_from(f, operand, [](const Operand& o) { return mentions(leaf(o.name.str()), "pos"); });
}

void check_product(const RuleContext& context, TensorDTypes& dtypes, const Function& f, const Call& product,
                   Findings& out) {
    const Context* region = lowering_region(context, f, product);
    if (!region) return;
    const Call* taken = angle_taken(f, product);
    if (!taken || handles_autocast(f)) return;
    const bool is_fp64 = std::ranges::any_of(
        product.args, [&](const Operand& o) { return dtypes.of(f, o).dtype == DType::fp64; });
    if (is_fp64) return;
    const bool of_positions = std::ranges::any_of(
        product.args, [&](const Operand& o) { return holds_positions(f, o, region->dtype); });
    const bool is_open = region->proven || !region->condition.empty();
    const bool is_sure = of_positions && is_open && !is_opened_by_a_trial(context, *region);
    const std::string dtype(label(region->dtype));
    std::vector<Note> notes{{taken->span, "the angles are taken here"}};
    for (Note& note : notes_of(*region)) notes.push_back(std::move(note));
    emit(context, f,
         {.rule = "MP124",
          .severity = is_sure ? Severity::warning : Severity::note,
          .span = product.span,
          .message = std::string(product.op.name()) + " of angles runs in " + dtype + " in " +
                     describe(*region) + ": positions from " +
                     shown(std::exp2(significant_bits(region->dtype))) +
                     " on are rounded, and their angles with them",
          .fix = "use torch.outer, or leave the region: with torch.autocast(device_type, enabled=False)",
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

extern constinit const Rule kAnglesInAutocast{.id = "MP124",
                                              .name = "angles-in-autocast",
                                              .severity = Severity::warning,
                                              .on_by_default = true,
                                              .confirmed_by = "MPT015",
                                              .triggers = {kRegions, kEngines},
                                              .check = check};

}  // namespace mp::lint
