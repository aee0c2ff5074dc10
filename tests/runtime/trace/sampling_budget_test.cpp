#include "runtime/trace/sampling_budget.hpp"

#include <gtest/gtest.h>

namespace mp::trace {
namespace {

// A run whose measured steps take `measured` and whose others take `plain`, asked in every step.
SamplingBudget run(double share, std::int64_t measured, std::int64_t plain, int steps) {
    SamplingBudget budget(share);
    for (int step = 0; step < steps; ++step) {
        const bool allowed = budget.allows(step);
        budget.add(allowed, allowed ? measured : plain);
    }
    return budget;
}

TEST(SamplingBudget, NoLimitMeasuresEachStep) {
    EXPECT_EQ(run(0, 500, 100, 100).measured_steps(), 100);
    EXPECT_FALSE(SamplingBudget(0).limits());
}

TEST(SamplingBudget, KeepsItsShare) {
    const SamplingBudget budget = run(0.03, 500, 100, 10'000);
    EXPECT_LE(budget.share(), 0.03);
    EXPECT_GT(budget.share(), 0.02);
    EXPECT_GT(budget.measured_steps(), 50);
}

TEST(SamplingBudget, MeasuresTheFirstStepsWhateverTheyCost) {
    SamplingBudget budget(0.01);
    for (int step = 0; step < 3; ++step) {
        EXPECT_TRUE(budget.allows(step));
        budget.add(true, 1000);
    }
    EXPECT_FALSE(budget.allows(3));  // what a step takes is not known
    budget.add(false, 10);
    EXPECT_FALSE(budget.allows(4));
}

TEST(SamplingBudget, AllowsEachStepAfterTheFourthWhereMeasuringCostsNothing) {
    EXPECT_EQ(run(0.03, 100, 100, 100).measured_steps(), 99);
}

}  // namespace
}  // namespace mp::trace
