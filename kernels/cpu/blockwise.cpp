#include "kernels/cpu/blockwise.hpp"

#include <algorithm>

#include "kernels/cpu/float_environment.hpp"

namespace mp::cpu {
namespace {

using blockwise::kBlock;
using blockwise::Table;

float scale_of(const float* values, std::int64_t elements) {
    float largest = 0;
    for (std::int64_t i = 0; i < elements; ++i) largest = blockwise::larger(largest, values[i]);
    return largest;
}

}  // namespace

void quantize(const Table& table, const float* values, const QuantizedRange& into) noexcept {
    const FloatEnvironment environment;
    for (std::int64_t first = 0; first < into.elements; first += kBlock) {
        const std::int64_t end = std::min(first + kBlock, into.elements);
        const float scale = scale_of(values + first, end - first);
        into.scales[first / kBlock] = scale;
        for (std::int64_t i = first; i < end; ++i)
            into.codes[i] = blockwise::code_of(table, blockwise::share_of(values[i], scale));
    }
}

void dequantize(const Table& table, const QuantizedRange& from, float* values) noexcept {
    const FloatEnvironment environment;
    for (std::int64_t i = 0; i < from.elements; ++i)
        values[i] = blockwise::decoded(table, from.codes[i], from.scales[i / kBlock]);
}

}  // namespace mp::cpu
