#include "runtime/report/page_map.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace mp::trace {
namespace {

RunModel model_of(std::size_t rows, std::size_t columns) {
    RunModel model;
    for (std::size_t r = 0; r < rows; ++r) {
        LayerSteps row{.layer = "l" + std::to_string(r), .phase = Phase::forward, .order = r, .cells = {}};
        row.cells.resize(columns);
        model.map.push_back(row);
    }
    return model;
}

double value_of(char c, Scale scale) {
    const double level = static_cast<double>(level_alphabet().find(c));
    return scale.low *
           std::pow(scale.high / scale.low, level / static_cast<double>(level_alphabet().size() - 1));
}

TEST(PageMap, LevelsAreKnownToATenthAndGrowWithTheValue) {
    std::size_t last = 0;
    for (double v = 0.02; v < 9e5; v *= 1.07) {
        const char c = level_of(v, kPhiScale);
        EXPECT_NEAR(value_of(c, kPhiScale) / v, 1, 0.12) << v;
        const std::size_t level = level_alphabet().find(c);
        EXPECT_GE(level, last);
        last = level;
    }
    EXPECT_EQ(level_of(0, kPhiScale), level_alphabet().front());
    EXPECT_EQ(level_of(1e300, kPhiScale), level_alphabet().back());
}

TEST(PageMap, NotMeasuredAndNotFiniteAreNoLevels) {
    EXPECT_EQ(level_of(-1, kPhiScale), kNotMeasured);
    EXPECT_EQ(level_of(std::nan(""), kPhiScale), kNonFinite);
    EXPECT_EQ(level_of(HUGE_VAL, kFlushScale), kNonFinite);
    for (const char c : {kNotMeasured, kNonFinite, '"', '<', '>', '&', '\\'})
        EXPECT_EQ(level_alphabet().find(c), std::string_view::npos) << c;
}

TEST(PageMap, AMergedColumnShowsItsWorst) {
    RunModel model = model_of(1, 8);
    model.map[0].cells[2].cum_phi = 1;
    model.map[0].cells[3].cum_phi = 50;
    model.map[0].cells[5].nonfinite = 1;
    const PackedMap map = pack_map(model, 4);
    EXPECT_EQ(map.columns, 4u);
    EXPECT_EQ(map.merged, 2u);
    EXPECT_EQ(map.rows[0].total,
              std::string({kNotMeasured, level_of(50, kPhiScale), kNonFinite, kNotMeasured}));
    EXPECT_TRUE(map.rows[0].nonfinite);
}

TEST(PageMap, ARowWithoutAMeasureIsEmptyAndShortRowsArePadded) {
    RunModel model = model_of(2, 4);
    model.map[0].cells.resize(2);
    model.map[0].cells[0].flush = 0.5F;
    const PackedMap map = pack_map(model);
    EXPECT_EQ(map.rows[0].total, "");
    EXPECT_EQ(map.rows[0].flush.size(), 4u);
    EXPECT_EQ(map.rows[1].flush, "");
}

}  // namespace
}  // namespace mp::trace
