#include "tests/analyzer/rules/python_facts.hpp"

namespace mp::lint::test {
namespace {

// p = x.clamp(max=bound), and an op on 1 - p.
std::vector<std::string> found(std::string_view dtype, std::string_view bound, std::string_view op) {
    return lint("MP310", {python("    call 4:5 torch.clamp op=clamp args=[{" + std::string(dtype) +
                                 " tensor name=x} {keyword=max text=bound constant=" + std::string(bound) +
                                 "}] result.shape=tensor\n"
                                 "    call 5:5 ?.__rsub__ kind=op op=sub args=[{constant=1} {tensor call=0}] "
                                 "result.shape=tensor\n"
                                 "    call 6:5 torch." +
                                 std::string(op) + " op=" + std::string(op) +
                                 " args=[{tensor call=1}] result.shape=tensor\n")});
}

TEST(BoundRoundsToOne, WhereLogFollowsItIsAWarning) {
    EXPECT_THAT(found("fp16", "0.9999", "log"), ElementsAre("warning 4"));
    EXPECT_THAT(found("bf16", "0.999", "log"), ElementsAre("warning 4"));
    EXPECT_THAT(found("fp16", "0.999", "log"), IsEmpty());
    EXPECT_THAT(found("fp32", "0.9999", "log"), IsEmpty());
}

TEST(BoundRoundsToOne, WithoutHarmInSightItIsANote) {
    EXPECT_THAT(found("fp16", "0.9999", "exp"), ElementsAre("note 4"));
}

}  // namespace
}  // namespace mp::lint::test
