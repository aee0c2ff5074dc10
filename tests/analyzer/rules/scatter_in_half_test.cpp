#include "tests/analyzer/rules/python_facts.hpp"

namespace mp::lint::test {
namespace {

std::string call(std::string name, std::string op, std::string args) {
    return python("    call 5:3 torch.Tensor." + name + " kind=method op=" + op + " args=[" + args +
                  "] result.shape=tensor" + (name.ends_with("_") ? " in_place" : "") + "\n");
}

TEST(ScatterInHalf, TheTargetDecides) {
    const auto add = [](std::string target, std::string source) {
        return lint("MP404", {call("index_add_", "index_add",
                                   "{" + target +
                                       " tensor name=out} {constant=0} {int64 tensor "
                                       "name=i} {" +
                                       source + " tensor name=m}")});
    };
    EXPECT_THAT(add("bf16", "bf16"), ElementsAre("warning 5"));
    EXPECT_THAT(add("fp16", "unknown"), ElementsAre("warning 5"));
    EXPECT_THAT(add("fp32", "fp16"), IsEmpty());
    EXPECT_THAT(add("unknown", "fp16"), IsEmpty());
}

TEST(ScatterInHalf, OnlyWhatAddsRounds) {
    const std::string target = "{fp16 tensor name=out} ";
    const auto reduce = [&](std::string how) {
        return lint("MP404", {call("scatter_reduce", "scatter_reduce",
                                   target + "{constant=0} {name=i} {name=m} {constant=\"'" + how + "'\"}")});
    };
    EXPECT_THAT(reduce("sum"), ElementsAre("warning 5"));
    EXPECT_THAT(reduce("mean"), ElementsAre("warning 5"));
    EXPECT_THAT(reduce("amax"), IsEmpty());
    const auto put = [&](std::string accumulate) {
        return lint("MP404",
                    {call("index_put_", "index_put",
                          target + "{name=i} {name=m} {keyword=accumulate constant=" + accumulate + "}")});
    };
    EXPECT_THAT(put("true"), ElementsAre("warning 5"));
    EXPECT_THAT(put("false"), IsEmpty());
    EXPECT_THAT(lint("MP404", {call("scatter_", "scatter", target + "{constant=0} {name=i} {name=m}")}),
                IsEmpty());
}

TEST(ScatterInHalf, ThePackageOfTheSameNameAddsWhatItIsGiven) {
    const auto scatter = [](std::string name, std::string more = "") {
        return lint("MP404", {python("    call 5:3 torch_scatter." + name +
                                     " args=[{fp16 tensor name=m} {name=i}" + more + "]\n")});
    };
    EXPECT_THAT(scatter("scatter_add"), ElementsAre("warning 5"));
    EXPECT_THAT(scatter("scatter"), ElementsAre("warning 5"));
    EXPECT_THAT(scatter("scatter", " {keyword=reduce constant=\"'max'\"}"), IsEmpty());
    EXPECT_THAT(scatter("scatter_max"), IsEmpty());
}

TEST(ScatterInHalf, InferenceIsANote) {
    EXPECT_THAT(
        lint("MP404",
             {call("index_add_", "index_add", "{fp16 tensor name=out} {constant=0} {name=i} {name=m}")},
             Profile::inference),
        ElementsAre("note 5"));
}

}  // namespace
}  // namespace mp::lint::test
