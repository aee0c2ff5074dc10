#pragma once

// What a name, an attribute, an option or an entry of a table stands for, over all Python units: a dtype, a
// number, a text, or the functions and classes that a call of it can run. What a caller, the command line or a
// file can change is `assumed`. What two places give differently is unknown, except that fp16 and bf16 give lowp.

#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analyzer/region/by_symbol.hpp"
#include "analyzer/region/configurations.hpp"
#include "analyzer/region/fact_key.hpp"
#include "analyzer/region/names.hpp"
#include "analyzer/region/object_classes.hpp"

namespace mp::lint {

// What any optimizer of torch is.
inline const Symbol kAnyOptimizer("torch.optim.Optimizer");
bool is_optimizer_class(std::string_view name);

class Values {
public:
    struct Known {
        DType dtype = DType::unknown;
        Shape shape = Shape::other;
        Symbol constant;
        bool assumed = false;
        Symbol alternative = {};  // where branches differ: the low dtype that one of them gives
        bool is_known() const { return dtype != DType::unknown || !constant.empty(); }
    };
    // What a call of a value can run: a function, or an object of a class when `is_object`, or a class.
    struct Candidate {
        Symbol name;
        bool is_object = false;
        bool is_open = false;  // another branch gives what is not known
        friend bool operator==(const Candidate&, const Candidate&) = default;
    };

    // `stores`: calls of __setitem__. `options`: calls of add_argument.
    Values(const std::vector<Unit>& units, const Names& names, GroupsBySymbol<ObjectClasses::Caller> callers,
           const std::vector<ObjectClasses::Caller>& stores,
           const std::vector<ObjectClasses::Caller>& options);

    Known of(const Function&, const Operand&);
    // True if nothing in the program binds what the operand refers to. That does not change.
    bool leads_nowhere(const Function&, const Operand&);
    // Empty when one of them is not known.
    std::vector<Candidate> callees(const Function&, const Operand&);
    // Drops the answers, after dtypes and constants have changed. Objects and places do not depend on them.
    void forget() { known_.clear(); }
    // The function or class that an operand names, of the program or of a library; empty for other values.
    Symbol named_by(const Function&, const Operand&);
    Reading read(const Function& user, Symbol name) { return finder_.read(name, package_of(user)); }
    // What the mapping of a configuration holds that the operand is, each value with its key as keyword.
    std::vector<Operand> entries(const Function&, const Operand&);
    // The call `functools.partial(...)` that made the function of this name, and its function.
    ObjectClasses::Caller partial_of(const Function& user, Symbol name);
    // The same for what a variable, an attribute or a parameter holds, if all callers pass the same one.
    ObjectClasses::Caller partial_held(const Function&, const Operand&, int depth = 0);

private:
    using Caller = ObjectClasses::Caller;
    // An operand that says what another one stands for.
    struct Place {
        const Function* function = nullptr;
        const Operand* operand = nullptr;
        bool assumed = false;
    };
    // The call that made an object, its class when the program has it; or a mapping of a data file.
    struct Object {
        const Function* function = nullptr;
        const Call* made = nullptr;
        Symbol type{};
        bool assumed = false;
        Symbol data{};  // the name of the mapping's definition: "/a/b.yaml.model"
    };
    struct Path {
        std::string text{};
        const Function* named_in = nullptr;
        bool assumed = false;
    };

