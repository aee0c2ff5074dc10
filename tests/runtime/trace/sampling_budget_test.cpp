#include "runtime/trace/sampling_budget.hpp"

#include <gtest/gtest.h>

#include <string>

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
    for (int step = 3; step < 6; ++step) {
        EXPECT_FALSE(budget.allows(step));  // first what a step takes is not known, and then it is
        budget.add(false, 10);
    }
}

TEST(SamplingBudget, WhereMeasuringCostsNothingSomeStepsStillShowWhatAStepTakes) {
    SamplingBudget budget(0.03);
    std::string taken;
    for (int step = 0; step < 60; ++step) {
        taken += budget.allows(step) ? 'M' : '-';
        budget.add(taken.back() == 'M', 100);
    }
    const std::string row(16, 'M');
    EXPECT_EQ(taken, "MMM--M-MM-MMMM-MMMMMMMM-" + row + "-" + row + "-MM");
}

TEST(SamplingBudget, StepsThatWaitedDoNotLiftTheLimit) {
    SamplingBudget budget(0.01);
    for (int step = 0; step < 40; ++step) {
        const bool allowed = budget.allows(step);
        budget.add(allowed, allowed ? 500 : step < 6 || step >= 20 ? 1000 : 100);
    }
    EXPECT_LE(budget.measured_steps(), 6);
    EXPECT_GT(budget.share(), 0.005) << "what the first three cost";
}

}  // namespace
}  // namespace mp::trace
