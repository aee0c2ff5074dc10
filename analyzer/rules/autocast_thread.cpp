// MP113 autocast-thread
//
// What   A region is open where a thread is started, and the thread's body runs ops that autocast
//        lowers without opening a region of its own.
// Why    The autocast state belongs to a thread: the new one starts with it off, so the same model
//        computes in fp32 there and in half here.
// Fix    Open the region inside the function that the thread runs.
// Silent Bodies that open their own region or that run no op autocast would lower; nn.DataParallel,
//        which passes the state on.
// Tests  testdata/lint/MP113.md, tests/analyzer/rules/autocast_thread_test.cpp

#include <algorithm>
#include <array>
#include <unordered_set>

#include "analyzer/analyses/autocast_calls.hpp"
#include "analyzer/analyses/regions.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

// A body calls further functions; this many are looked at.
constexpr std::size_t kMostBodies = 200;

constexpr std::array<std::string_view, 13> kStartsThread{"threading.Thread",
                                                         "threading.Timer",
                                                         "std::thread",
                                                         "std::thread::thread",
                                                         "std::jthread",
                                                         "std::jthread::jthread",
                                                         "std::async",
                                                         "?.submit",
                                                         "_thread.start_new_thread",
                                                         "concurrent.futures.ThreadPoolExecutor.submit",
                                                         "concurrent.futures.ThreadPoolExecutor.map",
                                                         "multiprocessing.pool.ThreadPool.map",
                                                         "multiprocessing.pool.ThreadPool.apply_async"};

bool can_be_off(const Program& program, const Function& f, const Call& call) {
    return std::ranges::any_of(program.contexts(f, call),
                               [](const Context& context) { return context.enabled == Switch::off; });
}

// The first op in what the thread runs that autocast would lower, and that runs with it off.
const Call* op_without_region(const RuleContext& context, std::span<const Symbol> bodies) {
    std::unordered_set<Symbol> seen(bodies.begin(), bodies.end());
    std::vector<Symbol> pending(bodies.begin(), bodies.end());
    for (std::size_t at = 0; at < pending.size() && at < kMostBodies; ++at) {
        const Function* f = context.program.definition(pending[at]);
        if (!f) continue;
        for (const Call& call : f->calls) {
            const bool lowers = context.policy("cuda")->category(call.op) == Category::lower;
            if (lowers && !call.in_place && can_be_off(context.program, *f, call)) return &call;
            // A call inside a region of the body's own leads to nothing new.
            if (call.callee.empty() || written_region(context.program, *f, call)) continue;
            if (seen.insert(call.callee).second) pending.push_back(call.callee);
        }
    }
    return nullptr;
}

void check(const RuleContext& context, Findings& out) {
    for_each_call(context.program, name_in(kStartsThread), [&](const Function& f, const Call& call) {
        if (call.lambdas.empty()) return;
        const Context* region = written_region(context.program, f, call);
        if (!region) return;
        const Call* op = op_without_region(context, call.lambdas);
        if (!op) return;
        std::vector<Note> notes = notes_of(*region);
        notes.push_back({op->span, std::string(op->op.name()) + " runs here with autocast off"});
        emit(context, f,
             {.rule = "MP113",
              .severity = Severity::warning,
              .span = call.span,
              .message = "the thread started here does not take over " + describe(*region) +
                         ": its ops run in the dtype of their inputs",
              .fix = "open the region inside the function that the thread runs",
              .notes = std::move(notes),
              .function = {}},
             out);
    });
}

}  // namespace

extern constinit const Rule kAutocastThread{.id = "MP113",
                                            .name = "autocast-thread",
                                            .severity = Severity::warning,
                                            .on_by_default = true,
                                            .confirmed_by = "MPT060",
                                            .triggers = {kRegions, kEngines},
                                            .check = check};

}  // namespace mp::lint
