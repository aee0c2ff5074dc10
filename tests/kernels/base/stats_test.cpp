#include "kernels/base/stats.hpp"

#include <gtest/gtest.h>

namespace mp {
namespace {

using std::chrono::milliseconds;

TEST(Stats, AddsAndKeepsTheOrder) {
    Stats stats;
    stats.add_count("units", 2);
    stats.add_time("link", milliseconds(1500));
    stats.add_time("extract", milliseconds(2));
    stats.add_time("link", milliseconds(250));
    stats.add_count("units", 3);
    EXPECT_EQ(stats.text("mp-lint"),
              "mp-lint: stats: link 1.750 s\nmp-lint: stats: extract 0.002 s\nmp-lint: stats: units 5\n");
}

TEST(Stats, TimedGivesTheResultOfTheWork) {
    EXPECT_EQ(timed("work of a test", [] { return 7; }), 7);
    EXPECT_NE(Stats::of_process().text("t").find("t: stats: work of a test "), std::string::npos);
}

}  // namespace
}  // namespace mp
