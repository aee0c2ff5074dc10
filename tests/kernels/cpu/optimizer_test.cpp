#include "kernels/cpu/optimizer.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "tests/kernels/cpu/expectations.hpp"

namespace mp::cpu {
namespace {

using optim::StepCounts;

// A tensor's data: fp32 values of everything, and 16-bit patterns where it has them.
struct Tensors {
    std::vector<float> master, state, squares;
    std::vector<unsigned char> gradient;
    std::vector<std::uint16_t> copy;
    DType gradient_dtype, copy_dtype;

    Tensors(std::size_t n, DType gradient_of, DType copy_of)
        : gradient_dtype(gradient_of), copy_dtype(copy_of) {
        std::mt19937 random(7);
        std::normal_distribution<float> normal;
        std::vector<double> g(n);
        for (std::size_t i = 0; i < n; ++i) {
            master.push_back(normal(random));
            state.push_back(normal(random) * 1e-3f);
            squares.push_back(std::abs(normal(random)) * 1e-6f);
            g[i] = static_cast<double>(normal(random)) * 1e-3;
            if (i % 17 == 3) g[i] = 0, state[i] = 0;
        }
        gradient = oracle::stored(gradient_dtype, g);
        copy.resize(n);
        for (std::size_t i = 0; i < n; ++i) copy[i] = nearest(master[i]);
    }
    std::uint16_t nearest(float x) const {
        return copy_dtype == DType::bf16 ? encode<DType::bf16>(x) : encode<DType::fp16>(x);
    }
    float value(std::uint16_t raw) const {
        return copy_dtype == DType::bf16 ? decode_float<DType::bf16>(raw) : decode_float<DType::fp16>(raw);
    }
    float gradient_at(std::size_t i) const {
        const unsigned char* at = gradient.data() + i * oracle::width(gradient_dtype);
        if (gradient_dtype == DType::fp32) {
            float x;
            std::memcpy(&x, at, 4);
            return x;
        }
        std::uint16_t raw;
        std::memcpy(&raw, at, 2);
        return gradient_dtype == DType::bf16 ? decode_float<DType::bf16>(raw)
                                             : decode_float<DType::fp16>(raw);
    }
    OptimizerRange range(bool with_master, bool with_copy, std::size_t from = 0, std::size_t to = SIZE_MAX) {
        OptimizerRange r;
        r.elements = static_cast<std::int64_t>(std::min(to, copy.size()) - from);
        r.first = static_cast<std::int64_t>(from);
        r.master = with_master ? master.data() + from : nullptr;
        r.copy = with_copy ? copy.data() + from : nullptr;
        r.copy_dtype = copy_dtype;
        r.gradient = gradient.data() + from * oracle::width(gradient_dtype);
        r.gradient_dtype = gradient_dtype;
        r.state = state.data() + from;
        r.squares = squares.data() + from;
        return r;
    }
    friend bool operator==(const Tensors&, const Tensors&) = default;
};

constexpr std::size_t kElements = 1024 + 77;

optim::AdamW adamw() { return at_step(optim::AdamWOptions{.lr = 1e-3, .weight_decay = 0.1}, 3); }

// The step by the scalar definition.
template <class Step>
StepCounts expected(const Step& step, Tensors& t, bool with_master, bool with_copy,
                    const OptimizerPass& pass) {
    StepCounts counts;
    for (std::size_t i = 0; i < t.copy.size(); ++i) {
        const float before = with_master ? t.master[i] : t.value(t.copy[i]);
        const float g = pass.loss_scale == 1 ? t.gradient_at(i) : t.gradient_at(i) / pass.loss_scale;
        bool moved = false;
        float after = 0;
        if constexpr (std::is_same_v<Step, optim::AdamW>)
            after = optim::step(step, before, g, t.state[i], t.squares[i], moved);
        else
            after = optim::step(step, before, g, t.state[i], moved);
        if (with_master) t.master[i] = after;
        const std::uint16_t old = t.copy[i];
        const std::uint32_t noise = optim::noise_at(pass.seed, i);
        if (with_copy)
            t.copy[i] = !pass.stochastic              ? t.nearest(after)
                        : t.copy_dtype == DType::bf16 ? optim::round_stochastic<DType::bf16>(after, noise)
                                                      : optim::round_stochastic<DType::fp16>(after, noise);
        ++counts.elements;
        counts.meant_to_move += moved;
        counts.stagnated += moved && (with_master ? after == before : old == t.copy[i]);
    }
    return counts;
}

template <class Step>
void expect_the_definition(const Step& step) {
    for (const DType gradient : {DType::fp32, DType::bf16, DType::fp16})
        for (const DType copy : {DType::bf16, DType::fp16})
            for (const bool with_master : {true, false})
                for (const bool stochastic : {true, false})
                    for (const float scale : {1.0f, 65536.0f, 3.0f}) {
                        const OptimizerPass pass{scale, stochastic, 0x123456789ABCDEFull};
                        Tensors want(kElements, gradient, copy);
                        const StepCounts counts = expected(step, want, with_master, true, pass);
                        with_each_set([&] {
                            Tensors got(kElements, gradient, copy);
                            StepCounts counted;
                            ASSERT_TRUE(optimize(step, got.range(with_master, true), pass, counted));
                            EXPECT_TRUE(got == want)
                                << name_of(gradient) << name_of(copy) << with_master << stochastic;
                            EXPECT_EQ(counted.elements, counts.elements);
                            EXPECT_EQ(counted.meant_to_move, counts.meant_to_move);
                            EXPECT_EQ(counted.stagnated, counts.stagnated);
                        });
                    }
}

TEST(Optimizer, AdamWHasTheBitsOfItsDefinition) { expect_the_definition(adamw()); }

TEST(Optimizer, AdamHasTheBitsOfItsDefinition) {
    const optim::AdamWOptions options{
        .beta1 = 0.4, .weight_decay = 0.1, .decoupled = false, .maximize = true};
    expect_the_definition(at_step(options, 1));
}

TEST(Optimizer, SgdHasTheBitsOfItsDefinition) {
    const optim::SgdOptions options{.lr = 0.1, .momentum = 0.9, .dampening = 0.2, .weight_decay = 0.01};
    expect_the_definition(at_step(options, false));
    expect_the_definition(at_step(options, true));
    expect_the_definition(at_step(optim::SgdOptions{.lr = 0.1, .momentum = 0.9, .nesterov = true}, false));
    expect_the_definition(at_step(optim::SgdOptions{.lr = 0.1, .maximize = true}, false));
}

TEST(Optimizer, ASplitTensorHasTheSameBits) {
    const OptimizerPass pass{1, true, 99};
    Tensors whole(kElements, DType::bf16, DType::bf16), split = whole;
    StepCounts once, pieces;
    ASSERT_TRUE(optimize(adamw(), whole.range(true, true), pass, once));
    for (std::size_t at = 0; at < kElements; at += 333)
        ASSERT_TRUE(optimize(adamw(), split.range(true, true, at, at + 333), pass, pieces));
    EXPECT_TRUE(whole == split);
    EXPECT_EQ(once.stagnated, pieces.stagnated);
    EXPECT_EQ(once.elements, pieces.elements);
}

// Near 1 a bf16 has steps of 2^-8; updates of 1e-4 vanish in it, and an fp32 master keeps them.
TEST(Optimizer, CountsWhatStagnates) {
    const std::size_t n = 1000;
    const auto step = at_step(optim::SgdOptions{.lr = 1e-4}, false);
    const auto run = [&](bool with_master, bool stochastic) {
        Tensors t(n, DType::fp32, DType::bf16);
        t.master.assign(n, 1.0f);
        t.copy.assign(n, 0x3F80);
        t.gradient = oracle::stored(DType::fp32, std::vector<double>(n, -1.0));
        StepCounts counts;
        EXPECT_TRUE(optimize(step, t.range(with_master, true), {1, stochastic, 5}, counts));
        EXPECT_EQ(counts.meant_to_move, n);
        return counts.stagnated;
    };
    EXPECT_EQ(run(true, false), 0u);
    EXPECT_EQ(run(false, false), n);
    const auto held = run(false, true);  // 1e-4 is 1.28 % of 2^-7, the step above 1
    EXPECT_GT(held, n * 96 / 100);
    EXPECT_LT(held, n);
}

TEST(Optimizer, ValuesThatAreNotFiniteStayNotFinite) {
    for (const DType copy : {DType::bf16, DType::fp16})
        for (const bool stochastic : {false, true})
            with_each_set([&] {
                Tensors t(64, DType::fp16, copy), want = t;
                const double special[] = {INFINITY, -INFINITY, NAN, 65504, 0};
                for (std::size_t i = 0; i < 64; ++i) {
                    const auto raw = encode<DType::fp16>(special[i % 5]);
                    std::memcpy(t.gradient.data() + 2 * i, &raw, 2);
                }
                want.gradient = t.gradient;
                const auto step = at_step(optim::SgdOptions{.lr = 1}, false);
                const OptimizerPass pass{1, stochastic, 1};
                StepCounts counts;
                ASSERT_TRUE(optimize(step, t.range(false, true), pass, counts));
                expected(step, want, false, true, pass);
                for (std::size_t i = 0; i < 64; ++i) {
                    EXPECT_EQ(std::isfinite(t.value(t.copy[i])),
                              i % 5 > 2 && std::isfinite(want.value(want.copy[i])));
                    if (!std::isnan(t.value(t.copy[i]))) EXPECT_EQ(t.copy[i], want.copy[i]);
                }
            });
}

TEST(Optimizer, RefusesWhatItCannotDo) {
    Tensors t(8, DType::fp32, DType::bf16), same = t;
    StepCounts counts;
    auto no_weight = t.range(false, false), no_state = t.range(true, true), fp64 = t.range(true, true);
    auto no_dtype = t.range(true, true);
    no_dtype.copy_dtype = DType::unknown;
    EXPECT_FALSE(optimize(adamw(), no_dtype, {}, counts));
    no_state.state = nullptr;
    fp64.gradient_dtype = DType::fp64;
    EXPECT_FALSE(optimize(adamw(), no_weight, {}, counts));
    EXPECT_FALSE(optimize(adamw(), no_state, {}, counts));
    EXPECT_FALSE(optimize(adamw(), fp64, {}, counts));
    EXPECT_TRUE(t == same);
    EXPECT_EQ(counts.elements, 0u);
}

// ---- Stochastic rounding. ------------------------------------------------------------------------

// Over every noise, as many values are rounded up as the distance from the lower neighbour says: the mean is exact.
template <DType D>
void expect_unbiased(float x) {
    constexpr int kDropped = D == DType::bf16 ? 16 : 13;
    double sum = 0;
    for (std::uint32_t i = 0; i < 1u << kDropped; ++i)
        sum += decode<D>(optim::round_stochastic<D>(x, i << (32 - kDropped)));
    EXPECT_EQ(sum / (1 << kDropped), static_cast<double>(x)) << std::hexfloat << x;
}

TEST(StochasticRounding, HasTheValueAsItsMean) {
    std::mt19937 random(3);
    for (int i = 0; i < 40; ++i) {
        const float x = std::ldexp(1 + static_cast<float>(random() % (1u << 23)) * 0x1p-23f, i - 20);
        expect_unbiased<DType::bf16>(x);
        expect_unbiased<DType::bf16>(-x);
        if (i - 20 < 15 && i - 20 >= -14) expect_unbiased<DType::fp16>(-x);
    }
    for (const float tiny : {0x1p-24f, 0x1.8p-20f, 0x1.fp-15f, 0x1.8p-30f})
        expect_unbiased<DType::fp16>(tiny);
}

TEST(StochasticRounding, KeepsValuesOfTheFormatAndNeverMakesInfinity) {
    for (std::uint32_t raw = 0; raw < 0x10000; ++raw) {
        const auto pattern = static_cast<std::uint16_t>(raw);
        const float b = decode_float<DType::bf16>(pattern), h = decode_float<DType::fp16>(pattern);
        if (std::isfinite(b)) EXPECT_EQ(optim::round_stochastic<DType::bf16>(b, 0xFFFFFFFFu), pattern);
        if (std::isfinite(h)) EXPECT_EQ(optim::round_stochastic<DType::fp16>(h, 0xFFFFFFFFu), pattern);
    }
    EXPECT_EQ(optim::round_stochastic<DType::fp16>(65504.0f, 0xFFFFFFFFu), 0x7BFF);
    EXPECT_EQ(optim::round_stochastic<DType::fp16>(65519.0f, 0xFFFFFFFFu), 0x7BFF);  // to nearest
    EXPECT_EQ(optim::round_stochastic<DType::fp16>(65520.0f, 0), 0x7C00);
    EXPECT_EQ(optim::round_stochastic<DType::fp16>(-INFINITY, 7), 0xFC00);
    EXPECT_EQ(optim::round_stochastic<DType::bf16>(INFINITY, 7), 0x7F80);
    EXPECT_TRUE(std::isnan(decode_float<DType::bf16>(optim::round_stochastic<DType::bf16>(NAN, 7))));
}

// Neighbouring elements, steps and seeds give noise that is spread evenly and does not repeat.
TEST(StochasticRounding, NoiseIsSpread) {
    for (const std::uint64_t stride : {std::uint64_t{1}, std::uint64_t{1} << 32, std::uint64_t{4096}})
        for (const bool of_seed : {false, true}) {
            std::vector<int> bins(256);
            constexpr int n = 1 << 16;
            for (std::uint64_t i = 0; i < n; ++i)
                ++bins[(of_seed ? optim::noise_at(i * stride, 12345) : optim::noise_at(42, i * stride)) >>
                       24];
            double chi = 0;
            for (const int count : bins) chi += std::pow(count - n / 256.0, 2) / (n / 256.0);
            EXPECT_LT(chi, 400) << stride << of_seed;  // 255 degrees of freedom: 400 is beyond 1e-8
            EXPECT_GT(chi, 130);
        }
}

TEST(StochasticRounding, IsCountedOnBeyondTwoToThe32Elements) {
    Tensors t(3000, DType::fp32, DType::bf16), want = t;
    OptimizerRange range = t.range(false, true);
    range.first = (std::int64_t{1} << 32) - 1500;
    const auto step = at_step(optim::SgdOptions{.lr = 0.5}, false);
    StepCounts counts;
    ASSERT_TRUE(optimize(step, range, {1, true, 3}, counts));
    for (std::size_t i = 0; i < t.copy.size(); ++i) {
        bool moved = false;
        float none = 0;
        const float after = optim::step(step, want.value(want.copy[i]), want.gradient_at(i), none, moved);
        const auto noise = optim::noise_at(3, static_cast<std::uint64_t>(range.first) + i);
        EXPECT_EQ(t.copy[i], optim::round_stochastic<DType::bf16>(after, noise)) << i;
    }
}

}  // namespace
}  // namespace mp::cpu
