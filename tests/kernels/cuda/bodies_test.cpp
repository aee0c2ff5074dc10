#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "kernels/numerics/convert.hpp"
#include "kernels/numerics/divergence.hpp"
#include "tests/kernels/cuda/checks.hpp"
#include "tests/kernels/cuda/fake_driver.hpp"

namespace mp::cuda {
namespace {

class Host : public Machine {
public:
    char* memory(std::size_t bytes) override { return static_cast<char*>(pinned(bytes)); }
    void copy(char* to, const void* from, std::size_t bytes) override {
        if (bytes > 0) std::memcpy(to, from, bytes);
    }
    void* pinned(std::size_t bytes) override {
        all_.push_back(std::aligned_alloc(256, (bytes + 255) / 256 * 256 + 256));
        return all_.back();
    }
    void wait() override {}
    void release() override {
        for (void* p : all_) std::free(p);
        all_.clear();
    }
    ~Host() override { release(); }

private:
    std::vector<void*> all_;
};

struct CudaBodies : testing::Test {
    Host host;
    Measure measure;
    Scratch scratch;
    Checks checks{host, measure, scratch};

    void SetUp() override {
        fake() = {};
        ASSERT_TRUE(measure.load());
        ASSERT_TRUE(scratch.make(nullptr));
    }
    void TearDown() override {
        scratch.free();
        EXPECT_EQ(checks.failures(), 0);
    }
};

TEST_F(CudaBodies, ReturnWhatTheCpuReturnsForAllSizesAndData) { checks.sizes_and_data(70000, true); }

TEST_F(CudaBodies, AgreeOnEveryShortPattern) { checks.every_short_pattern(); }

TEST_F(CudaBodies, AgreeOnTenMillionPatternsOfFp32) { checks.patterns_of_fp32(10'000'000); }

TEST_F(CudaBodies, ReadEveryLayout) { checks.layouts(); }

TEST_F(CudaBodies, FindTheFirstOffender) { checks.offenders(300001); }

TEST_F(CudaBodies, MeasureListsOfManyTensors) {
    checks.lists(150);
    checks.lists(700);
}

TEST_F(CudaBodies, SketchBlocks) {
    checks.sketches();
    EXPECT_EQ(checks.comparisons(), 4 * 5 * 3 * 2);
    SketchedBlocks eight_bits;
    eight_bits.data = &eight_bits;
    eight_bits.dtype = DType::e4m3;
    eight_bits.count = 1;
    Sketch unused;
    EXPECT_EQ(measure.sketch(nullptr, scratch, eight_bits, &unused).status, Status::unsupported);
}

TEST_F(CudaBodies, RefuseWhatIsNotMeasured) { checks.refusals(); }

TEST_F(CudaBodies, SplitAListThatAnOldDriverCannotTake) {
    fake().version = 12000;
    Measure old;
    ASSERT_TRUE(old.load());
    Checks with_old{host, old, scratch};
    with_old.lists(700);
    EXPECT_EQ(with_old.failures(), 0);
}

TEST_F(CudaBodies, OneLaunchMeasures150TensorsOfAFormat) {
    std::vector<float> values(1000, 1.0f);
    std::vector<cpu::TensorView> all(150, cpu::contiguous(values.data(), DType::fp32, 1000));
    std::vector<TensorStats> results(150);
    fake().launches = 0;
    fake().version = 12000;
    Measure old;
    ASSERT_TRUE(old.load());
    ASSERT_TRUE(old.statistics(nullptr, scratch, all.data(), 150, results.data()));
    EXPECT_EQ(fake().launches, 1);
    EXPECT_EQ(results[149].sum, 1000);
}

// A block that waits for a place begins when the others have ended.
TEST_F(CudaBodies, BlocksOfAListRunAtOnce) {
    fake().processors = 10;  // 20 blocks at once
    Measure other;
    ASSERT_TRUE(other.load());
    constexpr std::int64_t kTile = 4096;  // of fp32
    std::vector<float> values(16 * kTile, 1.0f);
    for (const int tensors : {1, 3, 7, 15, 20}) {
        std::vector<cpu::TensorView> all(static_cast<std::size_t>(tensors),
                                         cpu::contiguous(values.data(), DType::fp32, 16 * kTile));
        std::vector<TensorStats> results(all.size());
        ASSERT_TRUE(other.statistics(nullptr, scratch, all.data(), tensors, results.data()));
        EXPECT_LE(fake().blocks, 20u) << tensors;
        EXPECT_GE(fake().blocks, 10u) << tensors;
        EXPECT_EQ(results.back().sum, 16 * kTile);
    }
}

// D = 2 op(A) op(B) - C + bias of 40 x 50, of which 32 x 32 elements are computed again.
struct SomeProduct {
    static constexpr int kM = 40, kN = 50, kK = 300;
    std::vector<float> a, b, c, bias;
    std::vector<std::uint16_t> d;
    SampledProduct product;

