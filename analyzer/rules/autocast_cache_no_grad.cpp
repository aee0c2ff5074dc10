// MP112 autocast-cache-no-grad
//
// What   Inside one autocast region the same module runs without gradients first and with gradients
//        later.
// Why    The first call caches half copies of the weights that carry no graph, and the second one
//        uses them: its weights get no gradient. Fixed in PyTorch at the end of 2025.
// Fix    One region for each, or torch.clear_autocast_cache() between them.
// Silent Separate regions, a clear between, cache_enabled=False, different modules.
// Tests  testdata/lint/MP112.md, tests/analyzer/rules/autocast_cache_no_grad_test.cpp

#include <algorithm>
#include <array>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/autocast_calls.hpp"
#include "analyzer/analyses/regions.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

// The first version whose cache knows about gradients.
constexpr TorchVersion kFixed{2, 10};

constexpr std::array<std::string_view, 3> kRunsModule{"forward", "__call__", "operator()"};

bool runs_module(const Call& call) {
    return call.kind == CallKind::method && !call.args.empty() && !call.args[0].name.empty() &&
           any_of(leaf(call.name.str()), kRunsModule);
}

bool is_proven_module(const Call& call) {
    return call.args[0].shape == Shape::module || leaf(call.name.str()) == "forward";
}

const Context* region_with(const Program& program, const Function& f, const Call& call, Switch grad) {
    for (const Context& context : program.contexts(f, call))
        if (context.enabled == Switch::on && context.grad == grad) return &context;
    return nullptr;
}

void check_first(const RuleContext& context, const Function& f, const Call& first, Findings& out) {
    const auto index = static_cast<std::size_t>(&first - f.calls.data());
    const Context* region = region_with(context.program, f, first, Switch::off);
    if (!region || is_uncached(f, *region)) return;
    for (const std::size_t i : calls_until(f, index, clears_autocast_cache).calls) {
        const Call& later = f.calls[i];
        if (!runs_module(later) || later.args[0].name != first.args[0].name) continue;
        const Context* same = region_with(context.program, f, later, Switch::on);
        if (!same || same->opened != region->opened) continue;
        const bool proven = region->proven && same->proven && is_proven_module(first);
        const Severity severity = !context.older_than(kFixed) ? Severity::note
                                  : proven                    ? Severity::error
                                                              : Severity::warning;
        std::vector<Note> notes = notes_of(*same);
        notes.push_back({first.span, "cached here without a graph"});
        emit(context, f,
             {.rule = "MP112",
              .severity = severity,
              .span = later.span,
              .message = quoted(first.args[0].name.str()).substr(1) +
                         " ran without gradients in the same autocast region before: before "
                         "PyTorch 2.10 its weights get no gradient here",
              .fix = "use a region for each call, or torch.clear_autocast_cache() between them",
              .notes = std::move(notes),
              .function = {}},
             out);
        return;
    }
}

void check(const RuleContext& context, Findings& out) {
    if (context.inference) return;
    for_each_call(context.program, last_part_in(kRunsModule), [&](const Function& f, const Call& call) {
        if (runs_module(call)) check_first(context, f, call, out);
    });
}

}  // namespace

extern constinit const Rule kAutocastCacheNoGrad{.id = "MP112",
                                                 .name = "autocast-cache-no-grad",
                                                 .severity = Severity::error,
                                                 .on_by_default = true,
                                                 .confirmed_by = "MPT060",
                                                 .triggers = {kRegions, kEngines},
                                                 .check = check};

}  // namespace mp::lint
