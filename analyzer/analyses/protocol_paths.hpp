#pragma once

// Runs functions on states of the loss-scaling protocol: all paths, where equal conditions are taken the
// same way and calls are replaced by the bodies of their callees.

#include <deque>
#include <functional>
#include <unordered_map>

#include "analyzer/analyses/control_flow.hpp"
#include "analyzer/analyses/protocol_state.hpp"

namespace mp::lint {

// Whether a scaler does anything: GradScaler(enabled=...).
struct Enabled {
    Switch always = Switch::unknown;
    Symbol when;               // the flag it depends on
    bool begins_at_1 = false;  // the scale changes nothing until the first update

    friend bool operator==(const Enabled&, const Enabled&) = default;
};

class Paths {
public:
    static constexpr std::size_t kMaxStates = 200;     // per block; per function and entry, and for
    static constexpr std::size_t kStatesOfBlock = 32;  // each of its blocks so many more,
    static constexpr std::size_t kMostStates = 4000;   // up to these
    static constexpr std::size_t kMaxRuns = 400;       // function bodies per root
    static constexpr std::size_t kMaxDepth = 8;

    static constexpr std::size_t kMaxWork = 6000;  // blocks per root, those of its callees included

    // What the program says about its scalers, by the names that a function gives them.
    struct Scalers {
        std::function<Enabled(const Function& root, Symbol scaler)> enabled;
        std::function<bool(Symbol, Symbol)> are_distinct;  // two objects, made side by side
    };

    Paths(const Program&, const Roles&, Scalers);
    const std::vector<Violation>& violations() const { return violations_; }
    // The most blocks that one root took.
    std::size_t most_work() const { return most_work_; }
    // The events of the protocol in the function and its callees.
    EventMask mask(const Function&) const;

private:
    struct Binding {
        Symbol key;            // of the argument, in the root's names; empty: not known
        Symbol constant;       // of the argument
        Symbol condition;      // the argument is this condition, in the root's names
        bool omitted = false;  // the parameter has its default
        friend bool operator==(const Binding&, const Binding&) = default;
    };
    using Bindings = std::vector<Binding>;
    struct Item {  // of a block, in order
        std::int32_t call = kNone;
        Event event;
        const Function* callee = nullptr;  // run in place of the call
        EventMask mask = 0;
        // Code that is not seen may go on with the protocol: for every scaler, or for those it is given.
        enum class Unseen : std::uint8_t { none, arguments, all } unseen = Unseen::none;
    };
    struct Body {
        std::vector<std::vector<Item>> blocks;
        std::array<std::vector<char>, kDuties> settles, claims;  // per block: reachable from it
        ControlFlow flow;
        std::vector<Symbol> tracked;                // conditions that decide whether something happens
        std::unordered_map<Symbol, Alias> aliases;  // with the attributes of objects that are made here
        std::unordered_map<Symbol, Symbol> resolved;
    };
    struct Condition {
        Symbol text;         // in the root's names
        int decided = -1;    // its value, when a constant determines it
        bool local = false;  // it reads what only this function knows
    };
    struct Frame {
        const Function* function = nullptr;
        Body* body = nullptr;
        Bindings bindings;
        std::size_t depth = 0;
        std::unordered_map<Symbol, Condition> conditions{};
    };
    using States = std::vector<PathState>;

    void find_masks();
    void seed_masks();
    Body& body(const Function&);
    void find_reach(const Function&, Body&) const;
    void find_tracked(const Function&, Body&) const;
    void find_aliases(const Function&, Body&) const;
    void add_attributes(const Function& of, const Function& in, Body&) const;
    Event event_of(const Function&, const Call&) const;
    bool records_nothing(const Function&, const Call& enter) const;
    bool unscales_by_hand(const Call&) const;
    bool goes_on_inside(const Function& own, bool clips) const;
    bool only_forwards(const Function&);
    void find_overriders();
    Item::Unseen unseen_by(const Function&, const Call&, const Item&) const;
    static bool dominates(const Body&, std::uint32_t a, std::uint32_t b);

