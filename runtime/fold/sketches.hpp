#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "runtime/fold/exact_sum.hpp"
#include "runtime/fold/run_model.hpp"

// Puts the sketches of all ranks together: what a reduction should have given is the sum of what its ranks sent.

namespace mp::trace {

class SketchTable {
public:
    void add(const SketchRecord&, Step, Rank process);
    void merge(const SketchTable&);
    // Adds the errors of the blocks of which all ranks are known to the collectives of the model.
    void put(RunModel&) const;

private:
    // Ranks that call different collectives at the same place have different keys, so they are never compared.
    using Key = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t,
                           std::uint64_t, DType, std::string, std::string>;
    // What a rank received. Of equal values the one of the lowest rank is kept.
    struct Received {
        double sum = 0, squares = 0;
        std::uint64_t rank = 0;  // in the communicator
        Rank process;
    };
    struct Block {
        Step step;
        ExactSum sent;
        std::uint64_t senders = 0, receivers = 0;
        Received least, most;
    };
    static constexpr std::size_t kMost = 1 << 20;

    void merge(const Key&, const Block&);

    std::map<Key, Block> blocks_;
};

}  // namespace mp::trace
