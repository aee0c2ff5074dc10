#include "tests/analyzer/rules/rule_test.hpp"

namespace mp::lint::test {
namespace {

std::vector<std::string> mp401(std::string_view fact, Profile profile = Profile::training) {
    return lint("MP401", {kernel(fact)}, profile);
}

TEST(HalfAccumulator, SumOfUnknownLengthIsAnError) {
    EXPECT_THAT(mp401("accumulate 8:5 acc dtype=fp16 element=fp16"), ElementsAre("error 8"));
    EXPECT_THAT(mp401("accumulate 8:5 acc dtype=bf16 op=fma"), ElementsAre("error 8"));
    EXPECT_THAT(mp401("accumulate 8:5 acc dtype=e4m3"), ElementsAre("error 8"));
}

TEST(HalfAccumulator, FloatAccumulatorIsSilent) {
    EXPECT_THAT(mp401("accumulate 8:5 acc dtype=fp32 element=fp16"), IsEmpty());
    EXPECT_THAT(mp401("accumulate 8:5 acc dtype=unknown element=fp16"), IsEmpty());
}

TEST(HalfAccumulator, MaxMinAndProductsAreSilent) {
    for (const std::string op : {"max", "min", "multiply", "other"})
        EXPECT_THAT(mp401("accumulate 8:5 acc dtype=fp16 op=" + op), IsEmpty()) << op;
}

TEST(HalfAccumulator, FewTermsLowerTheSeverity) {
    EXPECT_THAT(mp401("accumulate 8:5 acc dtype=fp16 trips=32"), ElementsAre("note 8"));
    EXPECT_THAT(mp401("accumulate 8:5 acc dtype=fp16 trips=33"), ElementsAre("error 8"));
}

TEST(HalfAccumulator, TreeOfNStepsJoinsTwoToTheNTerms) {
    EXPECT_THAT(mp401("accumulate 8:5 s dtype=fp16 form=tree storage=shared trips=4"), ElementsAre("note 8"));
    EXPECT_THAT(mp401("accumulate 8:5 s dtype=fp16 form=tree storage=shared trips=5"),
                ElementsAre("error 8"));
    EXPECT_THAT(mp401("accumulate 8:5 s dtype=fp16 form=tree storage=shared"), ElementsAre("error 8"));
    EXPECT_THAT(mp401("accumulate 8:5 s dtype=fp16 form=tree trips=64"), ElementsAre("error 8"));
}

TEST(HalfAccumulator, TreeThatAddsInFloatIsANote) {
    EXPECT_THAT(mp401("accumulate 8:5 s dtype=fp16 element=fp32 form=tree"), ElementsAre("note 8"));
    EXPECT_THAT(mp401("accumulate 8:5 s dtype=fp16 element=fp32"), ElementsAre("error 8"));
}

TEST(HalfAccumulator, NotKnownWhichHalfIsAWarning) {
    EXPECT_THAT(mp401("accumulate 8:5 acc dtype=lowp"), ElementsAre("warning 8"));
}

TEST(HalfAccumulator, MemberSumsAreAWarningBecauseCallsAreNotCounted) {
    EXPECT_THAT(mp401("accumulate 8:5 total_ dtype=fp16 form=member storage=member"),
                ElementsAre("warning 8"));
}

TEST(HalfAccumulator, SumsOfSquaresBelongToTheStatisticsRule) {
    EXPECT_THAT(mp401("accumulate 8:5 q dtype=fp16 stat=sum_of_squares"), IsEmpty());
    EXPECT_THAT(lint("MP405", {kernel("accumulate 8:5 q dtype=fp16 stat=sum_of_squares")}),
                ElementsAre("error 8"));
}

TEST(HalfAccumulator, InferenceProfileMakesItANote) {
    EXPECT_THAT(mp401("accumulate 8:5 acc dtype=fp16", Profile::inference), ElementsAre("note 8"));
}

TEST(HalfAccumulator, MessageNamesTheDtypeAndWhereTheSumStops) {
    const auto fp16 = findings("MP401", {kernel("accumulate 8:5 acc dtype=fp16")});
    ASSERT_EQ(fp16.size(), 1u);
    EXPECT_EQ(fp16[0].message,
              "accumulator 'acc' is fp16: a sum of ones stops growing at 2048, and from 65520 on "
              "it overflows");
    const auto bf16 = findings("MP401", {kernel("accumulate 8:5 acc dtype=bf16")});
    ASSERT_EQ(bf16.size(), 1u);
    EXPECT_EQ(bf16[0].message, "accumulator 'acc' is bf16: a sum of ones stops growing at 256");
}

TEST(HalfAccumulator, AnAccumulatorIsReportedOnceAtTheFirstOfItsWorstStatements) {
    const std::string few = "accumulate 8:5 acc dtype=fp16 declared=5:10 trips=8";
    const std::string first = "accumulate 9:5 acc dtype=fp16 declared=5:10";
    const std::string second = "accumulate 10:5 acc dtype=fp16 declared=5:10";
    EXPECT_THAT(mp401(few + "\n" + first + "\n" + second), ElementsAre("error 9"));
    const std::string another = "accumulate 10:5 acc dtype=fp16 declared=6:10";
    EXPECT_THAT(mp401(first + "\n" + another), ElementsAre("error 9", "error 10"));
    EXPECT_THAT(mp401("accumulate 8:5 acc dtype=fp16\naccumulate 9:5 acc dtype=fp16"),
                ElementsAre("error 8", "error 9"));
}

TEST(HalfAccumulator, HelperIsANoteAndTheLoopIsThePlace) {
    const auto found = findings("MP401", {kernel("accumulate 8:5 acc dtype=fp16 form=call through=hadd2 "
                                                 "through_span=3:9 declared=7:5")});
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].span.line, 8u);
    ASSERT_GE(found[0].notes.size(), 2u);
    EXPECT_EQ(found[0].notes[0].span.line, 7u);
    EXPECT_EQ(found[0].notes[1].span.line, 3u);
    EXPECT_EQ(found[0].notes[1].text, "hadd2 adds here");
}

TEST(HalfAccumulator, InstantiationIsNamed) {
    const auto found = findings("MP401", {"unit a.cu language=cuda\n"
                                          "  func 1:1 k display=k<__half> kind=kernel instantiated=88:3 "
                                          "template_args=[{fp16 scalar text=__half}]\n"
                                          "accumulate 8:5 acc dtype=fp16"});
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].function.str(), "k<__half>");
    ASSERT_FALSE(found[0].notes.empty());
    EXPECT_EQ(found[0].notes.back().span.line, 88u);
}

}  // namespace
}  // namespace mp::lint::test
