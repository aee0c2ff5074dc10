#include "tests/analyzer/rules/python_facts.hpp"

namespace mp::lint::test {
namespace {

std::vector<std::string> mp601(std::string_view facts) { return lint("MP601", {kernel(facts)}); }

std::string chain(std::string a, std::string b, std::string c, std::string more = "") {
    return "cast 5:20 " + a + "->" + b + " form=intrinsic " + more + "\ncast 5:9 " + b + "->" + c +
           " form=intrinsic inner=0 purpose=store output\n";
}

TEST(DoubleCast, WideningBackIsANoteUnlessTheLanguageDoesIt) {
    EXPECT_THAT(
        mp601("cast 5:20 fp32->fp16 form=intrinsic\ncast 5:9 fp16->fp32 inner=0 purpose=store output\n"),
        ElementsAre("warning 5"));
    EXPECT_THAT(mp601(chain("fp32", "fp16", "fp32")), ElementsAre("note 5"));
    EXPECT_THAT(mp601(chain("fp64", "bf16", "fp32")), ElementsAre("note 5"));
    EXPECT_THAT(mp601(chain("fp32", "lowp", "fp32")), ElementsAre("note 5"));
    EXPECT_THAT(mp601("cast 5:20 fp32->fp16 form=intrinsic\ncast 5:9 fp16->fp32 inner=0 purpose=operand\n"),
                ElementsAre("note 5"));
}

TEST(DoubleCast, SecondNarrowFormatIsAWarning) {
    EXPECT_THAT(mp601(chain("fp32", "bf16", "fp16")), ElementsAre("warning 5"));
    EXPECT_THAT(mp601(chain("fp32", "fp16", "e4m3")), ElementsAre("warning 5"));
}

TEST(DoubleCast, WideningFirstLosesNothing) {
    EXPECT_THAT(mp601(chain("fp16", "fp32", "fp16")), IsEmpty());
    EXPECT_THAT(mp601(chain("bf16", "fp32", "fp16")), IsEmpty());
    EXPECT_THAT(mp601(chain("fp16", "bf16", "fp32")), IsEmpty());
    EXPECT_THAT(mp601("cast 5:20 fp32->fp16 form=intrinsic"), IsEmpty());
}

TEST(DoubleCast, EndingNarrowAnywayIsSilent) {
    EXPECT_THAT(mp601(chain("fp32", "fp16", "fp32") + "cast 5:1 fp32->fp16 inner=1"), IsEmpty());
    EXPECT_THAT(mp601(chain("fp32", "fp16", "fp32") + "cast 5:1 fp32->bf16 inner=1"),
                ElementsAre("warning 5"));
}

TEST(DoubleCast, ConstantsThatFitAreSilent) {
    EXPECT_THAT(mp601(chain("fp32", "fp16", "fp32", "source.constant=0.5")), IsEmpty());
    EXPECT_THAT(mp601(chain("fp32", "bf16", "fp16", "source.constant=0.1")), ElementsAre("warning 5"));
}

TEST(DoubleCast, HalfIntoAtomicFloatSink) {
    const std::string call = "call 5:3 atomicAdd args=[{TYPE pointer name=out} {fp32}]\n";
    const auto into = [&](std::string type) {
        return mp601(std::string(call).replace(call.find("TYPE"), 4, type) +
                     "cast 5:18 fp32->fp16 form=intrinsic purpose=argument function=atomicAdd\n");
    };
    EXPECT_THAT(into("fp32"), ElementsAre("warning 5"));
    EXPECT_THAT(into("fp16"), IsEmpty());
}

TEST(DoubleCast, SinkWithAVisibleWideningIsReportedOnce) {
    EXPECT_THAT(mp601("call 5:3 atomicAdd args=[{fp32 pointer name=out} {fp32}]\n"
                      "cast 5:18 fp32->fp16 form=intrinsic purpose=argument function=atomicAdd\n"
                      "cast 5:18 fp16->fp32 purpose=argument function=atomicAdd inner=0\n"),
                ElementsAre("warning 5"));
}

TEST(DoubleCast, QuantisationIsANote) {
    EXPECT_THAT(
        lint("MP601", {"unit a.cu\n  func 1:1 fake_quantize kind=device\n" + chain("fp32", "fp16", "fp32")}),
        ElementsAre("note 5"));
}

std::vector<std::string> python_chain(std::string from, std::string unit = "train.py") {
    return lint("MP601", {"unit " + unit +
                          " language=python\n  func 1:5 train.step kind=python\n"
                          "    call 5:9-17 torch.Tensor.half kind=method args=[{" +
                          from +
                          " tensor name=x}] result.dtype=fp16 result.shape=tensor\n"
                          "    call 5:9-25 torch.Tensor.float kind=method args=[{fp16 tensor call=0}] "
                          "result.dtype=fp32 result.shape=tensor\n"});
}

TEST(DoubleCast, PythonConversionsAreCalls) {
    EXPECT_THAT(python_chain("fp32"), ElementsAre("note 5"));
    EXPECT_THAT(python_chain("fp16"), IsEmpty()) << "nothing is lost";
    EXPECT_THAT(python_chain("unknown"), IsEmpty()) << "not proven";
    EXPECT_THAT(python_chain("fp32", "tests/test_parity.py"), IsEmpty());
}

TEST(DoubleCast, MessageShowsThePathAndTheBits) {
    const auto found = findings("MP601", {kernel(chain("fp32", "bf16", "fp32"))});
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].message, "value goes fp32 -> bf16 -> fp32: 16 of 24 bits are lost for nothing");
}

}  // namespace
}  // namespace mp::lint::test
