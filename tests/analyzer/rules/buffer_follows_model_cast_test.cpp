#include "tests/analyzer/rules/python_facts.hpp"

namespace mp::lint::test {
namespace {

std::string module(std::string_view init, std::string_view more = "") {
    return "unit m.py language=python\n"
           "  func 1:5 m.Rotary.__init__ kind=python parent_class=m.Rotary bases=[torch.nn.Module] "
           "params=[{name=self} {name=dim}]\n" +
           std::string(init) + std::string(more);
}

const std::string kTable =
    "    call 3:9 torch.arange op=arange args=[{scalar constant=0} {other name=dim}] result.shape=tensor\n"
    "    call 3:9 torch.Tensor.__truediv__ kind=op op=div args=[{tensor call=0} {other name=dim}] "
    "result.shape=tensor\n"
    "    call 3:9 torch.Tensor.__rpow__ kind=op op=pow args=[{tensor call=1} {constant=10000}] "
    "result.shape=tensor\n"
    "    call 4:9-50 torch.nn.Module.register_buffer kind=method args=[{module name=self} "
    "{object constant=\"'inv_freq'\"} {tensor call=2}]\n";

std::string method(std::string name, std::string_view facts = "") {
    return "  func 9:5 m.Rotary." + name + " kind=python parent_class=m.Rotary params=[{name=self}]\n" +
           std::string(facts);
}

// A script of another file makes the module half.
const std::string kCast =
    "unit train.py language=python\n  func 1:5 train.main kind=python\n"
    "    call 2:9 m.Rotary kind=constructor callee=m.Rotary.__init__ result.shape=module result.name=net\n"
    "    call 3:9 torch.nn.Module.half kind=method args=[{module call=0 name=net}] result.dtype=fp16 "
    "result.shape=module\n";

// Its angles.
const std::string kTurns =
    "  func 20:5 m.turned kind=python params=[{name=t}]\n    call 21:9 torch.cos op=cos args=[{tensor "
    "param=0}]\n";

std::vector<std::string> mp503(std::string_view init, std::string_view more = "") {
    return lint("MP503", {module(init, std::string(more) + kTurns), kCast});
}

TEST(BufferFollowsModelCast, WithoutACastInTheProgramItIsANote) {
    EXPECT_THAT(lint("MP503", {module(kTable)}), ElementsAre("note 4"));
}

TEST(BufferFollowsModelCast, ABufferThatIsOnlyAskedIsSilent) {
    const std::string asked =
        "    call 10:9 torch.zeros args=[{dtype name=self.inv_freq.dtype keyword=dtype}]\n";
    EXPECT_THAT(mp503(kTable, method("forward", asked)), IsEmpty());
    EXPECT_THAT(mp503(kTable, method("forward",
                                     asked + "    call 11:9 torch.cos args=[{tensor name=self.inv_freq}]\n")),
                ElementsAre("warning 4"));
}

TEST(BufferFollowsModelCast, ATableOfFrequenciesIsAWarning) {
    EXPECT_THAT(mp503(kTable), ElementsAre("warning 4"));
}

TEST(BufferFollowsModelCast, WithoutAnglesInTheFileItIsANote) {
    EXPECT_THAT(lint("MP503", {module(kTable), kCast}), ElementsAre("note 4"));
}

TEST(BufferFollowsModelCast, MasksAndPositionsAreSilent) {
    EXPECT_THAT(mp503("    call 3:9 torch.ones op=ones result.shape=tensor result.dtype=fp32\n"
                      "    call 4:9 torch.nn.Module.register_buffer kind=method args=[{module name=self} "
                      "{object constant=\"'mask'\"} {fp32 tensor call=0}]\n"),
                IsEmpty());
    EXPECT_THAT(mp503("    call 3:9 torch.arange op=arange result.shape=tensor\n"
                      "    call 4:9 torch.nn.Module.register_buffer kind=method args=[{module name=self} "
                      "{object constant=\"'ids'\"} {tensor call=0}]\n"),
                IsEmpty());
}

TEST(BufferFollowsModelCast, FinishedSinesAreNoFrequencies) {
    std::string sines = kTable;
    sines.replace(sines.find("    call 4:9-50"), std::string::npos,
                  "    call 3:9 torch.Tensor.sin kind=method op=sin args=[{tensor call=2}] "
                  "result.shape=tensor\n"
                  "    call 4:9 torch.nn.Module.register_buffer kind=method args=[{module name=self} "
                  "{object constant=\"'emb'\"} {tensor call=3}]\n");
    EXPECT_THAT(mp503(sines), IsEmpty());
}

TEST(BufferFollowsModelCast, AModuleThatOverridesTheCastIsSilent) {
    EXPECT_THAT(mp503(kTable, method("_apply")), IsEmpty());
    EXPECT_THAT(mp503(kTable, method("forward")), ElementsAre("warning 4"));
}

TEST(BufferFollowsModelCast, WideningItsUseIsANote) {
    EXPECT_THAT(mp503(kTable, method("forward",
                                     "    call 10:9 torch.Tensor.float kind=method "
                                     "args=[{tensor name=self.inv_freq}] result.dtype=fp32\n")),
                ElementsAre("note 4"));
}

TEST(BufferFollowsModelCast, ATableThatIsMadeAgainIsSilent) {
    EXPECT_THAT(mp503(kTable, method("forward",
                                     "    call 10:9 torch.arange op=arange "
                                     "result.name=self.inv_freq\n")),
                IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
