#pragma once

#include <cmath>
#include <limits>

namespace mp::trace {

// A sum of doubles in about 106 bits (Knuth's two-sum, renormalised), so that its rounding to a double does not
// depend on the order in which ranks are read. Infinities and NaN are kept.
struct ExactSum {
    double high = 0, low = 0;

    void add(double v) {
        const double sum = high + v;
        if (std::isfinite(sum)) {
            const double part = sum - high;
            low += (high - (sum - part)) + (v - part);
        } else {
            low = 0;
        }
        high = sum;
    }
    void add(const ExactSum& other) {
        add(other.high);
        if (std::isfinite(high)) add(other.low);
    }
    double value() const {
        if (std::isnan(high)) return std::numeric_limits<double>::quiet_NaN();  // always the same bits of NaN
        return std::isfinite(high) ? high + low : high;
    }
};

}  // namespace mp::trace
