#pragma once

// Dtypes of parameters and results over the whole program. A parameter has a dtype when every known
// caller passes the same one, a result when every `return` has the same one.

#include <vector>

#include "analyzer/region/graph.hpp"
#include "analyzer/region/program.hpp"

namespace mp::lint {

class DTypes {
public:
    static constexpr std::size_t kMaxNotes = 8;

    explicit DTypes(const Graph&);

    ResolvedDType of(std::uint32_t f, const Operand&) const;

private:
    // A parameter or a result. It is `unseen` until a dtype flows into it, then `known`, and
    // `unknown` for good once two dtypes disagree.
    struct Slot {
        enum class Is : std::uint8_t { unseen, known, unknown } is = Is::unseen;
        DType dtype = DType::unknown;
        std::int32_t source = kNone;     // the slot it came from
        const SourceSpan* at = nullptr;  // the argument's call, or the returning function
    };
    struct Flow {
        std::uint32_t from = 0;
        std::uint32_t to = 0;
        const SourceSpan* at = nullptr;
    };

    std::uint32_t param_slot(std::uint32_t f, std::int32_t p) const {
        return first_slot_[f] + 1 + static_cast<std::uint32_t>(p);
    }
    std::uint32_t result_slot(std::uint32_t f) const { return first_slot_[f]; }
    std::uint32_t owner_of(std::uint32_t slot) const;

    void connect();
    void connect_call(std::uint32_t f, std::size_t call);
    // Lets an operand's dtype flow into a slot; records a dependency when it comes from another
    // slot.
    void flow(std::uint32_t f, const Operand&, std::uint32_t to, const SourceSpan* at);
    void merge(std::uint32_t slot, DType, std::int32_t source, const SourceSpan* at);
    void set_unknown(std::uint32_t slot);
    void sort_flows();
    void settle();
    template <class Visit>
    bool for_each_source(std::uint32_t f, const Operand&, Visit) const;
    Note note_of(std::uint32_t slot) const;

    const Graph& graph_;
    std::vector<std::uint32_t> first_slot_;  // per function: its result, then its parameters
    std::vector<Slot> slots_;
    std::vector<Flow> flows_;                // by the slot they come from
    std::vector<std::uint32_t> first_flow_;  // per slot
    std::vector<std::uint32_t> changed_;
};

}  // namespace mp::lint
