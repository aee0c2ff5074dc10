#pragma once

// Extracts the facts of one function body, in one walk in the order of evaluation. The parts are in several
// files: builder.cpp (variables and calls), expressions.cpp, calls.cpp, statements.cpp, assignments.cpp,
// flow.cpp (blocks, branches, try), contexts.cpp (with), loops.cpp (items of modules).

#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "analyzer/python/file.hpp"

namespace mp::lint::python {

// Whether a condition asks which version of a library is installed, or what the library has.
bool asks_for_version(std::string_view condition);

// What the node gives a new value: `x` of `x = 1`, `x += 1`, `for x in xs`, `with f() as x`, `(x := 1)`.
Node stored_by(Node);

class Builder {
public:
    Builder(File& file, Scope& scope, Function function);

    void bind_parameters(Node parameters, bool has_self, bool is_class_method);
    void enter_decorators(const std::vector<Node>& decorators);
    void run(Node body);  // a block of statements
    // For a generator that is a context manager: finish() splits it at its yield.
    void split_at_yield() { splits_at_yield_ = true; }
    // For a body in code that a version chooses.
    void set_by_version(bool value) { by_version_ = value; }
    void run_expression(Node body);  // of a lambda
    // Ends the function and adds it to the unit.
    void finish(Node body);
    // Evaluates the assignments to `self.x` outside of __init__. This builder's own function is dropped.
    void read_attributes(ClassInfo& type);

private:
    // -- variables: the value of each name at this point ----------------------------------------
    struct Slot {
        Value value;
        bool set = false;
        std::uint32_t loop = 0;  // innermost loop of the last plain assignment
        std::uint32_t mark = 0;  // of take()
    };
    using Delta = std::vector<std::pair<std::uint32_t, Slot>>;
    struct Branch {
        Delta changed{};
        bool alive = true;
    };

    Value load(Node name);
    Value load(Symbol name);
    Value from_outer(Scope* scope, Symbol name);
    Value entity_value(Symbol entity, Binding::Kind kind);
    void set(std::uint32_t slot, Value value, bool fresh = true);
    std::uint32_t slot_of(Symbol dotted);  // makes one
    const Value* known_dotted(Symbol dotted) const;
    void forget_parts_of(Symbol name);  // drops `x.a` after x is bound again
    std::size_t mark() const { return journal_.size(); }
    Delta take(std::size_t since);  // undoes the changes since `since`, and returns them
    void merge(const std::vector<Branch>& branches, Symbol condition = {}, bool when = true);
    bool unbound_is_absent(std::uint32_t slot) const;
    bool wraps(const Operand& value, const Operand& earlier) const;
    const Call* parsed_by(const Operand& value) const;
    bool are_parsed_alike(const Operand& a, const Operand& b) const;
    Symbol region_maker(const Value&) const;
    Value join(const Value& a, const Value& b, Symbol condition, bool when);
    void weaken(Node loop);  // forgets what a loop assigns, before its first iteration
    void weaken_target(Node target, bool augmented);

    // -- expressions ------------------------------------------------------------------------------
    Value eval(Node node);
    Value eval_children(Node node);
    Value eval_attribute(Node node);
    void note_use(const Value& v, Node node);
    Value attribute_of_value(const Value& object, Node node, Node leaf);
    Symbol part_of(const Value& object, Symbol leaf);
    Value eval_subscript(Node node);
    Value eval_binary(Node node);
    Value eval_unary(Node node);
    Value eval_comparison(Node node);
    Value eval_boolean(Node node);
    Value eval_conditional(Node node);
    Symbol name_that_may_be_none(Node conditional);
    void go_with(Symbol name, bool is_none, std::uint32_t to);
    Value eval_display(Node node, std::string_view name);
    Value eval_dictionary(Node node);
    Value eval_comprehension(Node node);
    Value eval_lambda(Node node);
    Value eval_string(Node node);
    Value eval_named(Node node);
    Value eval_yield(Node node);
    void return_items(Node node, const Value& item, Node shown, bool delegates);
    Value operate(std::string_view method, Node node, const Value& left, Node left_node, const Value& right,
                  Node right_node, bool in_place = false);
    static Value item_of(const Value& iterated);
    bool is_made(const Value& value) const;
    bool binds_local(Node target) const;
    static bool is_sizes(const Operand& value);  // x.shape
    static bool is_plain(const Value& v);        // it cannot contain a tensor
    // Whether a constant is short enough to be kept for code that reads it under a name.
    static bool is_short(Symbol constant) { return constant.str().size() <= 48; }

