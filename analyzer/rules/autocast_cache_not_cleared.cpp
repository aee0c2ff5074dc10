// MP111 autocast-cache-not-cleared
//
// What   C++ runs a module's forward inside an autocast region and then an optimizer step, with no
//        at::autocast::clear_cache() on the way. Python opens one region around the loop that trains.
// Why    Autocast keeps its half copies of the weights until Python's context manager leaves the outermost
//        region, and in C++ for ever. The next forward reads the copies of the old weights: the weights move
//        and the loss does not.
// Fix    at::autocast::clear_cache() where the region is closed. In Python, a region for each forward.
// Silent A clear on the way, also in a guard's destructor or a helper; the cache switched off; models in half,
//        whose weights are not cast, and in FullyShardedDataParallel, where weights are views, which are not
//        kept; programs without an optimizer step.
// Tests  testdata/lint/MP111.md, tests/analyzer/rules/autocast_cache_not_cleared_test.cpp

#include <array>
#include <unordered_set>

#include "analyzer/analyses/autocast_calls.hpp"
#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/module_dtypes.hpp"
#include "analyzer/analyses/protocol.hpp"
#include "analyzer/analyses/regions.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/region/calls.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

constexpr std::array<std::string_view, 1> kClear{"at::autocast::clear_cache"};

constexpr std::array<std::string_view, 2> kSetsCacheEnabled{"at::autocast::set_autocast_cache_enabled",
                                                            "at::autocast::set_cache_enabled"};

// The forward of a module of libtorch: what reads weights.
bool is_module_forward(std::string_view name) {
    if (!is_within(name, "torch::nn")) return false;
    if (mentions(name, "Impl::forward")) return true;
    return mentions(name, "ModuleHolder") && leaf(name) == "operator()";
}

bool is_step(const Call& call) {
    const std::string_view name = call.name.str();
    return leaf(name) == "step" && is_within(name, "torch::optim") && !mentions(name, "Scheduler");
}

class Search {
public:
    Search(const RuleContext& context, Findings& out) : context_(context), out_(out) {}

    void run() {
        if (cache_is_off()) return;
        find_clearing();
        const auto start = [this](const Function& f, const Call& call) {
            if (context_.program.enabled_context(f, call)) follow(f, call, call);
        };
        for_each_call(context_.program, is_module_forward, start);
        // A function that leaves with a stale cache is a forward of its callers.
        for (std::size_t at = 0; at < stale_.size(); ++at) {
            const auto [usr, forward] = stale_[at];
            for (const Call* call : context_.program.callers(usr))
                if (const Function* caller = context_.program.owner(*call)) follow(*caller, *call, *forward);
        }
    }

private:
    bool cache_is_off() const {
        bool off = false;
        for_each_call(context_.program, name_in(kSetsCacheEnabled), [&](const Function&, const Call& call) {
            off |= !call.args.empty() && call.args[0].constant.str() == "false";
        });
        return off;
    }

    // Functions that may clear, by themselves or through what they call.
    void find_clearing() {
        std::vector<Symbol> pending;
        const auto add = [&](const Function& f) {
            if (clearing_.insert(f.usr).second) pending.push_back(f.usr);
        };
        for_each_call(context_.program, name_in(kClear), [&](const Function& f, const Call&) { add(f); });
        while (!pending.empty()) {
            const Symbol usr = pending.back();
            pending.pop_back();
            for (const Call* call : context_.program.callers(usr))
                if (const Function* caller = context_.program.owner(*call)) add(*caller);
        }
    }

    bool clears(const Call& call) const {
        return call.name.str() == kClear[0] || (!call.callee.empty() && clearing_.contains(call.callee));
    }

    void follow(const Function& f, const Call& from, const Call& forward) {
        const auto index = static_cast<std::size_t>(&from - f.calls.data());
        // `if (amp) open(); forward(); if (amp) close();` closes whenever it opened.
        const Context* region = context_.program.enabled_context(f, from);
        const Symbol flag = region && region->chain.empty() ? region->condition : Symbol{};
        const Reached reached =
            calls_until(f, index, [this](const Call& call) { return clears(call); }, flag);
        for (const std::size_t i : reached.calls)
            if (is_step(f.calls[i])) report(f, f.calls[i], forward);
        if (reached.leaves && known_stale_.insert(f.usr).second) stale_.emplace_back(f.usr, &forward);
    }

