#include <gtest/gtest.h>

#include <numeric>

#include "tests/kernels/cpu/expectations.hpp"

namespace mp::cpu {
namespace {

TensorView view(const void* data, DType dtype, std::vector<std::int64_t> sizes,
                std::vector<std::int64_t> strides) {
    TensorView v{data, dtype, static_cast<int>(sizes.size()), {}, {}};
    std::copy(sizes.begin(), sizes.end(), v.sizes);
    std::copy(strides.begin(), strides.end(), v.strides);
    return v;
}

// The elements of a view in row-major order, by the definition of strides.
std::vector<double> elements(const TensorView& v) {
    std::vector<double> all;
    std::vector<std::int64_t> index(static_cast<std::size_t>(v.dims), 0);
    std::int64_t count = 1;
    for (int i = 0; i < v.dims; ++i) count *= v.sizes[i];
    for (std::int64_t k = 0; k < count; ++k) {
        std::int64_t at = 0, rest = k;
        for (int i = v.dims - 1; i >= 0; --i) {
            at += rest % v.sizes[i] * v.strides[i];
            rest /= v.sizes[i];
        }
        const auto width = static_cast<std::int64_t>(oracle::width(v.dtype));
        all.push_back(oracle::value(v.dtype, static_cast<const char*>(v.data) + at * width, 0));
    }
    return all;
}

void check(const TensorView& v) {
    const oracle::Summary expected = oracle::summary(v.dtype, elements(v));
    TensorStats got;
    ExponentHistogram histogram;
    ASSERT_TRUE(statistics(v, got, &histogram));
    expect_same(got, expected.stats, promised(v.dtype, v.dtype));
    EXPECT_EQ(histogram.bins, expected.histogram.bins);
}

struct Layouts : testing::TestWithParam<DType> {
    std::vector<unsigned char> bytes = oracle::stored(GetParam(), oracle::normal(60000, 41));
    const unsigned char* at(std::size_t i) const { return bytes.data() + i * oracle::width(GetParam()); }
};

TEST_P(Layouts, AreReadAsTheirStridesSay) {
    const DType t = GetParam();
    check(view(at(0), t, {}, {}));
    check(view(at(0), t, {100, 77}, {77, 1}));
    check(view(at(0), t, {100, 77}, {1, 100}));
    check(view(at(0), t, {100, 77}, {200, 1}));
    check(view(at(0), t, {300, 33}, {150, 3}));
    check(view(at(0), t, {50, 60}, {0, 1}));
    check(view(at(0), t, {9000}, {0}));
    check(view(at(9999), t, {10000}, {-1}));
    check(view(at(9999), t, {100, 100}, {-100, -1}));
    check(view(at(0), t, {7, 1, 11, 13}, {13, 5, 91, 1}));
    check(view(at(0), t, {3, 4, 5, 6, 7, 2}, {1, 3, 12, 60, 720, 7000}));
    check(view(at(0), t, {5, 0, 3}, {1, 1, 1}));
    check(view(at(1), t, {2, 9000}, {20000, 1}));
}

INSTANTIATE_TEST_SUITE_P(Formats, Layouts, testing::ValuesIn(kMeasured),
                         [](const auto& p) { return std::string(name_of(p.param)); });

TEST(LayoutsOfTwo, PairTheSameElements) {
    const std::vector<double> values = oracle::normal(30000, 42), others = oracle::normal(30000, 43);
    const auto real = oracle::stored(DType::bf16, values), twin = oracle::stored(DType::fp32, others);
    const TensorView pairs[][2] = {
        {view(real.data(), DType::bf16, {90, 80}, {80, 1}),
         view(twin.data(), DType::fp32, {90, 80}, {1, 90})},
        {view(real.data(), DType::bf16, {90, 80}, {1, 90}),
         view(twin.data(), DType::fp32, {90, 80}, {80, 1})},
        {view(real.data(), DType::bf16, {90, 80}, {1, 90}),
         view(twin.data(), DType::fp32, {90, 80}, {1, 90})},
        {view(real.data(), DType::bf16, {4, 30, 50}, {0, 1, 30}),
         view(twin.data(), DType::fp32, {4, 30, 50}, {1500, 50, 1})},
    };
    for (const auto& pair : pairs) {
        Divergence got;
        ASSERT_TRUE(divergence(pair[0], pair[1], got));
        expect_same(got, oracle::paired(DType::bf16, elements(pair[0]), elements(pair[1])), kShortSum);
    }
}

}  // namespace
}  // namespace mp::cpu