    // -- calls --------------------------------------------------------------------------------------
    struct Callee {
        CallKind kind = CallKind::function;
        Symbol name{};
        Symbol usr{};
        bool has_receiver = false;
        Value receiver{};
        Node receiver_node{};
        Symbol makes{};  // class of this project; the result is an object of it
    };
    Value eval_call(Node node);
    Callee resolve(Node function);
    Callee callee_of(const Value& value, Node node);
    Callee method_of(const Value& object, Node object_node, Symbol leaf);
    Callee method_of_class(Symbol type, Symbol leaf);
    Symbol method_of_subclass(Symbol type, Symbol leaf) const;
    std::optional<Value> eval_special(const Callee& callee, Node node, Node arguments);
    std::optional<Value> eval_by_name(bool sets, Node arguments);
    void set_attribute(Symbol dotted, Symbol leaf, Node value_node);
    bool add_module(const Callee& callee, Node arguments);
    static void name_buffer(Call& call, Node arguments);
    void eval_arguments(Node arguments, Call& call, std::vector<Value>& values);
    void spread_dictionary(Call&, std::vector<Value>&);
    std::optional<std::vector<Operand>> entries_of(const Operand& dictionary) const;
    static void store_entry(std::vector<Operand>& entries, Symbol key, const Operand& stored, bool always);
    void add_argument(Node node, Symbol keyword, Call& call, std::vector<Value>& values);
    Operand operand(const Value& value, Node node);
    Operand nameless(const Value& value) const;
    std::int32_t emit(Call call);
    Value result_of(std::int32_t call, const std::vector<Value>& arguments);
    void after_call(std::int32_t call, const Callee& callee, const std::vector<Value>& values,
                    Node arguments);
    void flatten(Node dictionary, const std::string& prefix, int depth);
    void add_environment(const Callee& callee, const Call& call, Node arguments);

    // -- assignments ----------------------------------------------------------------------------
    void assign(Node target, const Value& value, Node right);
    void assign_name(Symbol name, Value value);
    void note_alias(Node target, const Value& value, Node right);
    void note_items(Node target, Node container);
    bool note_pairs(Node target, Node zipped);
    void keep_used_aliases();
    bool is_bound_once(Symbol name);
    void assign_attribute(Node target, const Value& value, Node right);
    void assign_subscript(Node target, const Value& value, Node right);
    void assign_items(Node targets, const Value& value);
    Value unpacked(const Value& value, std::size_t item, Node target);
    Value load_dotted(Symbol name);
    void note_sum(Node node, Node target, Node sum, const Value& result);
    Value annotated(Value value, Node type);
    void assign_pairwise(Node targets, Node values);
    void name_result(const Value& value, Symbol name);
    void visit_assignment(Node node);
    void visit_augmented(Node node);
    void accumulate(Node node, Node target, const Value& old, const Value& added, std::string_view op,
                    std::int32_t call, bool compound);
    bool is_part_of_new(Node target) const;
    void add_definitions();  // of the names that other code can read
    bool is_worth_reading(const Operand& value) const;
    void note_binding(std::uint32_t slot);
    void note_self_attributes();  // the attributes that __init__ sets
    bool others_tell(const Operand& value) const;
    void add_setting(Symbol key, Operand value, Node node);

    // -- statements -----------------------------------------------------------------------------------
    void visit(Node statement);
    void visit_expression_statement(Node node);
    void visit_if(Node node);
    void visit_for(Node node);
    void assign_loop_target(Node target, const Value& iterated);
    std::uint64_t rounds_of(const Value& iterated) const;
    std::uint64_t rounds_since(std::uint32_t loop) const;
    Value item_in_loop(const Value& iterated, Node target);
    void visit_while(Node node);
    void visit_try(Node node);
    void end_loop(Node node, std::size_t since, std::uint32_t head, std::uint32_t rest, std::uint32_t outer);
    static bool leaves_early(Node body);
    void visit_finally(Node clause, std::uint32_t joined, std::uint32_t after);
    bool visit_handler(Node clause, std::uint32_t dispatch, std::uint32_t after);
    void visit_with(Node node);
    void visit_match(Node node);
    void visit_return(Node node);
    void visit_import(Node node);
    void visit_function(Node definition, std::vector<Node> decorators);
    void visit_class(Node definition, const std::vector<Node>& decorators);
    Symbol decorator_text(Node decorator);
    void visit_decorated(Node node);

