#include "tests/analyzer/rules/rule_test.hpp"

namespace mp::lint::test {
namespace {

std::vector<std::string> mp405(std::string_view fact) { return lint("MP405", {kernel(fact)}); }

TEST(HalfNormStats, VarianceStoredInHalfIsAnError) {
    EXPECT_THAT(mp405("cast 12:7 fp32->fp16 form=intrinsic purpose=store source.stat=variance output"),
                ElementsAre("error 12"));
    EXPECT_THAT(mp405("cast 12:7 fp32->bf16 form=intrinsic source.stat=sum_of_squares"),
                ElementsAre("error 12"));
    EXPECT_THAT(mp405("cast 12:7 fp32->lowp form=intrinsic source.stat=variance"), ElementsAre("warning 12"));
}

TEST(HalfNormStats, InverseRootThatIsKeptInHalfIsAWarning) {
    EXPECT_THAT(mp405("cast 12:7 fp32->fp16 source.stat=rstd output"), ElementsAre("warning 12"));
    EXPECT_THAT(mp405("cast 12:7 fp32->bf16 source.stat=rstd purpose=argument function=__stcs"),
                ElementsAre("warning 12"));
    EXPECT_THAT(mp405("cast 12:7 fp32->fp16 source.stat=rstd"), ElementsAre("note 12")) << "it scales a row";
}

TEST(HalfNormStats, MeanCountsOnlyBesideAVariance) {
    EXPECT_THAT(mp405("cast 12:7 fp32->fp16 source.stat=mean"), IsEmpty());
    EXPECT_THAT(mp405("cast 12:7 fp32->fp16 source.stat=mean\n"
                      "call 11:3 rsqrtf args=[{fp32 stat=variance}] result.dtype=fp32"),
                ElementsAre("warning 12"));
}

TEST(HalfNormStats, OtherValuesAndWideningAreSilent) {
    EXPECT_THAT(mp405("cast 12:7 fp32->fp16 form=intrinsic purpose=store output"), IsEmpty());
    EXPECT_THAT(mp405("cast 12:7 fp32->fp16 source.stat=sum"), IsEmpty());
    EXPECT_THAT(mp405("cast 12:7 fp16->fp32 source.stat=variance"), IsEmpty());
}

TEST(HalfNormStats, InvertingAVarianceInHalfIsAnError) {
    for (const std::string root : {"hrsqrt", "h2rsqrt", "hsqrt"})
        EXPECT_THAT(mp405("call 14:9 " + root + " args=[{fp16 stat=variance name=var}] result.dtype=fp16"),
                    ElementsAre("error 14"));
    EXPECT_THAT(mp405("call 14:9 hrsqrt args=[{fp16 name=x}] result.dtype=fp16"), IsEmpty());
    EXPECT_THAT(mp405("call 14:9 rsqrt args=[{fp32 stat=variance}] result.dtype=fp32"), IsEmpty());
    EXPECT_THAT(mp405("call 14:9 rsqrtf args=[{fp32 stat=variance}] result.dtype=fp32"), IsEmpty());
}

TEST(HalfNormStats, OneLineGivesOneFinding) {
    EXPECT_THAT(mp405("cast 14:16 fp32->fp16 purpose=argument function=hrsqrt source.stat=variance\n"
                      "call 14:9 hrsqrt args=[{fp16 stat=variance}] result.dtype=fp16"),
                ElementsAre("error 14"));
}

TEST(HalfNormStats, SumOfSquaresInHalf) {
    EXPECT_THAT(mp405("accumulate 6:5 q dtype=fp16 op=fma stat=sum_of_squares"), ElementsAre("error 6"));
    EXPECT_THAT(mp405("accumulate 6:5 q dtype=fp16 op=fma stat=sum_of_squares trips=8"),
                ElementsAre("note 6"));
    EXPECT_THAT(mp405("accumulate 6:5 q dtype=fp32 op=fma stat=sum_of_squares"), IsEmpty());
    EXPECT_THAT(mp405("accumulate 6:5 q dtype=fp16 op=max stat=sum_of_squares"), IsEmpty());
}

TEST(HalfNormStats, LargestInputIsDerivedFromTheFormat) {
    const auto found = findings("MP405", {kernel("accumulate 6:5 q dtype=fp16 stat=sum_of_squares")});
    ASSERT_EQ(found.size(), 1u);
    EXPECT_THAT(found[0].message, HasSubstr("one input above 255 overflows it"));
}

TEST(HalfNormStats, ConvertingHelperIsFollowed) {
    const std::string helper =
        "  func 2:1 cuda_cast usr=h kind=device params=[{fp32 name=v}]\n"
        "    cast 3:5 fp32->fp16 form=intrinsic source.param=0\n";
    const std::string caller =
        "  func 9:1 k kind=kernel\n"
        "    call 12:9 cuda_cast callee=USR args=[{fp32 stat=rstd name=s}] "
        "result.dtype=fp16 result.shape=vec\n";
    const auto with = [&](std::string usr) {
        return "unit a.cu language=cuda\n" + helper + std::string(caller).replace(caller.find("USR"), 3, usr);
    };
    EXPECT_THAT(lint("MP405", {with("h")}), ElementsAre("note 12"));
    EXPECT_THAT(lint("MP405", {with("elsewhere")}), IsEmpty());
    const std::string other = with("h");
    EXPECT_THAT(
        lint("MP405", {std::string(other).replace(other.find("source.param=0"), 14, "source.name=table")}),
        IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
