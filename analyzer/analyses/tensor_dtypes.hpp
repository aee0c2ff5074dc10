#pragma once

// The dtype of a tensor where it is used, as far as facts and policies show it: through ops that keep
// their input's dtype, through ops that an autocast region casts, and through the program's own
// functions.

#include <array>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "analyzer/analyses/context.hpp"
#include "analyzer/region/calls.hpp"
#include "analyzer/region/fact_key.hpp"

namespace mp::lint {

class ModuleDTypes;

struct TensorDType {
    DType dtype = DType::unknown;
    bool proven = true;       // it holds on every path that is known
    bool output = false;      // of a model whose code is not known: its last op may have cast it
    bool of_model = false;    // ... or what was read of it, or passed on
    std::vector<Note> chain;  // the calls it came through, outermost first
};

// How an answer was found.
struct WayToAnswer {
    int height = 0;        // nested questions
    bool is_open = false;  // one of them was still being looked for, so the answer depends on who asked first
    bool asks_modules = false;  // the dtypes of modules decide it, for those that ask for them

    void add(const WayToAnswer& part);
};

struct TensorAnswer {
    TensorDType found;
    WayToAnswer way;
};

// Answers that are the same whoever asks, and in whatever order: those that are not open. Safe to use from any thread.
class TensorAnswers {
public:
    // nullptr: there is none. An answer stays in its place.
    const TensorAnswer* find(FactKey) const;
    const TensorAnswer& add(FactKey, TensorAnswer) const;

private:
    struct Part {
        std::mutex mutex;
        FactMap<TensorAnswer> answers;
    };
    Part& part_of(FactKey key) const { return parts_[key.hash() >> 58]; }

    mutable std::array<Part, 64> parts_;
};

class TensorDTypes {
public:
    explicit TensorDTypes(const RuleContext&);

    TensorDType of(const Function&, const Operand&);

    // What a model returns has the dtype of its parameters, wherever it was cast or loaded.
    void ask(ModuleDTypes& modules) { modules_ = &modules; }

private:
    TensorDType of_result(const Function&, const Call&);
    TensorDType of_op(const Function&, const Call&);
    TensorDType of_returned(const Function& callee);
    template <typename Find>
    TensorDType of_returned(const Function& callee, Find find);
    TensorDType of_item(const Function&, const Item&);
    TensorDType of_module_operand(const Function&, const Operand& module, const Call& at);
    TensorDType of_candidates(const Function&, const Call&);
    TensorDType of_kept(const Function&, const Operand&);
    TensorDType of_asked(const Function&, const Call&);
    TensorDType of_earlier_value(const Function&, const Operand&);
    TensorDType of_output(const Function&, const Operand&);
    TensorDType of_forward(const Function&, const Call&);
    TensorDType of_sequential(const Function&, const Call&, const Context& region);
    TensorDType of_parameter(const Function&, std::int32_t param);
    TensorDType of_given(const Function&, std::int32_t param) const;
    bool is_passed_number(const Function&, const Operand&) const;
    bool is_test(Symbol file) const;
    TensorDType of_inputs(const Function&, const Call&, std::vector<DType>* inputs);

    // Answers are kept, and one that is being looked for is unknown: recursion in the program ends
    // there.
    template <typename Find>
    TensorDType once(const void* fact, std::int32_t index, Find find);
    const TensorAnswer* shared(FactKey) const;
    const TensorAnswer* keep(FactKey, TensorDType);
    const TensorAnswer* give_up();

    // nullptr: no dtypes of modules are asked for. What comes of it depends on that.
    ModuleDTypes* modules() {
        way_.asks_modules = true;
        return modules_;
    }
    const Call* last_named(const Function&, Symbol name, std::uint32_t before_line);

    // What an op's name alone determines, computed once per op.
    struct OpTraits {
        bool is_known = false;
        bool takes_several = false;  // tensors
    };
    const OpTraits& traits(Op);

    struct Question {
        const TensorAnswer* answer = nullptr;
        bool is_asked = false;  // and has no answer yet
    };
    struct NamedResult {
        Symbol name;
        std::uint32_t call = 0;
        friend auto operator<=>(const NamedResult&, const NamedResult&) = default;
    };

    const RuleContext& context_;
    const TensorAnswers& shared_;
    ModuleDTypes* modules_ = nullptr;
    FactMap<Question> questions_;
    std::deque<TensorAnswer> own_;  // answers that cannot be shared
    std::unordered_map<Symbol, OpTraits> traits_;
    // The calls whose results have a name, by function.
    std::unordered_map<const Function*, std::vector<NamedResult>> results_;
    WayToAnswer way_;
    int depth_ = 0;
    bool is_too_deep_ = false;  // the question that was asked first has no answer
};

}  // namespace mp::lint
