#pragma once

#include <map>
#include <string>
#include <tuple>

#include "runtime/fold/exact_sum.hpp"
#include "runtime/fold/run_model.hpp"

// Adds up the sketches of products, and keeps the worst of each place.

namespace mp::trace {

// By how much the rows of a sketched product that are farthest off exceed what rounding explains, and by how much more
// than all others do: in squares. Infinity: the others have no error.
struct LocalExcess {
    double rounding = 0;  // of the rows, in what rounding explains of them
    double others = 0;    // of the rows, in what the other rows have of theirs
};
LocalExcess local_excess(const ProductRecord&);

class ProductTable {
public:
    void add(const ProductRecord&, Place);
    void merge(const ProductTable&);
    void put(RunModel&) const;

private:
    using Key = std::tuple<std::string, std::string, Phase, DType>;
    struct State {
        ProductRecord worst;
        Place at;
        std::uint64_t products = 0;
        ExactSum error_squares, squares, rounding_squares;
    };
    static constexpr std::size_t kMost = 20'000;

    void merge(const Key&, const State&);

    std::map<Key, State> states_;
};

}  // namespace mp::trace
