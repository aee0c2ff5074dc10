#pragma once

// Runs functions on states of the loss-scaling protocol: all paths, where equal conditions are taken the
// same way and calls are replaced by the bodies of their callees.

#include <deque>
#include <functional>
#include <unordered_map>

#include "analyzer/analyses/protocol_state.hpp"

namespace mp::lint {

// Whether a scaler does anything: GradScaler(enabled=...).
struct Enabled {
    Switch always = Switch::unknown;
    Symbol when;  // the flag it depends on
};

class Paths {
public:
    static constexpr std::size_t kMaxStates = 200;     // per block; per function and entry, and for
    static constexpr std::size_t kStatesOfBlock = 32;  // each of its blocks so many more,
    static constexpr std::size_t kMostStates = 4000;   // up to these
    static constexpr std::size_t kMaxRuns = 400;       // function bodies per root
    static constexpr std::size_t kMaxDepth = 8;

    using EnabledOf = std::function<Enabled(const Function& root, Symbol scaler)>;

    Paths(const Program&, const Roles&, EnabledOf);
    const std::vector<Violation>& violations() const { return violations_; }
    // The events of the protocol in the function and its callees.
    EventMask mask(const Function&) const;

private:
    struct Binding {
        Symbol key;       // of the argument, in the root's names; empty: not known
        Symbol constant;  // of the argument
        friend bool operator==(const Binding&, const Binding&) = default;
    };
    using Bindings = std::vector<Binding>;
    struct Item {  // of a block, in order
        std::int32_t call = kNone;
        Event event;
        const Function* callee = nullptr;  // run in place of the call
        EventMask mask = 0;
    };
    struct Body {
        std::vector<std::vector<Item>> blocks;
        std::array<std::vector<char>, kDuties> settles, claims;  // per block: reachable from it
        std::vector<std::uint32_t> dominator;
        std::vector<Symbol> tracked;  // conditions that decide whether something happens
    };
    struct Frame {
        const Function* function = nullptr;
        Body* body = nullptr;
        Bindings bindings;
        std::size_t depth = 0;
    };
    using States = std::vector<PathState>;

    void find_masks();
    void seed_masks();
    Body& body(const Function&);
    void find_dominators(const Function&, Body&) const;
    void find_reach(const Function&, Body&) const;
    void find_tracked(const Function&, Body&) const;
    static bool dominates(const Body&, std::uint32_t a, std::uint32_t b);

    void run_root(const Function&);
    States run(Frame&, PathState entry);
    States run_block(Frame&, std::uint32_t block, PathState first);
    void leave(Frame&, std::uint32_t block, const PathState&,
               std::vector<std::pair<std::uint32_t, PathState>>& next, States& exits);
    // never: a constant decides against it, or it is an exception's. not_taken: an equal condition
    // went the other way before; that was a choice too.
    enum class Way : std::uint8_t { never, not_taken, open };
    void branch(const Frame&, std::uint32_t block, std::size_t taken, const std::vector<Way>&, bool leaves,
                PathState&) const;
    States call(Frame&, std::uint32_t block, const Item&, const PathState&);
    Bindings bind(const Frame&, const Call&, const Function& callee) const;

    Symbol canonical(const Frame&, Symbol key) const;
    // The condition in the root's names; empty: not comparable. `decided`: its value when a constant
    // determines it.
    Symbol condition(const Frame&, Symbol text, int& decided) const;
    Way assume(const Frame&, const Edge&, bool tracked, PathState&) const;

    void step(Frame&, std::uint32_t block, const Item&, PathState&);
    ScalerState& slot(PathState&, Symbol key) const;
    bool disabled(Symbol scaler, const PathState&) const;
    ScalerState* scaled_by(const Frame&, const Operand& loss, PathState&, int depth) const;
    bool is_open_question(const Frame&, const Operand& loss) const;
    void open(ScalerState&, Duty, std::uint32_t block, Site) const;
    void on_backward(Frame&, std::uint32_t block, const Item&, PathState&);
    void on_gradients(Frame&, const Item&, PathState&);
    void on_unscale(Frame&, std::uint32_t block, const Item&, PathState&);
    void on_scaler_step(Frame&, std::uint32_t block, const Item&, PathState&);
    void on_update(Frame&, const Item&, PathState&);
    void on_optimizer_step(Frame&, const Item&, PathState&);
    void on_zero_grad(PathState&) const;
    bool plain_is_proven(const Frame&, const ScalerState&, const PathState&);
    void report(Violation);
    bool may_be_settled_elsewhere(const Violation&) const;

    const Program& program_;
    const Roles& roles_;
    EnabledOf enabled_;
    std::unordered_map<const Function*, EventMask> masks_;
    std::unordered_map<const Function*, Body> bodies_;
    std::vector<Violation> violations_;
    const Function* root_ = nullptr;
    std::size_t runs_ = 0;
    std::vector<const Function*> stack_;
    struct Known {
        Bindings bindings;
        PathState entry;
        States exits;
    };
    std::unordered_map<const Function*, std::deque<Known>> known_;  // of the root at hand
};

}  // namespace mp::lint
