// The optimizers' bodies, compiled for the host and launched by the fake driver, against the CPU's kernels.
#include "kernels/cuda/optimizer.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "kernels/cuda/optimizer_body.hpp"
#include "tests/kernels/cuda/fake_driver.hpp"

namespace mp::cuda {
namespace {

using cpu::OptimizerRange;

// A weight with everything that a step may read and write.
struct Weight {
    std::vector<float> master, state, squares, gradient;
    std::vector<std::uint16_t> copy, short_gradient;

    Weight(std::size_t n, unsigned seed) {
        std::mt19937 random(seed);
        std::normal_distribution<float> normal;
        for (std::size_t i = 0; i < n; ++i) {
            master.push_back(normal(random));
            state.push_back(normal(random) * 1e-3f);
            squares.push_back(std::abs(normal(random)) * 1e-6f);
            gradient.push_back(i % 13 == 0 ? 0 : normal(random) * 1e-3f);
            copy.push_back(static_cast<std::uint16_t>(random() & 0x3BFF));  // finite in fp16 and bf16
            short_gradient.push_back(static_cast<std::uint16_t>(random() & 0x23FF));
        }
    }
    OptimizerRange range(DType gradient_dtype, DType copy_dtype, bool with_master) {
        OptimizerRange r;
        r.elements = static_cast<std::int64_t>(master.size());
        r.master = with_master ? master.data() : nullptr;
        r.copy = copy_dtype == DType::unknown ? nullptr : copy.data();
        r.copy_dtype = copy_dtype;
        r.gradient =
            gradient_dtype == DType::fp32 ? static_cast<void*>(gradient.data()) : short_gradient.data();
        r.gradient_dtype = gradient_dtype;
        r.state = state.data();
        r.squares = squares.data();
        return r;
    }
    friend bool operator==(const Weight&, const Weight&) = default;
};

struct CudaOptimizer : testing::Test {
    Optimizer optimizer;
    void SetUp() override {
        fake() = {};
        ASSERT_TRUE(optimizer.load());
    }
};

const optim::AdamW kAdamW = at_step(optim::AdamWOptions{.weight_decay = 0.1}, 5);
const optim::Sgd kSgd = at_step(optim::SgdOptions{.lr = 0.1, .momentum = 0.9, .nesterov = true}, false);

template <class Step>
void expect_the_bits_of_the_cpu(const Optimizer& optimizer, const Step& step) {
    for (const DType gradient : {DType::fp32, DType::bf16, DType::fp16})
        for (const DType copy : {DType::unknown, DType::bf16, DType::fp16})
            for (const bool with_master : {true, false})
                for (const bool stochastic : {true, false}) {
                    if (copy == DType::unknown && !with_master) continue;
                    std::vector<Weight> want, got;
                    for (const std::size_t n : {1u, 255u, 4096u, 9001u})
                        want.emplace_back(n, static_cast<unsigned>(n));
                    got = want;
                    optim::StepCounts counted;
                    std::vector<OptimizerRange> ranges;
                    for (std::size_t i = 0; i < want.size(); ++i) {
                        const cpu::OptimizerPass pass{1024.0f, stochastic, optim::seed_of(77, i)};
                        ASSERT_TRUE(
                            optimize(step, want[i].range(gradient, copy, with_master), pass, counted));
                        ranges.push_back(got[i].range(gradient, copy, with_master));
                    }
                    const float scale = 1024.0f, fine = 0;
                    OptimizerCounts counts{};
                    const DevicePass pass{&scale, &fine, &counts, stochastic, 77};
                    ASSERT_TRUE(optimizer.step(nullptr, step, ranges.data(), 4, pass));
                    EXPECT_TRUE(got == want)
                        << name_of(gradient) << name_of(copy) << with_master << stochastic;
                    EXPECT_EQ(counts.meant_to_move, counted.meant_to_move);
                    EXPECT_EQ(counts.stagnated, counted.stagnated);
                }
}

TEST_F(CudaOptimizer, AdamWHasTheBitsOfTheCpu) { expect_the_bits_of_the_cpu(optimizer, kAdamW); }

TEST_F(CudaOptimizer, SgdHasTheBitsOfTheCpu) { expect_the_bits_of_the_cpu(optimizer, kSgd); }

TEST_F(CudaOptimizer, TakesManyWeightsInFewLaunches) {
    for (const int version : {13000, 12000}) {
        fake() = {};
        fake().version = version;
        Optimizer own;
        ASSERT_TRUE(own.load());
        std::vector<Weight> want(150, Weight(10, 3)), got = want;
        optim::StepCounts counted;
        std::vector<OptimizerRange> ranges;
        for (auto& weight : want)
            ASSERT_TRUE(optimize(kAdamW, weight.range(DType::fp32, DType::unknown, true), {}, counted));
        for (auto& weight : got) ranges.push_back(weight.range(DType::fp32, DType::unknown, true));
        OptimizerCounts counts{};
        ASSERT_TRUE(own.step(nullptr, kAdamW, ranges.data(), 150, {nullptr, nullptr, &counts}));
        EXPECT_TRUE(got == want);
        EXPECT_EQ(fake().launches, version == 13000 ? 1 : 3);
    }
}

TEST_F(CudaOptimizer, AnInfinityFoundSkipsTheStep) {
    Weight weight(100, 1);
    const Weight before = weight;
    const float found = 1;
    OptimizerCounts counts{};
    const OptimizerRange range = weight.range(DType::fp32, DType::bf16, true);
    ASSERT_TRUE(optimizer.step(nullptr, kAdamW, &range, 1, {nullptr, &found, &counts}));
    EXPECT_TRUE(weight == before);
    EXPECT_EQ(counts.meant_to_move, 0u);
}

TEST_F(CudaOptimizer, RefusesWhatItCannotDo) {
    Weight weight(100, 1);
    const Weight before = weight;
    OptimizerCounts counts{};
    OptimizerRange range = weight.range(DType::fp64, DType::bf16, true);
    EXPECT_EQ(optimizer.step(nullptr, kAdamW, &range, 1, {nullptr, nullptr, &counts}).status,
              Status::unsupported);
    range = weight.range(DType::fp32, DType::bf16, true);
    fake().capturing = true;
    EXPECT_EQ(optimizer.step(nullptr, kAdamW, &range, 1, {nullptr, nullptr, &counts}).status,
              Status::capturing);
    fake() = {};
    fake().launch_fails = true;
    EXPECT_EQ(optimizer.step(nullptr, kAdamW, &range, 1, {nullptr, nullptr, &counts}).status,
              Status::refused);
    EXPECT_EQ(Optimizer().step(nullptr, kSgd, &range, 1, {nullptr, nullptr, &counts}).status,
              Status::no_kernels);
    fake().no_context = true;
    EXPECT_EQ(Optimizer().load().status, Status::no_context);
    EXPECT_TRUE(weight == before);
}

TEST_F(CudaOptimizer, StateIn8BitsHasTheBitsOfTheCpu) {
    blockwise::Table table;
    std::vector<float> map(256);
    for (int i = 0; i < 256; ++i) map[static_cast<std::size_t>(i)] = static_cast<float>(i - 128) / 127;
    ASSERT_TRUE(blockwise::make_table(map.data(), table));
    for (const std::size_t n : {0u, 1u, 255u, 256u, 9001u}) {
        const Weight weight(n, 5);
        std::vector<std::uint8_t> want(n), got(n);
        std::vector<float> want_scales((n + 255) / 256), got_scales(want_scales);
        const auto size = static_cast<std::int64_t>(n);
        cpu::quantize(table, weight.state.data(), {size, want.data(), want_scales.data()});
        const cpu::QuantizedRange range{size, got.data(), got_scales.data()};
        ASSERT_TRUE(optimizer.quantize(nullptr, table, weight.state.data(), range));
        EXPECT_EQ(got, want);
        EXPECT_EQ(got_scales, want_scales);
        std::vector<float> want_values(n), got_values(n);
        cpu::dequantize(table, range, want_values.data());
        ASSERT_TRUE(optimizer.dequantize(nullptr, table, range, got_values.data()));
        EXPECT_EQ(got_values, want_values);
    }
    fake().launch_fails = true;
    std::uint8_t code = 0;
    float value = 1, scale = 0;
    EXPECT_EQ(optimizer.quantize(nullptr, table, &value, {1, &code, &scale}).status, Status::refused);
    EXPECT_EQ(Optimizer().quantize(nullptr, table, &value, {1, &code, &scale}).status, Status::no_kernels);
}

}  // namespace
}  // namespace mp::cuda