    Known find(const Function&, const Operand&);
    bool gives_nothing(const Function&, const Operand&);
    Known of_call(const Function&, const Call&);
    Known of_item(const Function&, const Call& reads, bool by_key);
    Known dtype_of_tensor(const Function&, std::string_view refers);
    Known of_returned(const Function&, const Call&, const Function& callee);
    Known of_parameter(const Function&, std::int32_t param);
    Known of_place(const Place&);
    static Known named(std::string_view text);
    Place place_of(const Function&, Symbol refers);
    Place place_in(const Function&, std::string_view refers);
    Place place_named(const Function&, std::string_view refers);
    Place argument_or_default(const Function&, const Call&, const Function& callee, std::int32_t param);
    Place default_of(const Function&, std::int32_t param);
    Object object_of(const Function&, const Operand&, int depth = 0);
    Object object_passed(const Function&, const Operand&, int depth);
    Object object_made(const Function&, const Call&, int depth);
    Object object_at(const Place&);
    Place member(const Object&, std::string_view leaf);
    Place member_of_members(Object, std::string_view path);
    Place member_of_class(const Object&, std::string_view leaf);
    Place option(const Object&, std::string_view leaf);
    Place returned_by(const Function& property);
    Object object_by_default(const Function&, const Call& field);
    Object object_of_class(const Function&, const Operand* named);
    Object object_parsed(const Function&, const Call&, int depth);
    Object parsed_item(const Function&, const Call&, std::size_t at, int depth);
    Place entry_of(const Object& table, const Known& key);

    Object data_file(std::string_view name, const Function& user);
    Object data_made(const Function&, const Call&, int depth);
    Object data_loaded(const Function&, const Call&, const Caller& given);
    Object data_returned(const Function&, const Call&, const Function& callee);
    Object data_of_hydra(const Function&, std::int32_t param);
    Place data_member(const Object&, std::string_view key);
    Place unpacked(const Function&, const Call&, std::string_view name);
    Path path_of(const Function&, const Operand&, const Caller& given, int depth);
    bool is_beside_code(const Function&, const Operand&);
    Path path_joined(const Function&, const Call&, const Caller& given, int depth);

    const Operand* keep(Operand);
    Symbol package_of(const Function& f) const { return packages_.get(f.span.file); }

    bool add_callees(const Function&, const Operand&, std::vector<Candidate>& out, int depth);
    bool add_items(const Function&, const Operand& container, std::vector<Candidate>& out, int depth);
    bool add_attribute(const Function&, const Call&, std::vector<Candidate>& out);
    struct Made {
        const Function* init = nullptr;
        std::vector<const Call*> calls;
    };
    Made made_for_self(Symbol in_class, Symbol attribute) const;
    bool add_branches(const Function&, Symbol name, std::uint32_t before_line, std::vector<Candidate>& out,
                      int depth);
    bool add_global(const Function&, const Operand&, std::vector<Candidate>& out, int depth);
    bool add_held(const Function&, const Operand&, std::vector<Candidate>& out, int depth);
    bool add_passed_items(const Function&, std::int32_t param, std::vector<Candidate>& out, int depth);
    bool add_contents(const Function&, const Call& made, std::vector<Candidate>& out, int depth);
    bool add_later(const Function&, Symbol container, std::vector<Candidate>& out, int depth);
    bool add_display(const Function&, const Call&, std::vector<Candidate>& out, int depth);
    bool add_returned(const Function&, std::vector<Candidate>& out, int depth);
    bool add_registered(Symbol container, std::vector<Candidate>& out);
    void add_option(const Caller&);
    void read_registries(const std::vector<Unit>& units, const std::vector<Caller>& stores);
    void add_decorated(const Function&, const std::unordered_map<Symbol, Symbol>& tables);

    const Names& names_;
    NameFinder finder_;
    Configurations configurations_{finder_};
    GroupsBySymbol<Caller> callers_;
    BySymbol<Symbol> packages_;                                                           // by file
    std::unordered_map<Symbol, std::vector<std::pair<Caller, const Operand*>>> options_;  // defaults, by name
    std::unordered_map<Symbol, std::vector<Candidate>> registered_;                       // by container
    FactMap<Known> known_;
    FactMap<Object> objects_;
    std::unordered_map<std::uint64_t, Place> of_self_;  // by class and name
    int places_ = 0;                                    // being looked for
    bool has_data_ = false;                             // the program has data files
    std::unordered_set<Symbol> stored_keys_;  // with data files: the constant keys that code stores to
    std::deque<Operand> made_;
    std::unordered_map<const Function*, const Operand*> returned_;  // of properties with several `return`s
    int depth_ = 0;
};

}  // namespace mp::lint
