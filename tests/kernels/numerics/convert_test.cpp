#include "kernels/numerics/convert.hpp"
#include "tests/fakes/source_dir.hpp"

#include <bit>
#include <cmath>
#include <fstream>
#include <limits>
#include <random>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace mp {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// ---- Independent answers. ------------------------------------------------------------------------

// The compiler's own fp16: hardware or runtime library, not our table.
std::uint16_t compiler_fp16(double x) { return std::bit_cast<std::uint16_t>(static_cast<_Float16>(x)); }
double compiler_fp16_value(std::uint16_t p) { return static_cast<double>(std::bit_cast<_Float16>(p)); }

// bf16 is the upper half of an fp32: adding half a step, one less when the kept part is even, rounds.
std::uint16_t upper_half_bf16(float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    return static_cast<std::uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}
double upper_half_value(std::uint16_t p) { return std::bit_cast<float>(static_cast<std::uint32_t>(p) << 16); }

template <DType D>
bool is_nan_pattern(std::uint64_t p) {
    return std::isnan(decode<D>(static_cast<Pattern<D>>(p)));
}

// ---- Round trips: every pattern of the formats that are small enough. ----------------------------

template <DType D>
std::size_t count_round_trip_faults() {
    std::size_t faults = 0;
    for (std::uint64_t p = 0; p < (std::uint64_t{1} << kFormat<D>.width()); ++p) {
        const auto pattern = static_cast<Pattern<D>>(p);
        const auto back = encode<D>(decode<D>(pattern));
        const bool same = back == pattern;
        faults += is_nan_pattern<D>(p) ? !is_nan_pattern<D>(back) : !same;
        faults += encode<D>(decode_float<D>(pattern)) != back;
    }
    return faults;
}

TEST(Convert, EveryPatternSurvivesTheRoundTrip) {
    EXPECT_EQ(count_round_trip_faults<DType::fp16>(), 0);
    EXPECT_EQ(count_round_trip_faults<DType::bf16>(), 0);
    EXPECT_EQ(count_round_trip_faults<DType::e4m3>(), 0);
    EXPECT_EQ(count_round_trip_faults<DType::e5m2>(), 0);
    EXPECT_EQ(count_round_trip_faults<DType::tf32>(), 0);
}

TEST(Convert, QuietNansKeepSignAndPayload) {
    for (const int p : {0x7E00, 0x7E01, 0x7FFF, 0xFE00, 0xFFAB})
        EXPECT_EQ(encode<DType::fp16>(decode<DType::fp16>(static_cast<std::uint16_t>(p))), p);
    EXPECT_EQ(encode<DType::fp16>(decode<DType::fp16>(0x7C01)), 0x7E01) << "signalling becomes quiet";
    EXPECT_EQ(encode<DType::e4m3>(-std::nan("")), 0xFF);
}

// ---- Against other implementations. --------------------------------------------------------------

TEST(Convert, DecodesEveryFp16AsTheCompilerDoes) {
    for (unsigned p = 0; p < 0x10000; ++p) {
        const auto pattern = static_cast<std::uint16_t>(p);
        const double expected = compiler_fp16_value(pattern);
        if (std::isnan(expected))
            ASSERT_TRUE(is_nan_pattern<DType::fp16>(p)) << p;
        else
            ASSERT_EQ(std::bit_cast<std::uint64_t>(decode<DType::fp16>(pattern)),
                      std::bit_cast<std::uint64_t>(expected))
                << p;
    }
}

TEST(Convert, DecodesEveryBf16AsTheUpperHalfOfAnFp32) {
    for (unsigned p = 0; p < 0x10000; ++p) {
        const auto pattern = static_cast<std::uint16_t>(p);
        const double expected = upper_half_value(pattern);
        if (std::isnan(expected))
            ASSERT_TRUE(is_nan_pattern<DType::bf16>(p)) << p;
        else
            ASSERT_EQ(std::bit_cast<std::uint64_t>(decode<DType::bf16>(pattern)),
                      std::bit_cast<std::uint64_t>(expected))
                << p;
    }
}

