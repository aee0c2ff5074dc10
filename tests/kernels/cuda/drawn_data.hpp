#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/numerics/dtype.hpp"

// Elements for the checks of the GPU's kernels: the same for the same arguments, on every machine.

namespace mp::cuda {

// SplitMix64: quick and the same everywhere.
struct Random {
    std::uint64_t state;
    std::uint64_t next() {
        std::uint64_t z = state += 0x9E3779B97F4A7C15u;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
        z = (z ^ z >> 27) * 0x94D049BB133111EBu;
        return z ^ z >> 31;
    }
    double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
    // Roughly N(0, 1): the sum of four uniforms.
    double normal() {
        double sum = -2;
        for (int i = 0; i < 4; ++i) sum += uniform();
        return sum * std::sqrt(3.0);
    }
};

enum class Data { normal, zeros, relu, tiny, huge, far_from_zero, constant, mixed, patterns, saturated };
inline constexpr Data kAllData[] = {Data::normal,   Data::zeros,         Data::relu,     Data::tiny,
                                    Data::huge,     Data::far_from_zero, Data::constant, Data::mixed,
                                    Data::patterns, Data::saturated};

const char* name(Data);
// n elements of a format.
std::vector<unsigned char> make(Data, DType, std::size_t n, std::uint64_t seed);

}  // namespace mp::cuda
