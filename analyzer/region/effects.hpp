#pragma once

// The effect of every function on the autocast state, computed bottom-up over the call graph.

#include <deque>
#include <unordered_map>
#include <vector>

#include "analyzer/region/graph.hpp"
#include "analyzer/region/state.hpp"

namespace mp::lint {

// Properties of a class, derived from the effects of its methods.
struct ClassFacts {
    bool reads_enabled = false;      // some method reads the state, so a later write of a member restores
                                     // it
    bool destructor_closes = false;  // its destructor closes or restores: objects are guards
    bool method_closes = false;      // ... or another method does
};

class Effects {
public:
    Effects(const Graph&, const AutocastApi&);

    const Summary& summary(std::uint32_t f) const { return summaries_[f]; }
    // nullptr when the function does not touch the state.
    const Exploration* exploration(std::uint32_t f) const;
    const ClassFacts* class_facts(Symbol name) const;

    const Graph& graph() const { return graph_; }
    const AutocastApi& api() const { return api_; }
    // Whether the call sets, saves or restores the state, directly or through its callees.
    bool touches(std::uint32_t f, std::size_t call) const;
    // Whether the call makes an object whose destructor closes the region, wherever the destructor
    // runs.
    bool opened_by_guard(std::uint32_t f, std::int32_t call) const;

private:
    void find_reaching();
    void find_destructors();
    std::uint32_t destructor_for(std::uint32_t f) const;
    void learn_class(std::uint32_t f);
    std::vector<std::vector<std::uint32_t>> components() const;
    void solve(const std::vector<std::uint32_t>& component);
    bool explore(std::uint32_t f);
    void keep(std::uint32_t f, Exploration);
    Summary summarize(std::uint32_t f, const Exploration&) const;

    const Graph& graph_;
    const AutocastApi& api_;
    std::vector<char> reaches_;  // a call of the autocast API is reachable from the function
    std::vector<Summary> summaries_;
    std::deque<Exploration> explorations_;
    std::vector<std::uint32_t> exploration_of_;  // index in explorations_ plus 1; 0: none
    std::unordered_map<Symbol, ClassFacts> classes_;
    std::unordered_map<Symbol, std::uint32_t> destructors_;  // of classes; only those that reach the API
};

// Explores one function on abstract states: all paths, where equal conditions are taken the same
// way.
class Explorer {
public:
    // If one function has more states than this (beside the first few of each block), nothing is
    // reported about it.
    static constexpr std::size_t kMaxStates = 256;

    Explorer(const Effects&, std::uint32_t function);
    Exploration run();

private:
    struct Saved {
        std::int32_t call = kNone;  // the call that read the state or made the guard
        Symbol guard;               // class of the guard; empty for a plain read
        Cells cells;
        Symbol assumed{};  // a condition that is assumed only inside Python's `with` block

        friend bool operator==(const Saved&, const Saved&) = default;
    };
    struct State {
        Cells cells;
        std::vector<Saved> saved;
        std::vector<Assumption> assumed;

        friend bool operator==(const State&, const State&) = default;
    };
    struct Setting {
        Value value = Value::unknown;
        std::int32_t param = kNone;
        const Cell* saved = nullptr;  // the state to restore
    };

    void find_tracked();
    bool reaches_all(const std::vector<char>& wanted, const Edge* without) const;
    bool same_branch(const Edge& a, const Edge& b) const;
    std::size_t block_count() const { return f_.flow.empty() ? 1 : f_.flow.size(); }

    void enter(std::uint32_t block, State);
    void run_block(std::uint32_t block, State);
    static void drop_equal(std::vector<State>&);
    void leave(std::uint32_t block, const State&);
    void exit(const State&, const SourceSpan&);
    void record(std::size_t call, const State&);
    void overflow();

    void step(std::size_t call, State, std::vector<State>& out);
    void step_api(std::size_t call, const ApiCall&, State&);
    void step_guard(std::size_t call, const ApiCall&, State&);
    void step_with(std::size_t call, const PythonManager&, State, std::vector<State>& out);
    void step_out_of_with(std::size_t call, State&);
    bool enter_when(std::size_t call, State&, std::vector<State>& out);
    bool branches_on(Symbol condition) const;
    static constexpr std::uint32_t kNowhere = ~std::uint32_t{0};
    void unwind(std::uint32_t block, State&);
    bool is_inside(std::int32_t entered, std::uint32_t block);
    void add_with_conditions(std::vector<Symbol>& matter) const;
    void step_body(std::size_t call, const Target&, bool alone, const State&, std::vector<State>& out);
    bool select(std::size_t call, const Target&, const Exit&, State&, bool& sure) const;
    enum class Fit : std::uint8_t { always, never, open, when };
    Fit fit(const Call&, const Target&, Assumption&) const;
    void apply(std::size_t call, const Function& callee, const Cell& effect, Device, bool sure, State&,
               const Saved* guard);
    void set_enabled(std::size_t call, Device, Setting, bool sure, State&);
    static Setting opposite_if(bool negated, Setting);
    Setting setting_of(const Operand&, Device, const State&) const;
    const Saved* saved_by(std::int32_t call, const State&) const;
    void save(State&, Saved) const;
    static bool assume(State&, Assumption);

    const Effects& effects_;
    std::uint32_t index_;
    const Function& f_;
    std::vector<std::vector<std::size_t>> block_calls_;
    std::vector<char> tracked_;  // per edge, numbered in order: its condition is tracked
    std::vector<std::uint32_t> first_edge_;
    std::vector<std::vector<State>> seen_;  // per block
    std::vector<std::pair<std::uint32_t, State>> pending_;
    std::size_t states_ = 0;
    bool returns_saved_ = true;
    std::unordered_map<std::uint64_t, bool> inside_;  // memo of is_inside()
    Exploration out_;
};

}  // namespace mp::lint