// The midpoint of each pair of neighbours, and the doubles beside it: where rounding is decided.
TEST(Convert, RoundsEveryFp16MidpointAsTheCompilerDoes) {
    for (std::uint16_t p = 0; p < 0x7C00; ++p) {
        const double low = compiler_fp16_value(p);
        const double high = p == 0x7BFF ? 65536 : compiler_fp16_value(static_cast<std::uint16_t>(p + 1));
        const double middle = (low + high) / 2;
        for (const double x : {std::nextafter(middle, 0), middle, std::nextafter(middle, kInf)}) {
            ASSERT_EQ(encode<DType::fp16>(x), compiler_fp16(x)) << x;
            ASSERT_EQ(encode<DType::fp16>(-x), compiler_fp16(-x)) << -x;
        }
    }
}

TEST(Convert, RoundsEveryBf16MidpointAsTheUpperHalfDoes) {
    for (std::uint32_t p = 0; p < 0x7F80; ++p)
        for (const std::uint32_t low : {0x7FFFu, 0x8000u, 0x8001u, 0x0001u, 0xFFFFu}) {
            const float x = std::bit_cast<float>(p << 16 | low);
            ASSERT_EQ(encode<DType::bf16>(x), upper_half_bf16(x)) << x;
            ASSERT_EQ(encode<DType::bf16>(-x), upper_half_bf16(-x)) << -x;
        }
}

TEST(Convert, RoundsRandomBitsAsTheCompilerDoes) {
    std::mt19937_64 random(20240607);
    for (int i = 0; i < 300000; ++i) {
        const std::uint64_t bits = random();
        const double d = std::bit_cast<double>(bits);
        if (std::isnan(d)) continue;
        const float f = static_cast<float>(d);
        ASSERT_EQ(encode<DType::fp32>(d), std::bit_cast<std::uint32_t>(f)) << d;
        ASSERT_EQ(encode<DType::fp64>(d), bits);
        ASSERT_EQ(encode<DType::fp16>(d), compiler_fp16(d)) << d;
        const float any = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
        if (std::isnan(any)) continue;
        ASSERT_EQ(encode<DType::fp16>(any), compiler_fp16(any)) << any;
        ASSERT_EQ(encode<DType::bf16>(any), upper_half_bf16(any)) << any;
        ASSERT_EQ(decode<DType::fp32>(std::bit_cast<std::uint32_t>(any)), static_cast<double>(any));
    }
}

double parse_value(const std::string& text) {
    return text == "nan" ? std::nan("") : std::strtod(text.c_str(), nullptr);
}

template <DType D>
void check_decode(std::uint8_t pattern, double expected) {
    if (std::isnan(expected))
        EXPECT_TRUE(is_nan_pattern<D>(pattern)) << int(pattern);
    else
        EXPECT_EQ(std::bit_cast<std::uint64_t>(decode<D>(pattern)), std::bit_cast<std::uint64_t>(expected))
            << int(pattern);
}

// data/fp8_oracle.txt was written by another implementation; see data/fp8_oracle.py.
TEST(Convert, AgreesWithAnotherImplementationOfFp8) {
    std::ifstream in(std::string(mp_source_dir()) + "/tests/kernels/numerics/data/fp8_oracle.txt");
    ASSERT_TRUE(in);
    int checked = 0;
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        std::string what, format, left, right;
        if (!(words >> what >> format >> left >> right) || what == "#") continue;
        ++checked;
        const bool decoding = what == "decode";
        const auto pattern = static_cast<std::uint8_t>(std::stoi(decoding ? left : right, nullptr, 16));
        const double value = parse_value(decoding ? right : left);
        if (decoding && format == "e4m3")
            check_decode<DType::e4m3>(pattern, value);
        else if (decoding)
            check_decode<DType::e5m2>(pattern, value);
        else if (format == "e4m3")
            EXPECT_EQ(encode<DType::e4m3>(value), pattern) << line;
        else
            EXPECT_EQ(encode<DType::e5m2>(value), pattern) << line;
    }
    EXPECT_GT(checked, 1200);
}

// ---- Answers known by hand. ----------------------------------------------------------------------

