#pragma once

// Autocast regions as Python writes them: the constructor of a context, and the calls that run while
// it is open.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "analyzer/analyses/context.hpp"

namespace mp::lint {

// `torch.autocast("cuda", dtype=torch.float16, enabled=use_amp)`, by whatever name.
struct AutocastCall {
    std::string_view device;           // "cuda"; empty when it is not constant
    const Operand* dtype = nullptr;    // as given; nullptr: the device's default
    const Operand* enabled = nullptr;  // as given; nullptr: yes
    bool device_in_name = false;       // torch.cuda.amp.autocast: the device is not an argument
};

// The arguments of an autocast constructor; nothing for other calls.
std::optional<AutocastCall> autocast_call(const Call&);

// The dtype of the region that it opens; unknown when that is not constant.
DType region_dtype(const AutocastCall&);
// enabled=False is written there.
bool is_disabled(const AutocastCall&);

// The enabled region in which this call runs, opened by the program itself: not by a framework around
// its hooks, and not once for the whole process. The proven ones first; nullptr: there is none.
const Context* written_region(const Program&, const Function&, const Call&);

// What some path runs after one call and before another that ends it; with `assumed`, only paths on
// which that condition holds.
struct Reached {
    std::vector<std::size_t> calls;  // indices in order; smaller than the start in a loop
    bool leaves = false;             // the function can be left before it ends
};
template <typename Ends>
Reached calls_until(const Function& f, std::size_t from, Ends ends, Symbol assumed = {});

// The calls between the `__enter__` at this index and its `__exit__`.
std::vector<std::size_t> calls_inside(const Function&, std::size_t enter);
// Whether the call is the `__exit__` of the `__enter__` at this index.
bool is_exit_of(const Call&, std::int32_t enter);
// torch.clear_autocast_cache()
bool clears_autocast_cache(const Call&);
// The region is opened in this function with cache_enabled=False.
bool is_uncached(const Function&, const Context& region);
// The `__enter__` of the context that this call makes; kNone when it is never entered.
std::int32_t enter_of(const Function&, const Call& constructor);

// Whether every path to the block passes an edge out of a block for which `asks` holds: the block
// runs only under that question.
bool is_guarded(const Function&, std::uint32_t block,
                bool (*asks)(const Function&, const Edge&, std::uint32_t from));

// ---- implementation of the template

std::vector<std::vector<std::size_t>> calls_by_block(const Function&);

template <typename Ends>
Reached calls_until(const Function& f, std::size_t from, Ends ends, Symbol assumed) {
    const auto blocks = calls_by_block(f);
    std::vector<char> entered(blocks.size()), found(f.calls.size());
    std::vector<std::uint32_t> pending;
    Reached reached;
    const auto run = [&](std::uint32_t block, std::size_t after) {
        for (const std::size_t index : blocks[block]) {
            if (after != f.calls.size() && index <= after) continue;
            if (ends(f.calls[index])) return;
            found[index] = 1;
        }
        if (block >= f.flow.size() || f.flow[block].leaves) reached.leaves = true;
        if (block >= f.flow.size()) return;
        for (const Edge& edge : f.flow[block].to) {
            const bool excluded = !assumed.empty() && edge.condition == assumed && !edge.when;
            if (excluded || entered[edge.to]) continue;
            entered[edge.to] = 1;
            pending.push_back(edge.to);
        }
    };
    run(f.calls[from].block, from);
    while (!pending.empty()) {
        const std::uint32_t block = pending.back();
        pending.pop_back();
        run(block, f.calls.size());
    }
    for (std::size_t i = 0; i < found.size(); ++i)
        if (found[i]) reached.calls.push_back(i);
    return reached;
}

}  // namespace mp::lint