    void report(const Function& f, const Call& step, const Call& forward) {
        if (!reported_.insert(&step).second) return;
        const Function* owner = context_.program.owner(forward);
        std::vector<Note> notes;
        if (const Context* region = owner ? context_.program.enabled_context(*owner, forward) : nullptr)
            notes = notes_of(*region);
        notes.push_back({forward.span, "the forward that fills the cache"});
        emit(context_, f,
             {.rule = "MP111",
              .severity = Severity::error,
              .span = step.span,
              .message = "autocast keeps its half copies of the weights that this step changes: the "
                         "next forward reads the old ones",
              .fix = std::string("call ") +
                     (is_python(f) ? "torch.clear_autocast_cache()" : "at::autocast::clear_cache()") +
                     " where the region is closed",
              .notes = std::move(notes),
              .function = {}},
             out_);
    }

    const RuleContext& context_;
    Findings& out_;
    std::unordered_set<Symbol> clearing_, known_stale_;
    std::vector<std::pair<Symbol, const Call*>> stale_;
    std::unordered_set<const Call*> reported_;
};

// Python: with autocast(...): for batch in loader: forward, backward, step.
class LoopsInRegions {
public:
    LoopsInRegions(const RuleContext& context, Findings& out)
        : context_(context), out_(out), modules_(context) {}

    void run() {
        for_each_call(context_.program, is_enter, [this](const Function& f, const Call& enter) {
            if (is_python(f) && protocol().mask(f) & kSteps) look_into(f, enter);
        });
    }

private:
    static constexpr EventMask kSteps = mask_of(EventKind::optimizer_step) | mask_of(EventKind::scaler_step);
    static constexpr EventMask kBackward = mask_of(EventKind::backward) | mask_of(EventKind::managed);

    static bool is_enter(std::string_view name) {
        return leaf(name) == "__enter__" && mentions(name, "autocast");
    }

    const Protocol& protocol() const { return protocol_of(context_); }

    // What the call does, or what the function does that it runs.
    bool does(const Function& f, const Call& call, EventMask events) const {
        const Function* callee = context_.program.definition(call.callee);
        return ((mask_of(protocol().roles().event(f, call).kind) |
                 (callee ? protocol().mask(*callee) : EventMask{0})) &
                events) != 0;
    }

    void look_into(const Function& f, const Call& enter) {
        const std::int32_t index = index_of(f, enter);
        const auto ends = [&](const Call& call) {
            return clears_autocast_cache(call) || is_exit_of(call, index);
        };
        for (const std::size_t step : calls_until(f, static_cast<std::size_t>(index), ends).calls) {
            if (f.calls[step].loop_depth <= enter.loop_depth || !does(f, f.calls[step], kSteps)) continue;
            const std::vector<std::size_t> again = calls_until(f, step, ends).calls;
            const bool trains =
                std::ranges::any_of(again, [&](std::size_t i) { return does(f, f.calls[i], kBackward); });
            if (!trains) continue;
            const Context* region = region_of_forward(f, enter, again);
            if (region && !is_uncached(f, *region)) return report(f, step, *region);
        }
    }

    // The region in which a model with fp32 weights runs once more after the step.
    const Context* region_of_forward(const Function& f, const Call& enter,
                                     const std::vector<std::size_t>& calls) {
        for (const std::size_t i : calls) {
            const Call& call = f.calls[i];
            const bool runs = call.kind == CallKind::method && !call.args.empty() &&
                              call.args[0].shape == Shape::module && any_of(leaf(call.name.str()), kRuns);
            if (!runs || mentions(call.name.str(), "FullyShardedDataParallel")) continue;
            if (is_low_precision(modules_.of_module(f, call.args[0], call).dtype)) continue;
            for (const Context& region : context_.program.contexts(f, call))
                if (region.enabled == Switch::on && region.opened == enter.span) return &region;
        }
        return nullptr;
    }

    void report(const Function& f, std::size_t step, const Context& region) {
        emit(context_, f,
             {.rule = "MP111",
              .severity = region.proven ? Severity::error : Severity::warning,
              .span = f.calls[step].span,
              .message =
                  "autocast keeps its half copies of the weights until the region around this loop ends: "
                  "after the step the next forward reads the old ones",
              .fix = "open the region in the loop, around the forward and the loss",
              .notes = notes_of(region),
              .function = {}},
             out_);
    }

    static constexpr std::array<std::string_view, 2> kRuns{"forward", "__call__"};

    const RuleContext& context_;
    Findings& out_;
    ModuleDTypes modules_;
};

void check(const RuleContext& context, Findings& out) {
    if (context.inference) return;
    Search(context, out).run();
    LoopsInRegions(context, out).run();
}

}  // namespace

extern constinit const Rule kAutocastCacheNotCleared{.id = "MP111",
                                                     .name = "autocast-cache-not-cleared",
                                                     .severity = Severity::error,
                                                     .on_by_default = true,
                                                     .confirmed_by = "MPT060",
                                                     .triggers = {kRegions, kEngines},
                                                     .check = check};

}  // namespace mp::lint
