#include "tests/analyzer/rules/python_facts.hpp"

namespace mp::lint::test {
namespace {

// mask0 = (1 - m) * torch.finfo(d).min; mask1 likewise; then an addition.
std::string program(std::string addition) {
    std::string text;
    for (const int i : {0, 2})
        text +=
            "    call 3:3 torch.finfo args=[{dtype name=d}] result.shape=object\n"
            "    call 3:9 ?.__mul__ kind=op op=mul args=[{name=m} {name=torch.finfo.min call=" +
            std::to_string(i) + "}]\n";
    return python(text + addition);
}

std::string add(std::string left, std::string right) {
    return program("    call 5:3 torch.Tensor.__add__ kind=op op=add args=[{" + left + "} {" + right +
                   "}] result.shape=tensor\n");
}

TEST(FinfoMinAdditiveMask, AMaskAddedToFp16Scores) {
    EXPECT_THAT(lint("MP304", {add("fp16 tensor name=s", "other call=1")}), ElementsAre("warning 5"));
    EXPECT_THAT(lint("MP304", {add("other call=1", "fp16 tensor name=s")}), ElementsAre("warning 5"));
}

TEST(FinfoMinAdditiveMask, WhereTheSumStaysInRange) {
    for (const std::string dtype : {"bf16", "fp32", "unknown"})
        EXPECT_THAT(lint("MP304", {add(dtype + " tensor name=s", "other call=1")}), IsEmpty()) << dtype;
}

TEST(FinfoMinAdditiveMask, TwoMasksLeaveEveryFormat) {
    EXPECT_THAT(lint("MP304", {add("other call=1", "other call=3")}), ElementsAre("note 5"));
    EXPECT_THAT(lint("MP304", {add("fp32 tensor call=1", "fp32 tensor call=3")}), IsEmpty());
}

TEST(FinfoMinAdditiveMask, OtherNumbersAndOtherLimitsAreSilent) {
    EXPECT_THAT(lint("MP304", {python("    call 3:3 torch.finfo args=[{dtype name=d}]\n"
                                      "    call 3:9 ?.__mul__ kind=op op=mul args=[{name=m} "
                                      "{name=torch.finfo.eps call=0}]\n"
                                      "    call 5:3 torch.Tensor.__add__ kind=op op=add args=[{fp16 "
                                      "tensor name=s} {other call=1}]\n")}),
                IsEmpty());
    const auto times = [](std::string number) {
        return lint("MP304", {python("    call 3:9 ?.__mul__ kind=op op=mul args=[{name=m} "
                                     "{constant=" +
                                     number +
                                     "}]\n"
                                     "    call 5:3 torch.Tensor.__add__ kind=op op=add args=[{fp16 "
                                     "tensor name=s} {other call=0}]\n")});
    };
    EXPECT_THAT(times("-10000"), IsEmpty());
    EXPECT_THAT(times("-65504"), ElementsAre("warning 5"));
}

TEST(FinfoMinAdditiveMask, FillingIsNotAdding) {
    EXPECT_THAT(lint("MP304", {program("    call 5:3 torch.Tensor.masked_fill kind=method "
                                       "op=masked_fill args=[{fp16 tensor name=s} {bool tensor "
                                       "name=m} {name=torch.finfo.min call=0}]\n")}),
                IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
