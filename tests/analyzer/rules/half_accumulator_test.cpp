#include "tests/analyzer/rules/rule_test.hpp"

namespace mp::lint::test {
namespace {

std::vector<std::string> mp401(std::string_view fact, Profile profile = Profile::training) {
    return lint("MP401", {kernel(fact)}, profile);
}

TEST(HalfAccumulator, SumOfManyTermsIsAnError) {
    EXPECT_THAT(mp401("accumulate 8:5 acc dtype=fp16 element=fp16 trips=64 at_least=64"),
                ElementsAre("error 8"));
    EXPECT_THAT(mp401("accumulate 8:5 acc dtype=bf16 op=fma trips=64 at_least=64"), ElementsAre("error 8"));
    EXPECT_THAT(mp401("accumulate 8:5 acc dtype=e4m3 trips=64 at_least=64"), ElementsAre("error 8"));
}

TEST(HalfAccumulator, SumOfUnknownLengthIsAWarningUnlessItsTilesAreLong) {
    EXPECT_THAT(mp401("accumulate 8:5 acc dtype=fp16"), ElementsAre("warning 8"));
    EXPECT_THAT(mp401("accumulate 8:5 acc dtype=fp16 at_least=32"), ElementsAre("warning 8"));
    EXPECT_THAT(mp401("accumulate 8:5 acc dtype=fp16 at_least=33"), ElementsAre("error 8"));
}

TEST(HalfAccumulator, RoundsThatMayAddNothingMakeItAWarning) {
    EXPECT_THAT(mp401("accumulate 8:5 acc dtype=fp16 trips=64"), ElementsAre("warning 8"));
    EXPECT_THAT(mp401("accumulate 8:5 acc dtype=fp16 trips=32"), ElementsAre("note 8"));
}

TEST(HalfAccumulator, AWindowThatGoesOnInFloatIsAWarning) {
    const auto window = [](std::string terms) {
        return mp401(
            "cast 9:7 fp16->fp32 purpose=accumulate source.dtype=fp16 source.name=acc source.text=acc "
            "target=total in_loop\n"
            "accumulate 8:5 acc dtype=fp16 trips=" +
            terms + " at_least=" + terms);
    };
    EXPECT_THAT(window("2047"), ElementsAre("warning 8"));
    EXPECT_THAT(window("2048"), ElementsAre("error 8")) << "a sum of ones stops growing";
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
    EXPECT_THAT(mp401("accumulate 8:5 acc dtype=fp16 trips=32 at_least=32"), ElementsAre("note 8"));
    EXPECT_THAT(mp401("accumulate 8:5 acc dtype=fp16 trips=33 at_least=33"), ElementsAre("error 8"));
}

TEST(HalfAccumulator, TreeOfNStepsJoinsTwoToTheNTerms) {
    EXPECT_THAT(mp401("accumulate 8:5 s dtype=fp16 form=tree storage=shared trips=4 at_least=4"),
                ElementsAre("note 8"));
    EXPECT_THAT(mp401("accumulate 8:5 s dtype=fp16 form=tree storage=shared trips=5 at_least=5"),
                ElementsAre("warning 8"));
    EXPECT_THAT(mp401("accumulate 8:5 s dtype=fp16 form=tree storage=shared"), ElementsAre("warning 8"));
    EXPECT_THAT(mp401("accumulate 8:5 s dtype=fp16 form=tree at_least=5"), ElementsAre("warning 8"));
    EXPECT_THAT(mp401("accumulate 8:5 s dtype=fp16 form=tree trips=64 at_least=64"),
                ElementsAre("warning 8"));
}

TEST(HalfAccumulator, TreeThatAddsInFloatIsANote) {
    EXPECT_THAT(mp401("accumulate 8:5 s dtype=fp16 element=fp32 form=tree"), ElementsAre("note 8"));
    EXPECT_THAT(mp401("accumulate 8:5 s dtype=fp16 element=fp32 trips=64 at_least=64"),
                ElementsAre("error 8"));
}

TEST(HalfAccumulator, NotKnownWhichHalfIsAWarning) {
    EXPECT_THAT(mp401("accumulate 8:5 acc dtype=lowp trips=64 at_least=64"), ElementsAre("warning 8"));
}

TEST(HalfAccumulator, MemberSumsAreAWarningBecauseCallsAreNotCounted) {
    EXPECT_THAT(mp401("accumulate 8:5 total_ dtype=fp16 trips=64 at_least=64 form=member storage=member"),
                ElementsAre("warning 8"));
}

TEST(HalfAccumulator, SumsOfSquaresBelongToTheStatisticsRule) {
    EXPECT_THAT(mp401("accumulate 8:5 q dtype=fp16 stat=sum_of_squares"), IsEmpty());
    EXPECT_THAT(lint("MP405", {kernel("accumulate 8:5 q dtype=fp16 stat=sum_of_squares")}),
                ElementsAre("error 8"));
}

TEST(HalfAccumulator, InferenceProfileMakesItANote) {
    EXPECT_THAT(mp401("accumulate 8:5 acc dtype=fp16 trips=64 at_least=64", Profile::inference),
                ElementsAre("note 8"));
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
    const std::string few = "accumulate 8:5 acc dtype=fp16 declared=5:10 trips=8 at_least=8";
    const std::string first = "accumulate 9:5 acc dtype=fp16 declared=5:10 trips=64 at_least=64";
    const std::string second = "accumulate 10:5 acc dtype=fp16 declared=5:10 trips=64 at_least=64";
    EXPECT_THAT(mp401(few + "\n" + first + "\n" + second), ElementsAre("error 9"));
    const std::string another = "accumulate 10:5 acc dtype=fp16 declared=6:10 trips=64 at_least=64";
    EXPECT_THAT(mp401(first + "\n" + another), ElementsAre("error 9", "error 10"));
    EXPECT_THAT(mp401("accumulate 8:5 acc dtype=fp16 trips=64 at_least=64\naccumulate 9:5 acc dtype=fp16 "
                      "trips=64 at_least=64"),
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

// Two kernels of one file: what they are, and what each of them does.
std::string two_kernels(std::string_view first, std::string_view first_does, std::string_view second,
                        std::string_view second_does) {
    return "unit a.cu language=cuda\n  func 1:1 " + std::string(first) + " usr=first kind=kernel\n    " +
           std::string(first_does) + "\n  func 21:1 " + std::string(second) +
           " usr=second kind=kernel\n    " + std::string(second_does) + "\n";
}

constexpr std::string_view kHalfSum = "accumulate 8:5 acc dtype=fp16 element=fp16 trips=64 at_least=64";
constexpr std::string_view kWideSum = "accumulate 28:5 acc dtype=fp32 element=fp16 trips=64 at_least=64";

TEST(HalfAccumulator, AVariantWithTheSameInputsThatSumsInFloatIsTheCallersChoice) {
    const std::string_view reads_half = " params=[{fp16 pointer name=x} {fp32 pointer name=out}]";
    const std::string_view reads_float = " params=[{fp32 pointer name=x} {fp32 pointer name=out}]";
    const auto beside = [&](std::string_view name, std::string_view params, std::string_view sum) {
        return lint("MP401", {two_kernels("sum_f16_f16 display=sum_f16_f16" + std::string(reads_half),
                                          kHalfSum, std::string(name) + std::string(params), sum)});
    };
    EXPECT_THAT(beside("sum_f16_f32", reads_half, kWideSum), ElementsAre("note 8"));
    EXPECT_THAT(beside("sum_f16_f32", reads_float, kWideSum), ElementsAre("error 8"));
    EXPECT_THAT(beside("mean_f16_f32", reads_half, kWideSum), ElementsAre("error 8"));
    EXPECT_THAT(beside("sum_f16_f32", reads_half, "accumulate 28:5 acc dtype=bf16 trips=64 at_least=64"),
                ElementsAre("error 8", "error 28"));
}

TEST(HalfAccumulator, AnInstantiationWithTheSameInputsThatSumsInFloatIsTheCallersChoice) {
    const auto instance = [](std::string_view sum, std::string_view input) {
        return "sum display=sum<" + std::string(sum) + "> params=[{" + std::string(input) +
               " pointer name=x}] template_args=[{" + std::string(input) + " scalar text=T} {" +
               std::string(sum) + " scalar text=S}]";
    };
    const auto beside = [&](std::string_view input) {
        return lint("MP401",
                    {two_kernels(instance("fp16", "fp16"), kHalfSum, instance("fp32", input), kWideSum)});
    };
    EXPECT_THAT(beside("fp16"), ElementsAre("note 8"));
    // Made for half beside float: the inputs differ, and nothing proves that half runs.
    EXPECT_THAT(beside("fp32"), ElementsAre("warning 8"));
}

}  // namespace
}  // namespace mp::lint::test