TEST(Convert, TiesGoToEven) {
    EXPECT_EQ(*round_to(DType::fp16, 2049), 2048);
    EXPECT_EQ(*round_to(DType::fp16, 2051), 2052);
    EXPECT_EQ(*round_to(DType::bf16, 257), 256);
    EXPECT_EQ(*round_to(DType::bf16, 259), 260);
    EXPECT_EQ(*round_to(DType::bf16, -259), -260);
    EXPECT_EQ(*round_to(DType::e4m3, 17), 16);
    EXPECT_EQ(*round_to(DType::e4m3, 19), 20);
    EXPECT_EQ(*round_to(DType::tf32, 2049), 2048);
    EXPECT_EQ(*round_to(DType::fp32, 16777217), 16777216);
}

TEST(Convert, ConstantsThatTrainingCodeUsesRoundAsKnown) {
    EXPECT_EQ(encode<DType::fp16>(1.0), 0x3C00);
    EXPECT_EQ(encode<DType::bf16>(1.0f), 0x3F80);
    EXPECT_EQ(encode<DType::e4m3>(1.0), 0x38);
    EXPECT_EQ(encode<DType::e5m2>(1.0), 0x3C);
    EXPECT_EQ(*round_to(DType::fp16, 1e-8), 0) << "the epsilon that vanishes";
    EXPECT_EQ(*round_to(DType::fp16, -1e9), -kInf) << "the mask value that overflows";
    EXPECT_EQ(*round_to(DType::bf16, 0.999), 1) << "the decay rate that becomes one";
    EXPECT_EQ(*round_to(DType::fp16, 0.1), 0.0999755859375);
}

TEST(Convert, OverflowFollowsTheFormat) {
    EXPECT_EQ(*round_to(DType::fp16, 65519.999), 65504);
    EXPECT_EQ(*round_to(DType::fp16, 65520), kInf);
    EXPECT_EQ(*round_to(DType::e5m2, 61440), kInf);
    EXPECT_EQ(*round_to(DType::e4m3, 464), 448);
    EXPECT_TRUE(std::isnan(*round_to(DType::e4m3, 464.1)));
    EXPECT_TRUE(std::isnan(*round_to(DType::e4m3, kInf)));
    EXPECT_EQ(*round_to(DType::fp32, 1e39), kInf);
    EXPECT_EQ(*round_to(DType::fp64, 1e308), 1e308);
}

TEST(Convert, SaturationKeepsTheLargestValueAndNan) {
    EXPECT_EQ(*round_to(DType::e4m3, 1e6, Overflow::saturate), 448);
    EXPECT_EQ(*round_to(DType::e4m3, -kInf, Overflow::saturate), -448);
    EXPECT_EQ(*round_to(DType::fp16, 65520, Overflow::saturate), 65504);
    EXPECT_TRUE(std::isnan(*round_to(DType::e4m3, std::nan(""), Overflow::saturate)));
}

TEST(Convert, SubnormalsAndZeroKeepTheirSign) {
    EXPECT_EQ(*round_to(DType::fp16, 0x1p-24), 0x1p-24);
    EXPECT_EQ(*round_to(DType::fp16, 0x1p-25), 0);
    EXPECT_EQ(*round_to(DType::fp16, std::nextafter(0x1p-25, 1)), 0x1p-24);
    EXPECT_EQ(encode<DType::fp16>(-0.0), 0x8000);
    EXPECT_EQ(encode<DType::fp16>(-0x1p-26), 0x8000);
    EXPECT_EQ(encode<DType::bf16>(std::numeric_limits<float>::denorm_min()), 0);
    EXPECT_EQ(*round_to(DType::fp64, 0x1p-1074), 0x1p-1074);
    EXPECT_EQ(decode<DType::fp64>(1), 0x1p-1074);
}

TEST(Convert, RoundsOnceFromFp64) {
    // Just above a bf16 midpoint, and the midpoint itself once rounded to fp32 on the way.
    const double x = 1 + 0x1p-8 + 0x1p-40;
    EXPECT_EQ(*round_to(DType::bf16, x), 1 + 0x1p-7);
    EXPECT_EQ(encode<DType::bf16>(static_cast<float>(x)), 0x3F80);
}

TEST(Convert, DtypesWithoutAFormatAreNotRounded) {
    for (const DType d : {DType::unknown, DType::lowp, DType::int32, DType::boolean})
        EXPECT_EQ(round_to(d, 1.5), std::nullopt) << name_of(d);
}

static_assert(encode<DType::fp16>(65520.0) == 0x7C00, "conversions are constant expressions");

}  // namespace
}  // namespace mp
