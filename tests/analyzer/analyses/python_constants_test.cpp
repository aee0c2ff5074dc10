#include "tests/analyzer/rules/python_facts.hpp"

namespace mp::lint::test {
namespace {

std::string method(std::string name, std::string op, std::string args) {
    return "    call 5:3 torch.Tensor." + name + " kind=method op=" + op + " args=[" + args +
           "] result.shape=tensor\n";
}

std::string op(std::string name, std::string canonical, std::string args) {
    return "    call 5:3 torch.Tensor." + name + " kind=op op=" + canonical + " args=[" + args +
           "] result.shape=tensor\n";
}

const std::string kHalf = "{fp16 tensor name=s}";

TEST(PythonConstants, MaskValueOutOfRange) {
    const auto fill = [](std::string tensor, std::string value) {
        return lint("MP301", {python(method("masked_fill", "masked_fill",
                                            tensor + " {bool tensor name=m} {constant=" + value + "}"))});
    };
    EXPECT_THAT(fill(kHalf, "-1e+09"), ElementsAre("error 5"));
    EXPECT_THAT(fill(kHalf, "-10000"), IsEmpty());
    EXPECT_THAT(fill(kHalf, "-inf"), IsEmpty());
    EXPECT_THAT(fill("{fp32 tensor name=s}", "-1e+09"), IsEmpty());
    EXPECT_THAT(fill("{other name=s}", "-1e+09"), IsEmpty());
    EXPECT_THAT(fill("{bf16 tensor name=s}", "-1e+09"), IsEmpty());
    EXPECT_THAT(fill("{bf16 tensor name=s}", "-3.4028234663852886e+38"), ElementsAre("warning 5"));
}

TEST(PythonConstants, FixNamesTheTensorsOwnLimit) {
    const auto found =
        findings("MP301", {python(method("masked_fill", "masked_fill",
                                         kHalf + " {bool tensor name=m} {constant=-1e+09 span=5:20-24}"))});
    ASSERT_EQ(found.size(), 1u);
    ASSERT_EQ(found[0].edits.size(), 1u);
    EXPECT_EQ(found[0].edits[0].text, "torch.finfo(s.dtype).min");
    EXPECT_EQ(found[0].edits[0].at.column, 20u);
    EXPECT_FALSE(found[0].safe_edits);
}

TEST(PythonConstants, AssignmentFactoriesAndMasksByMultiplication) {
    EXPECT_THAT(lint("MP301", {python("    call 5:3 torch.Tensor.__setitem__ kind=op args=[" + kHalf +
                                      " {name=m} {constant=-1e+09}]\n")}),
                ElementsAre("error 5"));
    EXPECT_THAT(lint("MP301", {python("    call 5:3 torch.full args=[{name=n} {constant=-1e+09} "
                                      "{fp16 dtype keyword=dtype constant=torch.float16}] "
                                      "result.dtype=fp16 result.shape=tensor\n")}),
                ElementsAre("error 5"));
    EXPECT_THAT(lint("MP301", {python(op("__mul__", "mul", kHalf + " {constant=-1e+09}"))}),
                ElementsAre("error 5"));
    EXPECT_THAT(lint("MP301", {python(op("__mul__", "mul", kHalf + " {constant=100000}"))}),
                ElementsAre("warning 5"));
    EXPECT_THAT(lint("MP301", {python(op("__truediv__", "div", kHalf + " {constant=100000}"))}), IsEmpty());
}

TEST(PythonConstants, NumbersThatAreNoElementsAreSilent) {
    EXPECT_THAT(lint("MP301", {python(method("index_fill", "index_fill",
                                             kHalf + " {constant=100000} {name=i} {constant=0}"))}),
                IsEmpty());
    EXPECT_THAT(lint("MP302", {python(method("add", "add",
                                             kHalf + " {tensor fp16 name=y} {constant=1e-08 "
                                                     "keyword=alpha}"))}),
                IsEmpty());
}

TEST(PythonConstants, EpsilonThatVanishes) {
    const auto add = [](std::string tensor, std::string value) {
        return lint("MP302", {python(op("__add__", "add", tensor + " {constant=" + value + "}"))});
    };
    EXPECT_THAT(add(kHalf, "1e-08"), ElementsAre("error 5"));
    EXPECT_THAT(add(kHalf, "0.0001"), IsEmpty());
    EXPECT_THAT(add("{fp32 tensor name=s}", "1e-08"), IsEmpty());
    EXPECT_THAT(add("{bf16 tensor name=s}", "1e-08"), IsEmpty());
    EXPECT_THAT(add("{other name=s}", "1e-08"), IsEmpty());
    EXPECT_THAT(add(kHalf, "1e-06"), ElementsAre("note 5"));
}

TEST(PythonConstants, SubnormalEpsilonThatDividesIsANote) {
    const auto divided_by = [](std::string index) {
        return lint("MP302", {python(op("__add__", "add", kHalf + " {constant=1e-06}") +
                                     "    call 6:3 torch.Tensor.__truediv__ kind=op op=div args=[{tensor "
                                     "name=y} {tensor call=" +
                                     index + "}] result.shape=tensor\n")});
    };
    EXPECT_THAT(divided_by("0"), ElementsAre("note 5"));
}

TEST(PythonConstants, DefaultEpsilonOfNormalize) {
    const auto normalize = [](std::string more, std::string dtype = "fp16") {
        return "    call 5:3 torch.nn.functional.normalize op=normalize args=[{" + dtype + " tensor name=s}" +
               more + "] result.shape=tensor\n";
    };
    EXPECT_THAT(lint("MP302", {python(normalize(""))}), ElementsAre("note 5"));
    EXPECT_THAT(lint("MP302", {python(normalize("", "fp32"))}), IsEmpty());
    EXPECT_THAT(lint("MP302", {python(normalize(" {constant=0.0001 keyword=eps}"))}), IsEmpty());
}

TEST(PythonConstants, BranchesThatAskForTheDtypeAreSilent) {
    const std::string blocks = "    block to=[{1} {2}]\n    block to=[2]\n    block leaves\n";
    const std::string fill =
        "    call 5:3 torch.Tensor.masked_fill kind=method op=masked_fill args=[{fp16 tensor "
        "name=s} {name=m} {constant=-1e+09}] block=1\n";
    const auto after = [&](std::string dtype) {
        return lint("MP301", {python(blocks + "    call 4:3 ?.__eq__ kind=op args=[{name=s.dtype} {" + dtype +
                                     "}]\n" + fill)});
    };
    EXPECT_THAT(after("fp32 dtype constant=torch.float32"), IsEmpty());
    EXPECT_THAT(after("bool dtype constant=torch.bool"), ElementsAre("error 5"));
    EXPECT_THAT(lint("MP301", {python("    block to=[{1 condition=self.fp16 when=false} {2 "
                                      "condition=self.fp16}]\n    block to=[2]\n    block leaves\n" +
                                      fill)}),
                IsEmpty());
    EXPECT_THAT(lint("MP301", {python(blocks + fill)}), ElementsAre("error 5"));
}

}  // namespace
}  // namespace mp::lint::test
