#include "tests/analyzer/rules/rule_test.hpp"

namespace mp::lint::test {
namespace {

std::vector<std::string> mp306(std::string_view fact) { return lint("MP306", {kernel(fact)}); }

TEST(IntInHalf, PositionsOfUnknownRangeAreWarnings) {
    EXPECT_THAT(mp306("cast 3:9 int32->fp16 form=intrinsic loop_index source.name=i purpose=store"),
                ElementsAre("warning 3"));
    EXPECT_THAT(mp306("cast 3:9 int64->bf16 form=explicit loop_index purpose=store"),
                ElementsAre("warning 3"));
    EXPECT_THAT(mp306("cast 3:9 int32->lowp loop_index purpose=store"), ElementsAre("warning 3"));
    EXPECT_THAT(mp306("cast 3:9 int32->fp16 loop_index purpose=operand"), ElementsAre("note 3"));
}

TEST(IntInHalf, CountsThatDivideAreWarningsWithALargeRange) {
    EXPECT_THAT(mp306("cast 3:9 int32->fp16 form=explicit role=divisor source.name=pooled_width"),
                ElementsAre("note 3"));
    EXPECT_THAT(mp306("cast 3:9 int64->fp16 form=explicit role=divisor source.name=numel"),
                ElementsAre("warning 3"));
    EXPECT_THAT(mp306("cast 3:9 int32->fp16 form=explicit role=divisor bound=4096 source.name=count"),
                ElementsAre("warning 3"));
}

TEST(IntInHalf, BoundsThatFitAreSilent) {
    EXPECT_THAT(mp306("cast 3:9 int32->fp16 loop_index bound=2048"), IsEmpty());
    EXPECT_THAT(mp306("cast 3:9 int32->fp16 loop_index bound=2049"), ElementsAre("warning 3"));
    EXPECT_THAT(mp306("cast 3:9 int32->bf16 loop_index bound=256"), IsEmpty());
    EXPECT_THAT(mp306("cast 3:9 int32->bf16 loop_index bound=1023"), ElementsAre("warning 3"));
    EXPECT_THAT(mp306("cast 3:9 uint8->fp16 loop_index"), IsEmpty());
    EXPECT_THAT(mp306("cast 3:9 uint8->bf16 loop_index"), IsEmpty());
    EXPECT_THAT(mp306("cast 3:9 int8->bf16 loop_index"), IsEmpty());
}

TEST(IntInHalf, IntegerThroughFloatIsTheSame) {
    EXPECT_THAT(mp306("cast 3:19 int32->fp32 loop_index bound=4096 source.name=i\n"
                      "cast 3:9 fp32->fp16 form=intrinsic inner=0"),
                ElementsAre("warning 3"));
}

TEST(IntInHalf, FloatDestinationIsSilent) {
    EXPECT_THAT(mp306("cast 3:9 int32->fp32 loop_index"), IsEmpty());
}

TEST(IntInHalf, UnprovenIntegersAreNotErrors) {
    EXPECT_THAT(mp306("cast 3:9 int32->fp16 form=implicit source.name=idx"), ElementsAre("note 3"));
    EXPECT_THAT(mp306("cast 3:9 int32->fp16 form=intrinsic source.name=q"), ElementsAre("note 3"));
}

TEST(IntInHalf, BooleansAreNotIntegers) { EXPECT_THAT(mp306("cast 3:9 bool->fp16"), IsEmpty()); }

TEST(IntInHalf, ConstantsAreJudgedByTheirValue) {
    EXPECT_THAT(mp306("cast 3:9 int32->fp16 source.constant=2048"), IsEmpty());
    EXPECT_THAT(mp306("cast 3:9 int32->fp16 source.constant=2049"), ElementsAre("warning 3"));
    EXPECT_THAT(mp306("cast 3:9 int32->fp16 source.constant=4096"), IsEmpty());
    // Out of range is another rule's.
    EXPECT_THAT(mp306("cast 3:9 int32->fp16 source.constant=70000"), IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