    // -- flow -------------------------------------------------------------------------------------------
    enum class Way : std::uint8_t { fall, leave, break_, continue_, raise };
    struct Entered {
        std::int32_t call = kNone;  // the __enter__
        Symbol name{}, usr{};       // of the context, without ".__exit__"
        Operand object{};
    };
    struct Frame {
        enum class Kind : std::uint8_t { loop, with, handlers, finally };
        Kind kind = Kind::loop;
        std::uint32_t to = 0;      // block after the loop, of the handlers, of the finally body
        std::uint32_t again = 0;   // head of the loop
        std::uint32_t loop = 0;    // its id
        std::uint64_t rounds = 0;  // of the loop; 0: not known
        std::uint32_t ways = 0;    // bits of Way that reach the finally body
        std::vector<Entered> entered{};
        Symbol stack{};  // variable of an ExitStack
    };
    std::uint32_t new_block();
    void edge(std::uint32_t from, std::uint32_t to, Symbol condition = {}, bool when = true,
              bool raises = false);
    void go(std::uint32_t to);  // ends the block with an edge
    void start(std::uint32_t block, bool reachable = true);
    bool has_entry(std::uint32_t block) const { return entered_blocks_[block]; }
    void branch(Node condition, std::uint32_t yes, std::uint32_t no);
    // The text of a condition that always has the same value in this function; empty for others. Clears
    // `when` for a negation, so that `not c` and `c` have the same text.
    Symbol stable_text(Node condition, bool& when);
    // The same for any condition: its text, without `not`.
    Symbol condition_text(Node condition, bool& when);
    bool is_stable(Node condition);
    bool holds_options(Symbol name) const;
    bool is_stable_name(Symbol name);
    bool is_stable_attribute(Node object, Node attribute);
    bool is_set_once_above(Node attribute);
    bool is_stable_item(Node item);
    static bool is_stable_call(Node call);
    void unwind(Way way, const SourceSpan& span);
    void leave(const SourceSpan& span);
    void raise_edge();

    // -- loops ----------------------------------------------------------------------------------------
    void find_members(Node target, const Operand& iterated, std::vector<std::pair<Node, Value>>& members);
    Value next_of(const Call& iterated, const Operand& held, Node target);
    void note_unused(const Value& value, Node statement, Node target = {});
    void note_told(std::size_t first_call, Node shown = {});

    // -- contexts -----------------------------------------------------------------------------------
    void enter_item(Node item, Frame& frame);
    Value eval_context(Node expression);
    void enter(const Value& context, Node node, std::vector<Entered>& entered);
    void enter_choice(const Choice& choice, const Value& context, Node node, std::vector<Entered>& entered);
    std::vector<Choice> choices_of(const Value& value) const;
    bool is_exit_stack(const Value& value) const;
    std::int32_t keep_choices(std::vector<Choice> choices);
    void emit_exit(const Entered& entered, const SourceSpan& span);
    void emit_exits(const Frame& frame, const SourceSpan& span);
    void enter_on_stack(const Value& context, Symbol stack, Node node);
    void enter_by_hand(const Callee& callee, Node node);
    void link_exit(Call& call);  // links `ctx.__exit__(...)` to its __enter__
    void finish_generator();

    Symbol symbol(std::string_view text) { return file_.names.symbol(text); }

    File& file_;
    std::uint32_t number_;  // of this builder in the file
    Scope& scope_;
    Function f_;
    std::vector<Slot> env_;  // by binding of the scope, then attributes
    std::vector<Slot>::size_type bindings_ = 0;
    FlatMap dotted_;                                                // slots of `x.a`
    std::vector<std::pair<Symbol, std::uint32_t>> of_self_;         // attributes set in __init__, and slots
    std::unordered_map<Symbol, std::vector<std::uint32_t>> parts_;  // slots of `x.a` by x
    Delta journal_;                                                 // old slots
    std::uint32_t taken_ = 0;                                       // how often take() ran
    std::vector<std::pair<Symbol, Value>> inner_;                   // variables of comprehensions
    std::vector<Frame> frames_;
    std::vector<bool> entered_blocks_;
    std::vector<std::uint32_t> raised_from_;  // by block: 1 + the handler it has an edge to
    std::vector<std::pair<std::uint32_t, std::uint32_t>> yields_;  // blocks before and after a yield
    std::unordered_set<std::uint32_t> flattened_;                  // dictionaries whose settings are
                                                                   // already recorded
    std::vector<Entered> by_hand_;                                 // `ctx.__enter__()`
    // Where a module or class binds a name, and by which of its statements.
    struct Bound {
        std::uint32_t slot = 0;
        SourceSpan at{};
        std::uint32_t statements = 0;  // that bind it
        std::uint32_t last = 0;
        bool in_branch = false;  // the last one is an `if` or a `try`
    };
    std::vector<Bound> bound_;
    std::optional<std::unordered_map<std::string_view, Node>> stores_;  // to attributes; once it is asked for
    std::uint32_t statement_ = 0;  // of the module or class, counted from 1
    Node statement_node_{};
    bool runs_ = false;  // inside the outermost body
    std::uint32_t block_ = 0;
    std::int32_t handler_ = kNone;  // block that exceptions lead to
    bool reachable_ = true;
    bool splits_at_yield_ = false;
    bool by_version_ = false;
    std::uint16_t loop_depth_ = 0;
    std::uint32_t loop_ = 0, loops_ = 0;  // id of the innermost loop; how many there were
};

}  // namespace mp::lint::python