    SomeProduct() : a(kM * kK), b(kK * kN), c(kM * kN), bias(kM), d(kM * kN) {
        std::uint32_t state = 1;
        for (std::vector<float>* all : {&a, &b, &c, &bias})
            for (float& x : *all)
                x = static_cast<float>((state = state * 1664525u + 1013904223u) >> 8) * 0x1p-24f - 0.5f;
        product.a = {a.data(), 1, kM, DType::fp32};
        product.b = {b.data(), kN, 1, DType::fp32};  // transposed
        product.c = {c.data(), 1, kM, DType::fp32};
        product.bias = {bias.data(), 1, kM, DType::fp32};
        product.d = {d.data(), 1, kM, DType::bf16};
        product.depth = kK;
        product.alpha = 2;
        product.beta = -1;
        product.first_row = 3;
        product.first_column = 7;
        product.rows = product.columns = 32;
        product.all_rows = kM;
        product.all_columns = kN;
        for (int i = 0; i < kM; ++i)
            for (int j = 0; j < kN; ++j) at(i, j) = encode<DType::bf16>(exact(i, j));
    }
    std::uint16_t& at(int i, int j) { return d[static_cast<std::size_t>(i + j * kM)]; }
    double exact(int i, int j) const {
        double sum = 0;
        for (int k = 0; k < kK; ++k)
            sum += double{a[static_cast<std::size_t>(i + k * kM)]} * b[static_cast<std::size_t>(j + k * kN)];
        return 2 * sum - c[static_cast<std::size_t>(i + j * kM)] + bias[static_cast<std::size_t>(i)];
    }
};

TEST_F(CudaBodies, ComputeElementsOfAProductAgain) {
    SomeProduct p;
    ProductError error;
    ASSERT_TRUE(measure.expect(nullptr, scratch, p.product));
    std::fill(p.c.begin(), p.c.end(), 1e9f);  // the product may write its result there
    ASSERT_TRUE(measure.compare(nullptr, scratch, p.product, &error));
    EXPECT_EQ(error.compared, 32u * 32);
    EXPECT_EQ(error.nonfinite, 0u);
    // One rounding to bf16.
    EXPECT_NEAR(std::sqrt(error.error_squares / error.squares) / one_rounding_floor(DType::bf16), 1, 0.1);
    p.at(2, 7) = p.at(3, 39) = 0;  // not sampled
    ProductError same;
    ASSERT_TRUE(measure.compare(nullptr, scratch, p.product, &same));
    EXPECT_EQ(same.error_squares, error.error_squares);
    p.at(3, 7) = 0x7F80;  // infinity
    p.at(34, 38) = encode<DType::bf16>(100.0);
    ASSERT_TRUE(measure.compare(nullptr, scratch, p.product, &error));
    EXPECT_EQ(error.nonfinite, 1u);
    EXPECT_GT(error.error_squares, 5000);
}

TEST_F(CudaBodies, LeaveOutElementsOfInputsThatAreNotFinite) {
    SomeProduct p;
    p.a[5] = std::numeric_limits<float>::infinity();  // row 5
    ProductError error;
    ASSERT_TRUE(measure.expect(nullptr, scratch, p.product));
    ASSERT_TRUE(measure.compare(nullptr, scratch, p.product, &error));
    EXPECT_EQ(error.compared, 31u * 32);
    p.product.a.dtype = DType::e4m3;
    EXPECT_EQ(measure.expect(nullptr, scratch, p.product).status, Status::unsupported);
}

struct WholeError {
    double error = 0, squares = 0, terms = 0;
    std::uint64_t rows = 0;
};

// The sketches of a product with many vectors, added up over its rows; `d` is the result.
WholeError sketched(const Measure& measure, Scratch& scratch, SampledProduct product, int vectors,
                    RowsError* last) {
    WholeError all;
    const std::vector<RowsError> none(2);
    for (int i = 0; i < vectors; ++i) {
        product.seed = static_cast<std::uint64_t>(i) + 1;
        std::copy(none.begin(), none.end(), last);
        EXPECT_TRUE(measure.expect_sketch(nullptr, scratch, product, last));
        EXPECT_TRUE(measure.compare_sketch(nullptr, scratch, product, last));
        for (int block = 0; block < 2; ++block) {
            all.error += last[block].error_squares / vectors;
            all.squares += last[block].squares / vectors;
            all.terms += last[block].terms / vectors;
            all.rows += last[block].rows;
        }
    }
    return all;
}

TEST_F(CudaBodies, SketchesEstimateTheErrorOfTheWholeProduct) {
    SomeProduct p;
    double error = 0, squares = 0, terms = 0;
    for (int i = 0; i < SomeProduct::kM; ++i)
        for (int j = 0; j < SomeProduct::kN; ++j) {
            const double real = decode<DType::bf16>(p.at(i, j)), exact = p.exact(i, j);
            error += (real - exact) * (real - exact);
            squares += real * real;
            for (int k = 0; k < SomeProduct::kK; ++k) {
                const double term = 2. * p.a[static_cast<std::size_t>(i + k * SomeProduct::kM)] *
                                    p.b[static_cast<std::size_t>(j + k * SomeProduct::kN)];
                terms += term * term;
            }
            const double c = p.c[static_cast<std::size_t>(i + j * SomeProduct::kM)];
            const double bias = p.bias[static_cast<std::size_t>(i)];
            terms += c * c + bias * bias;
        }
    RowsError rows[2];
    const WholeError all = sketched(measure, scratch, p.product, 200, rows);
    EXPECT_EQ(all.rows, 200u * SomeProduct::kM);
    EXPECT_NEAR(all.squares / squares, 1, 1e-12);
    EXPECT_NEAR(all.terms / terms, 1, 1e-12);
    // 200 vectors and 40 rows: a standard deviation of sqrt(2 / 8000).
    EXPECT_NEAR(all.error / error, 1, 0.06);
}

TEST_F(CudaBodies, SketchesFindATileThatNoSampledElementShows) {
    SomeProduct p;
    p.product.rows = p.product.columns = 16;  // rows 3 to 18, columns 7 to 22
    ProductError before, after;
    ASSERT_TRUE(measure.expect(nullptr, scratch, p.product));
    ASSERT_TRUE(measure.compare(nullptr, scratch, p.product, &before));
    RowsError sound[2], lost[2];
    sketched(measure, scratch, p.product, 1, sound);
    for (int i = 32; i < 40; ++i)
        for (int j = 0; j < 8; ++j) p.at(i, j) = 0;
    ASSERT_TRUE(measure.compare(nullptr, scratch, p.product, &after));
    EXPECT_EQ(after.error_squares, before.error_squares);
    sketched(measure, scratch, p.product, 1, lost);
    EXPECT_EQ(lost[0].error_squares, sound[0].error_squares);
    EXPECT_GT(lost[1].error_squares, 1000 * sound[1].error_squares);
}

TEST_F(CudaBodies, SketchesLeaveOutRowsThatAreNotFinite) {
    SomeProduct p;
    RowsError rows[2];
    p.at(1, 1) = 0x7F80;                                // infinity
    p.a[33] = std::numeric_limits<float>::quiet_NaN();  // row 33
    EXPECT_EQ(sketched(measure, scratch, p.product, 1, rows).rows, 38u);
    EXPECT_EQ(rows[0].rows, 31u);
    EXPECT_LT(rows[0].error_squares, 1e-3 * rows[0].squares);
    EXPECT_GT(rows[1].terms, 0);  // NaN is not
}

TEST_F(CudaBodies, SketchesNeedRoom) {
    SomeProduct p;
    EXPECT_TRUE(is_sketchable(p.product));
    p.product.all_rows = 1 << 16;
    EXPECT_FALSE(is_sketchable(p.product));
    RowsError unused;
    EXPECT_EQ(measure.expect_sketch(nullptr, scratch, p.product, &unused).status, Status::unsupported);
    p.product.all_rows = SomeProduct::kM;
    p.product.depth = 1 << 16;
    EXPECT_TRUE(is_sketchable(p.product));
    p.product.depth = 1 << 17;
    EXPECT_FALSE(is_sketchable(p.product));
}

TEST_F(CudaBodies, AddNothingToAStreamThatCaptures) {
    fake().capturing = true;
    fake().launches = 0;
    float x = 1;
    const cpu::TensorView one = cpu::contiguous(&x, DType::fp32, 1);
    TensorStats stats;
    EXPECT_EQ(measure.statistics(nullptr, scratch, &one, 1, &stats).status, Status::capturing);
    EXPECT_EQ(fake().launches, 0);
}

TEST_F(CudaBodies, FaultsOfTheDriverAreOutcomes) {
    float x = 1;
    const cpu::TensorView one = cpu::contiguous(&x, DType::fp32, 1);
    TensorStats stats;
    fake().launch_fails = true;
    const Outcome failed = measure.statistics(nullptr, scratch, &one, 1, &stats);
    EXPECT_EQ(failed.status, Status::refused);
    EXPECT_EQ(failed.code, 719);
    fake().memory_refused = true;
    Scratch none;
    EXPECT_EQ(none.make(nullptr).status, Status::refused);
    fake().no_context = true;
    Measure another;
    EXPECT_EQ(another.load().status, Status::no_context);
    EXPECT_FALSE(another.ready());
}

}  // namespace
}  // namespace mp::cuda
