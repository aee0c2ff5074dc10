#include "tests/analyzer/rules/rule_test.hpp"

namespace mp::lint::test {
namespace {

std::vector<std::string> mp602(std::string_view fact) { return lint("MP602", {kernel(fact)}); }

TEST(ImplicitHalfNarrowing, ImplicitConversionIsANote) {
    EXPECT_THAT(mp602("cast 2:5 fp32->fp16 form=implicit purpose=init target=lr"), ElementsAre("note 2"));
    EXPECT_THAT(mp602("cast 2:5 fp64->bf16 form=assign purpose=store target=h"), ElementsAre("note 2"));
}

TEST(ImplicitHalfNarrowing, StatisticsAreWarnings) {
    EXPECT_THAT(mp602("cast 2:5 fp32->fp16 form=implicit source.stat=sum"), ElementsAre("warning 2"));
}

TEST(ImplicitHalfNarrowing, WrittenConversionsAreSilent) {
    EXPECT_THAT(mp602("cast 2:5 fp32->fp16 form=explicit"), IsEmpty());
    EXPECT_THAT(mp602("cast 2:5 fp32->fp16 form=intrinsic"), IsEmpty());
}

TEST(ImplicitHalfNarrowing, FinalStoreOfAKernelIsSilentAndOfAHostFunctionIsNot) {
    EXPECT_THAT(mp602("cast 2:5 fp32->fp16 form=assign purpose=store output target=\"y[i]\""), IsEmpty());
    EXPECT_THAT(mp602("cast 2:5 fp32->fp16 form=assign purpose=store output target=\"*(y + i)\""), IsEmpty());
    EXPECT_THAT(lint("MP602", {host("cast 2:5 fp32->fp16 form=assign purpose=store output")}),
                ElementsAre("note 2"));
}

TEST(ImplicitHalfNarrowing, OneScalarIsStateAndNotAResult) {
    EXPECT_THAT(mp602("cast 2:5 fp32->fp16 form=assign purpose=store output target=*rate"),
                ElementsAre("note 2"));
    EXPECT_THAT(lint("MP602", {"unit a.cu language=cuda\n  func 1:1 load kind=device\n"
                               "cast 2:5 fp32->fp16 form=assign purpose=store output target=*out"}),
                IsEmpty());
}

TEST(ImplicitHalfNarrowing, ConstantsAndWideningAreSilent) {
    EXPECT_THAT(mp602("cast 2:5 fp32->fp16 form=implicit source.constant=0.5"), IsEmpty());
    EXPECT_THAT(mp602("cast 2:5 fp16->fp32 form=implicit"), IsEmpty());
}

TEST(ImplicitHalfNarrowing, IsOffByDefault) { EXPECT_FALSE(find_rule("MP602")->on_by_default); }

}  // namespace
}  // namespace mp::lint::test
