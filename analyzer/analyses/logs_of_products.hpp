#pragma once

// Matrix products whose result goes into a logarithm: log-mel features, log-sum-exp by hand. What needs a
// logarithm spans more powers of ten than fp16 has.

#include <vector>

#include "analyzer/analyses/context.hpp"

namespace mp::lint {

struct LogOfProduct {
    const Function* function = nullptr;  // of the product
    const Call* product = nullptr;
    const Call* log = nullptr;
};

// Each product once; the value is followed through clamps, constant factors and the program's own
// functions. Products of values that are bounded (softmax) are omitted.
std::vector<LogOfProduct> logs_of_products(const Program&);

}  // namespace mp::lint