    void run_root(const Function&);
    States run(Frame&, PathState entry);
    States run_block(Frame&, std::uint32_t block, PathState first);
    struct Visit {
        std::uint32_t block = 0;
        bool again = false;  // of a loop's head: an iteration is over
        PathState state;
    };
    void leave(Frame&, const Visit&, const PathState&, std::vector<Visit>& next, States& exits);
    // never: a constant decides against it, or it is an exception's. not_taken: an equal condition
    // went the other way before; that was a choice too.
    enum class Way : std::uint8_t { never, not_taken, open };
    void branch(const Frame&, std::uint32_t block, std::size_t taken, const std::vector<Way>&, bool leaves,
                PathState&) const;
    static bool is_independent(const Frame&, Duty, std::uint32_t opener, std::uint32_t block);
    static bool is_under(const Frame&, std::uint32_t opener, Symbol condition);
    static bool enters_loop(const Frame&, std::uint32_t block, std::vector<Way>&);
    States call(Frame&, std::uint32_t block, const Item&, const PathState&);
    void enter_callee(const Frame&, std::uint32_t block, PathState& entry) const;
    void leave_callee(const Frame& inner, std::uint32_t block, const PathState& before,
                      PathState& after) const;
    Bindings bind(Frame&, const Call&, const Function& callee);

    // The first name of an object: a name of the root, if it has one there.
    Symbol canonical(const Frame&, Symbol key);
    Symbol resolved(const Function&, Symbol key);
    Symbol name_in_root(Frame&, std::string_view name, bool& local);
    const Condition& condition(Frame&, Symbol text);
    Condition make_condition(Frame&, Symbol text);
    Way assume(Frame&, const Edge&, bool tracked, PathState&);
    static void add_assumed(PathState&, const Assumed&);
    void note_use(const Frame&, Symbol key, PathState&) const;
    void on_unseen(const Frame&, const Item&, PathState&);
    void doubt_others(const ScalerState& used, PathState&) const;

    void step(Frame&, std::uint32_t block, const Item&, PathState&);
    ScalerState& slot(PathState&, Symbol key) const;
    bool disabled(Symbol scaler, const PathState&) const;
    struct Scaled {
        ScalerState* scaler = nullptr;
        std::uint32_t block = 0;  // of scale()
    };
    Scaled scaled_by(const Frame&, const Operand& loss, PathState&, int depth);
    bool is_open_question(const Frame&, const Operand& loss) const;
    void open(ScalerState&, Duty, std::uint32_t block, Site) const;
    void on_backward(Frame&, std::uint32_t block, const Item&, PathState&);
    void on_gradients(Frame&, const Item&, PathState&);
    void on_unscale(Frame&, std::uint32_t block, const Item&, PathState&);
    void on_scaler_step(Frame&, std::uint32_t block, const Item&, PathState&);
    void on_update(Frame&, const Item&, PathState&);
    void on_optimizer_step(Frame&, const Item&, PathState&);
    void on_zero_grad(PathState&) const;
    bool is_of_scale(const Site& backward) const;
    bool plain_is_proven(const Frame&, const Call& step, const ScalerState&, const PathState&);
    void step_unscaled(const Frame&, const Site& step, Symbol optimizer, PathState&);
    bool scales_after(const Frame&, const Call& step, const PathState&);
    bool may_update_as_it_steps(const Site& step);
    bool is_beside_another(const Frame&, const ScalerState&, const PathState&);
    void report(Violation);
    bool may_be_settled_elsewhere(const Violation&) const;

    const Program& program_;
    const Roles& roles_;
    Scalers scalers_;
    std::unordered_map<Symbol, std::vector<const Function*>> overriders_;
    std::unordered_map<const Function*, EventMask> masks_;
    std::unordered_map<const Function*, Body> bodies_;
    std::vector<Violation> violations_;
    const Function* root_ = nullptr;
    std::size_t runs_ = 0, work_ = 0, most_work_ = 0;
    std::vector<const Function*> stack_;
    struct Known {
        Bindings bindings;
        PathState entry;
        States exits;
    };
    std::unordered_map<const Function*, std::deque<Known>> known_;  // of the root at hand
};

}  // namespace mp::lint
