#pragma once

#include <map>
#include <string>
#include <tuple>

#include "runtime/fold/exact_sum.hpp"
#include "runtime/fold/run_model.hpp"

// Adds up the sketches of products, and keeps the worst of each place.

namespace mp::trace {

// How far off the worst rows of a sketched product are. The measure is their squared error divided by the squared error
// that rounding explains.
struct LocalExcess {
    double rounding = 0;  // the measure of the worst rows
    double others = 0;    // that measure divided by the one of all other rows; infinity: those have no error
    // Neither is NaN: a NaN in the record is the worst, and makes its measure infinite.
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
