#include "tests/kernels/cuda/drawn_data.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>

#include "kernels/cpu/walk.hpp"
#include "kernels/numerics/convert.hpp"

namespace mp::cuda {
namespace {

double draw(Data data, DType dtype, Random& random, std::size_t i) {
    const FloatFormat& f = *format_of(dtype);
    const bool narrow = f.exponent_bits < 8;
    switch (data) {
        case Data::normal:
        case Data::patterns:
            return random.normal();
        case Data::zeros:
            return i % 2 ? 0.0 : -0.0;
        case Data::relu:
            return std::max(0.0, random.normal());
        case Data::tiny:
            return random.normal() * (narrow ? 4 * min_normal(f) : 1e-30);
        case Data::huge:
            return random.normal() * (narrow ? max_finite(f) / 4 : 1e36);
        case Data::far_from_zero:
            return 100 + random.normal();
        case Data::constant:
            return -1.25;
        case Data::saturated:
            return random.uniform() < 0.2 ? max_finite(f) : random.normal();
        case Data::mixed: {
            const double u = random.uniform();
            const double infinity = std::numeric_limits<double>::infinity();
            if (u < 0.001) return infinity;
            if (u < 0.002) return -infinity;
            if (u < 0.003) return std::numeric_limits<double>::quiet_NaN();
            if (u < 0.1) return 0;
            return random.normal() * (u < 0.2 ? min_normal(f) : 1);
        }
    }
    return 0;
}

// Elements are drawn in blocks with their own seeds, so that threads may share the work.
constexpr std::size_t kDrawn = 1 << 16;

void make_block(Data data, DType dtype, std::size_t first, std::size_t end, std::uint64_t seed,
                unsigned char* out) {
    Random random{seed * 1000003 + first * 7919 + static_cast<std::uint64_t>(data) * 31 +
                  static_cast<std::uint64_t>(dtype)};
    for (std::size_t i = first; i < end; ++i) {
        std::uint64_t pattern = 0;
        if (data == Data::patterns && dtype != DType::fp64) {
            pattern = random.next();
        } else {
            double x = draw(data, dtype, random, i);
            if (data == Data::patterns) x = std::ldexp(x, static_cast<int>(random.next() % 900) - 450);
            pattern = detail::encode_bits(*format_of(dtype), __builtin_bit_cast(std::uint64_t, x),
                                          Overflow::as_format);
        }
        std::memcpy(out + i * cpu::width_of(dtype), &pattern, cpu::width_of(dtype));
    }
}

}  // namespace

const char* name(Data data) {
    constexpr const char* kNames[] = {"normal",        "zeros",    "relu",  "tiny",     "huge",
                                      "far from zero", "constant", "mixed", "patterns", "saturated"};
    return kNames[static_cast<int>(data)];
}

std::vector<unsigned char> make(Data data, DType dtype, std::size_t n, std::uint64_t seed) {
    std::vector<unsigned char> bytes(n * cpu::width_of(dtype));
    const std::size_t blocks = (n + kDrawn - 1) / kDrawn;
    const auto work = [&](std::size_t start, std::size_t step) {
        for (std::size_t b = start; b < blocks; b += step)
            make_block(data, dtype, b * kDrawn, std::min(n, (b + 1) * kDrawn), seed, bytes.data());
    };
    const std::size_t threads =
        blocks < 8 ? 1 : std::min<std::size_t>(std::thread::hardware_concurrency(), 16);
    std::vector<std::thread> helpers;
    for (std::size_t t = 1; t < threads; ++t) helpers.emplace_back(work, t, threads);
    work(0, std::max<std::size_t>(threads, 1));
    for (std::thread& t : helpers) t.join();
    return bytes;
}

}  // namespace mp::cuda
