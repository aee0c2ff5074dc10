#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "instrument/cuda/events.hpp"
#include "instrument/cuda/ranges.hpp"
#include "runtime/trace/records.hpp"

namespace mp::raw {

// A step whose calls are added up by place, op and dtype, and what is known of it beside its record.
struct StepTally {
    trace::StepRecord record;
    std::uint64_t calls = 0;  // so far: the order of events
    std::size_t open = 0;     // figures that are not there yet
    bool is_ended = false;
    std::set<int> devices;  // whose first product of the step has come
    // Ranges of backward and of the optimizer were in it; or the program reported whether it skipped it.
    bool trained = false, updated = false, told = false;
    int samples = 0;   // products of which elements were computed again
    int sketches = 0;  // reductions of which blocks were sketched

    // Count a call. The index of its op or collective in the record, and the call's number.
    struct Counted {
        std::size_t record = 0;
        std::uint64_t ordinal = 0;
    };
    Counted count(const Places&, PlaceId, int device, const Product&);
    Counted count(const Collective&);

    std::optional<std::size_t> find(const Collective&) const;
    // The sketch of a call of an op.
    void add(std::size_t op, trace::ProductRecord);
    // Products are where their ops are, which is known when the step has ended: after name_forward().
    void name_products();
    void add_algorithm(std::size_t collective, const std::string&);

    // Where one device did all, its number says nothing.
    void leave_out_devices();

    // A program whose ranges name its backward names its forward by leaving it without a name.
    void name_forward();
    void name_forward_times();

private:
    // What makes collectives alike, with the communicator and the rank in it.
    using Kind = std::tuple<std::string, std::string, DType, int, std::uint64_t, int>;
    static Kind kind_of(const Collective& c) {
        return {c.op, c.reduction, c.dtype, c.ranks, c.communicator, c.rank};
    }
    // The same call as others of its op, for the list of products.
    void count_matmul(std::size_t op, const Product&);

    std::map<std::tuple<PlaceId, const char*, DType, int>, std::size_t> ops_;  // with the device
    struct Asked {
        std::size_t op;
        DType a, b;
        int compute, parts;
        std::uint32_t epilogue, scheme;
        bool tf32, has_scales;
        auto operator<=>(const Asked&) const = default;
    };
    std::map<Asked, std::size_t> matmuls_;
    std::vector<std::size_t> ops_of_matmuls_;
    std::map<Kind, std::size_t> collectives_;
    std::map<std::size_t, std::set<std::string>> algorithms_;  // by collective
    std::vector<std::size_t> ops_of_products_;
};

}  // namespace mp::raw
