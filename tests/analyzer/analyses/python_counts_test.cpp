#include "tests/analyzer/rules/python_facts.hpp"

namespace mp::lint::test {
namespace {

std::string arange(std::string end, std::string dtype) {
    return "    call 5:3 torch.arange args=[{" + end + "} {" + dtype + " dtype keyword=dtype}] " +
           "result.dtype=" + dtype + " result.shape=tensor\n";
}

std::string converted(std::string source, std::string dtype) {
    return "    call 4:3 torch." + source + " result.shape=tensor\n" +
           "    call 5:3 torch.Tensor.to kind=method args=[{tensor call=0} {" + dtype +
           " dtype}] result.dtype=" + dtype + " result.shape=tensor\n";
}

TEST(PythonCounts, PositionsMadeInHalf) {
    EXPECT_THAT(lint("MP306", {python(arange("name=n", "bf16"))}), ElementsAre("warning 5"));
    EXPECT_THAT(lint("MP306", {python(arange("name=n", "fp16"))}), ElementsAre("note 5"))
        << "it may be shorter than 2048";
    EXPECT_THAT(lint("MP306", {python(arange("constant=2048", "fp16"))}), IsEmpty());
    EXPECT_THAT(lint("MP306", {python(arange("constant=4096", "fp16"))}), ElementsAre("error 5"));
    EXPECT_THAT(lint("MP306", {python(arange("constant=1000", "bf16"))}), ElementsAre("error 5"));
    EXPECT_THAT(lint("MP306", {python(arange("name=n", "fp32"))}), IsEmpty());
}

TEST(PythonCounts, PositionsCastToHalf) {
    EXPECT_THAT(lint("MP306", {python(converted("arange args=[{name=n}]", "bf16"))}),
                ElementsAre("warning 5"));
    EXPECT_THAT(lint("MP306", {python(converted("arange args=[{name=n}]", "fp32"))}), IsEmpty());
    EXPECT_THAT(lint("MP306", {python(converted("ones args=[{name=n}]", "bf16"))}), IsEmpty());
    // Not whole numbers: a grid of fractions.
    EXPECT_THAT(lint("MP306", {python(converted("arange args=[{constant=0} {constant=1} "
                                                "{constant=0.1}]",
                                                "bf16"))}),
                IsEmpty());
}

TEST(PythonCounts, TimestepsHaveABound) {
    const std::string steps = "randint args=[{constant=0} {constant=1000} {other name=size}]";
    EXPECT_THAT(lint("MP306", {python(converted(steps, "fp16"))}), IsEmpty());
    EXPECT_THAT(lint("MP306", {python(converted(steps, "bf16"))}), ElementsAre("error 5"));
}

TEST(PythonCounts, ABufferTakesTheDtypeOfItsModel) {
    const auto module = [](std::string attribute) {
        return "unit a.py language=python\n"
               "  func 1:5 a.R.__init__ kind=python parent_class=a.R params=[{name=self}]\n"
               "    call 3:3 ?.register_buffer kind=method args=[{name=self} "
               "{constant=\"'inv_freq'\"} {name=f}]\n"
               "  func 6:5 a.R.forward kind=python parent_class=a.R params=[{name=self}]\n"
               "    call 7:3 torch.arange args=[{name=n} {other keyword=dtype name=self." +
               attribute + ".dtype}] result.shape=tensor\n";
    };
    EXPECT_THAT(lint("MP306", {module("inv_freq")}), ElementsAre("note 7")) << "only a caller could cast it";
    const std::string cast =
        "  func 12:5 a.main kind=python\n"
        "    call 13:3 a.R kind=constructor callee=a.R.__init__ result.shape=module result.name=net\n"
        "    call 14:3 torch.nn.Module.half kind=method args=[{module call=0 name=net}] result.dtype=fp16 "
        "result.shape=module\n";
    EXPECT_THAT(lint("MP306", {module("inv_freq") + cast}), ElementsAre("warning 7"));
    EXPECT_THAT(lint("MP306", {module("other")}), IsEmpty());
    const std::string again =
        "  func 9:5 a.R.reset kind=python parent_class=a.R params=[{name=self}]\n"
        "    call 10:3 ?.make kind=method result.name=self.inv_freq\n";
    EXPECT_THAT(lint("MP306", {module("inv_freq") + again}), IsEmpty()) << "made after the cast";
}

}  // namespace
}  // namespace mp::lint::test
