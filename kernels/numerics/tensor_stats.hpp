#pragma once

#include <array>
#include <cstdint>

namespace mp {

// Statistics of float values, widened exactly and never computed in the tensor's own dtype. merge() merges
// two objects: counts, extremes and the histogram exactly, moments by the formula of Chan, Golub and
// LeVeque (1983). An object with count 0 is neutral.
struct TensorStats {
    std::uint64_t count = 0;  // all elements
    std::uint64_t nan = 0;
    std::uint64_t pos_inf = 0;
    std::uint64_t neg_inf = 0;
    std::uint64_t zero = 0;       // +0 and -0
    std::uint64_t subnormal = 0;  // below the smallest normal value of the tensor's own format
    std::uint64_t saturated = 0;  // |x| is the largest finite value of the tensor's own format
    double amax = 0;              // largest finite magnitude; 0 when there is none
    double amin = 0;              // smallest magnitude above 0; 0 when there is none
    double sum = 0;               // of the finite values; so are mean and m2
    double sum_squares = 0;
    double mean = 0;
    double m2 = 0;  // sum of (x - mean)^2

    std::uint64_t nonfinite() const { return nan + pos_inf + neg_inf; }
    std::uint64_t finite() const { return count - nonfinite(); }
    void merge(const TensorStats&);
};

// The number of finite non-zero values with each exponent. Bin e + 127 holds [2^e, 2^(e+1)), like the
// exponent field of an fp32: bin 0 holds all values below 2^-126, bin 254 all values from 2^127 on, bin 255
// is unused. Zeros and non-finite values are counted in TensorStats. The histogram shows for any format how
// many values would overflow or flush to zero, and the effect of a loss scale: multiplying by 2^k shifts
// the bins.
struct ExponentHistogram {
    std::array<std::uint64_t, 256> bins{};

    void merge(const ExponentHistogram&);
};

}  // namespace mp
