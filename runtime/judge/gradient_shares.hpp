#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/fold/run_model.hpp"

namespace mp::trace {

// How much of the gradients' error an op explains. Reads all ops of the run once, for all ops that ask. It must not
// outlive the model.
class GradientShares {
public:
    explicit GradientShares(const RunModel&);

    struct Share {
        double sampled = 1;  // over the sampled steps; 1 without gradients of a twin
        double first = -1;   // in the first of them, before run and twin part; -1 without gradients of a twin
    };
    // The share of the error's squares that the op explains. It counts the gradients of the op's layer, or those that
    // are computed after it if its layer has none, and of each at most what `error`, the relative error of the op's
    // results, makes of it. The last product or sum of its layer makes gradients itself, such as a bias's, so it and
    // what comes after it explain none that has more elements than their results.
    Share of(const OpRecord&, double error) const;
    // The same of all gradients that are computed after the op, which has no part in those of its own layer.
    Share after(const OpRecord&, double error) const;

private:
    template <class Chosen>
    Share explained(double error, Chosen) const;  // of the gradients that are chosen
    bool ends_before(std::string_view layer, std::uint64_t op) const;
    bool contracts_last(const OpRecord&) const;

    std::vector<std::pair<const TensorSum*, std::string_view>> gradients_;  // with their layer
    std::set<std::string_view> owners_;
    // By layer: the ordinal of its last op in backward. The gradients of its parameters are complete then.
    std::map<std::string_view, std::uint64_t> ends_of_backward_;
    std::map<std::string_view, std::uint64_t> last_contraction_;  // the same of products and sums
    double ranks_ = 1;                                            // whose elements a TensorSum adds up
    double all_ = 0, first_all_ = 0;
};

}  // namespace mp::trace
