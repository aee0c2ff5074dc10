#pragma once

// The autocast states in which each function and each call can run, computed top-down over the call
// graph. Each state keeps one shortest path that leads to it.

#include <memory>
#include <mutex>
#include <vector>

#include "analyzer/region/effects.hpp"
#include "analyzer/region/program.hpp"

namespace mp::lint {

class Contexts {
public:
    // A chain longer than twice this is shown without its middle.
    static constexpr std::size_t kChainEnd = 8;

    Contexts(const Effects&, const RegionConfig&);

    std::span<const Context> at(std::uint32_t f, std::size_t call) const;
    // Whether the function can be entered with autocast on for this device.
    bool can_enter_enabled(std::uint32_t f, Device) const;

private:
    // The state of one device at the entry of a function, and the path to it. Device kBase means
    // "never set", for all devices.
    struct Node {
        std::uint32_t function = 0;
        Device device = 0;
        Switch enabled = Switch::off;
        DType dtype = DType::unknown;
        bool proven = true;
        bool via_nobody = false;  // called from outside the program
        Symbol condition{};
        Symbol opener{};
        SourceSpan opened{};
        std::int32_t parent = -1;  // the caller's node, when the region was already open there
        std::int32_t front = -1;   // ancestor that ends the beginning of the chain
        std::uint32_t depth = 0;   // calls from the opener to here
        CallRef via{};             // the call that enters this function
        bool process_wide = false;
        bool framework = false;
    };
    // The state of one device at one call, for one entry of the function.
    struct Local {
        Device device = 0;
        Switch enabled = Switch::off;
        DType dtype = DType::unknown;
        bool proven = true;
        bool inherited = false;  // already open at entry
        Symbol condition{};
        std::int32_t origin = kNone;
    };

    static constexpr Device kBase = 0xff;

    void seed();
    void propagate();
    void visit(std::int32_t node);
    void visit_call(std::int32_t node, std::size_t call, const std::vector<Local>& here);
    void enter(const Node&);
    void enter_targets(std::int32_t from, std::size_t call, const Local&);
    void enter_base(std::uint32_t f, std::size_t call);
    std::vector<Local> locals(const Node& entry, std::size_t call) const;
    // Whether two calls of the function run in the same states for every entry. True for most
    // neighbours.
    bool same_states(std::uint32_t f, std::size_t call, std::size_t other) const;
    void add_locals(const Node& entry, const Exploration&, std::size_t call, Device,
                    std::vector<Local>&) const;
    bool is_annotated(const Function&, Node& node) const;
    Symbol opener_name(std::uint32_t f, std::int32_t call) const;

    void find_off();
    bool can_be_off(std::uint32_t f, std::size_t call) const;
    bool can_record(std::uint32_t f, std::size_t call) const;
    Switch grad_at(std::uint32_t f, std::size_t call) const;
    template <class Holds>
    void find_entered(std::vector<char>& at_entry, bool framework_too, Holds holds);
    Context island_of(std::uint32_t f, std::size_t call) const;

    bool is_always_off(std::uint32_t f) const;
    struct OnDemand;
    const OnDemand& of(std::uint32_t f) const;
    std::vector<Context> make_for_function(std::uint32_t f) const;
    std::vector<Context> make_for_call(std::uint32_t f, std::size_t call) const;
    void finish(std::vector<Context>& list, const Context* off, Switch grad) const;
    Context context_of(const Node&) const;
    Context context_of(const Node& entry, const Local&) const;
    std::vector<Note> chain_of(const Node&) const;
    Note note_of(const Node&) const;

    const Effects& effects_;
    const Graph& graph_;
    const RegionConfig& config_;
    std::vector<Node> nodes_;                         // in order of distance: the queue of a breadth-first
                                                      // walk
    std::size_t visited_ = 0;                         // number of nodes already followed
    std::vector<std::vector<std::int32_t>> entries_;  // per function
    std::vector<char> always_in_region_;              // annotated or named in the configuration
    std::vector<char> off_at_entry_;                  // autocast can be off on every device at entry
    std::vector<char> records_at_entry_;              // ... with gradients recorded
    // Built on the first request, by any thread: chains are text, and rules ask about few
    // functions.
    struct OnDemand {
        std::once_flag made;
        std::vector<std::vector<Context>> lists;
        std::vector<std::uint32_t> list_of;  // per call
    };
    mutable std::unique_ptr<OnDemand[]> of_function_;
    std::vector<Context> off_;
};

}  // namespace mp::lint
