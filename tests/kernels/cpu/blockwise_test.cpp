#include "kernels/cpu/blockwise.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace mp::cpu {
namespace {

using blockwise::Table;

// 256 values that are not evenly spaced: i * |i|.
Table uneven_table() {
    std::vector<float> values;
    for (int i = 0; i < blockwise::kCodes; ++i) {
        const float x = static_cast<float>(i - 128) / 127;
        values.push_back(x * std::abs(x));
    }
    Table table;
    EXPECT_TRUE(blockwise::make_table(values.data(), table));
    return table;
}

struct Quantized {
    std::vector<std::uint8_t> codes;
    std::vector<float> scales;
    explicit Quantized(const Table& table, const std::vector<float>& values)
        : codes(values.size()), scales((values.size() + 255) / 256) {
        quantize(table, values.data(), range());
    }
    QuantizedRange range() { return {static_cast<std::int64_t>(codes.size()), codes.data(), scales.data()}; }
    std::vector<float> decoded(const Table& table) {
        std::vector<float> values(codes.size());
        dequantize(table, range(), values.data());
        return values;
    }
};

std::vector<float> random_values(std::size_t n) {
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    std::vector<float> values(n);
    for (float& x : values) x = normal(random) * std::exp(4 * normal(random));
    return values;
}

TEST(Blockwise, TakesTheNearestValueOfTheTable) {
    const Table table = uneven_table();
    const std::vector<float> values = random_values(1000);  // the last block is shorter
    Quantized quantized(table, values);
    for (std::size_t i = 0; i < values.size(); ++i) {
        const std::size_t block = i / 256;
        float largest = 0;
        for (std::size_t k = block * 256; k < std::min(values.size(), block * 256 + 256); ++k)
            largest = std::max(largest, std::abs(values[k]));
        ASSERT_EQ(quantized.scales[block], largest);
        const double share = static_cast<double>(values[i]) / largest;
        const auto distance = [&](int code) {
            return std::abs(static_cast<double>(table.value[code]) - share);
        };
        for (int code = 0; code < blockwise::kCodes; ++code)
            ASSERT_LE(distance(quantized.codes[i]), distance(code) + 1e-7) << values[i];
    }
}

TEST(Blockwise, DecodesToCodeTimesScale) {
    const Table table = uneven_table();
    Quantized quantized(table, random_values(600));
    const std::vector<float> values = quantized.decoded(table);
    for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_EQ(values[i], table.value[quantized.codes[i]] * quantized.scales[i / 256]);
}

TEST(Blockwise, AMiddleGoesToTheUpperValue) {
    const Table table = uneven_table();
    const float middle = (table.value[200] + table.value[201]) * 0.5f;
    EXPECT_EQ(blockwise::code_of(table, middle), 201);
    EXPECT_EQ(blockwise::code_of(table, std::nextafter(middle, 0.0f)), 200);
    EXPECT_EQ(blockwise::code_of(table, 2), 255);
    EXPECT_EQ(blockwise::code_of(table, -2), 0);
}

TEST(Blockwise, ABlockOfZerosStaysZero) {
    const Table table = uneven_table();
    Quantized quantized(table, std::vector<float>(300, 0.0f));
    EXPECT_EQ(quantized.scales, (std::vector<float>{0, 0}));
    EXPECT_EQ(quantized.decoded(table), std::vector<float>(300, 0.0f));
}

TEST(Blockwise, AValueThatIsNotFiniteSpoilsItsBlockAlone) {
    const Table table = uneven_table();
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        std::vector<float> values = random_values(600);
        values[300] = bad;
        const std::vector<float> decoded = Quantized(table, values).decoded(table);
        for (std::size_t i = 0; i < values.size(); ++i)
            ASSERT_EQ(std::isfinite(decoded[i]), i / 256 != 1) << i;
    }
}

TEST(Blockwise, RefusesATableThatIsNotSortedOrNotFinite) {
    Table table = uneven_table(), unused;
    std::swap(table.value[3], table.value[4]);
    EXPECT_FALSE(blockwise::make_table(table.value, unused));
    table = uneven_table();
    table.value[255] = std::numeric_limits<float>::infinity();
    EXPECT_FALSE(blockwise::make_table(table.value, unused));
}

}  // namespace
}  // namespace mp::cpu
