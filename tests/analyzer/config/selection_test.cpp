#include "analyzer/config/selection.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mp::lint {
namespace {

using testing::ElementsAre;

constexpr Rule kRegion{.id = "MP101", .name = "fp32-op-in-low-precision", .confirmed_by = ""};
constexpr Rule kSum{.id = "MP401", .name = "half-accumulator", .confirmed_by = ""};
constexpr Rule kNorm{.id = "MP405", .name = "half-norm-stats", .confirmed_by = ""};
constexpr Rule kQuiet{.id = "MP602", .name = "double-cast", .on_by_default = false, .confirmed_by = ""};
constexpr const Rule* kAll[] = {&kRegion, &kSum, &kNorm, &kQuiet};

std::vector<std::string_view> chosen(std::vector<std::string> select, std::vector<std::string> ignore) {
    std::vector<std::string_view> ids;
    for (const Rule* rule : select_rules(kAll, select, ignore)) ids.push_back(rule->id);
    return ids;
}

TEST(Selection, NothingSelectedMeansTheDefaults) {
    EXPECT_THAT(chosen({}, {}), ElementsAre("MP101", "MP401", "MP405"));
}

TEST(Selection, AllIncludesWhatIsOffByDefault) {
    EXPECT_THAT(chosen({"ALL"}, {}), ElementsAre("MP101", "MP401", "MP405", "MP602"));
    EXPECT_THAT(chosen({"all"}, {"MP602"}), ElementsAre("MP101", "MP401", "MP405"));
}

TEST(Selection, IdsNamesFamiliesAndPatternsMeanRules) {
    EXPECT_THAT(chosen({"mp401"}, {}), ElementsAre("MP401"));
    EXPECT_THAT(chosen({"half-norm-stats"}, {}), ElementsAre("MP405"));
    EXPECT_THAT(chosen({"MP4"}, {}), ElementsAre("MP401", "MP405"));
    EXPECT_THAT(chosen({"half-*"}, {}), ElementsAre("MP401", "MP405"));
    EXPECT_THAT(chosen({"MP60?"}, {}), ElementsAre("MP602"));
}

TEST(Selection, OneRuleIsMeantByItsIdAndItsNameOnly) {
    EXPECT_TRUE(is_rule("mp401", kSum));
    EXPECT_TRUE(is_rule("Half-Accumulator", kSum));
    for (const char* wider : {"MP4", "ALL", "half-*", "MP40?", "MP402", ""})
        EXPECT_FALSE(is_rule(wider, kSum)) << wider;
}

TEST(Selection, TheMoreExactWordWins) {
    EXPECT_THAT(chosen({"MP405"}, {"MP4"}), ElementsAre("MP405"));
    EXPECT_THAT(chosen({"MP4"}, {"MP405"}), ElementsAre("MP401"));
    EXPECT_THAT(chosen({"MP405"}, {"MP405"}), ElementsAre());
    EXPECT_THAT(chosen({}, {"MP4"}), ElementsAre("MP101"));
}

TEST(Selection, AnUnknownRuleIsAnErrorWithASuggestion) {
    const Status wrong = check_rule_word("half-acumulator", kAll);
    ASSERT_FALSE(wrong);
    EXPECT_EQ(wrong.error().message, "no rule is called 'half-acumulator'");
    EXPECT_EQ(wrong.error().hint, "did you mean 'half-accumulator'?");
    EXPECT_FALSE(check_rule_word("MP999", kAll));
    EXPECT_FALSE(check_rule_word("xyz*", kAll));
    EXPECT_TRUE(check_rule_word("MP7", kAll)) << "a family whose rules come later";
}

}  // namespace
}  // namespace mp::lint
