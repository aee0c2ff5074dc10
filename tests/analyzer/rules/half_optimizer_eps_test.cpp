#include "tests/analyzer/rules/python_facts.hpp"

namespace mp::lint::test {
namespace {

std::string optimizer(std::string params, std::string more = "", std::string name = "Adam") {
    return "    call 5:3 torch.optim." + name + " kind=constructor args=[{" + params + "}" + more +
           "] result.shape=object\n";
}

TEST(HalfOptimizerEps, TheDefaultIsZeroInFp16Only) {
    const auto adam = [](std::string dtype) {
        return lint("MP303", {python(optimizer(dtype + " parameters"))});
    };
    EXPECT_THAT(adam("fp16"), ElementsAre("error 5"));
    EXPECT_THAT(adam("bf16"), IsEmpty());
    EXPECT_THAT(adam("fp32"), IsEmpty());
    EXPECT_THAT(adam("unknown"), IsEmpty());
}

TEST(HalfOptimizerEps, TheEpsThatTheCallGives) {
    const auto eps = [](std::string value) {
        return lint("MP303", {python(optimizer("fp16 parameters", " {keyword=eps constant=" + value + "}"))});
    };
    EXPECT_THAT(eps("0.0001"), IsEmpty());
    EXPECT_THAT(eps("1e-07"), IsEmpty());
    EXPECT_THAT(eps("1e-09"), ElementsAre("error 5"));
    EXPECT_THAT(lint("MP303", {python(optimizer("fp16 parameters", " {keyword=eps name=eps}"))}), IsEmpty());
    EXPECT_THAT(lint("MP303", {python(optimizer("fp16 parameters", " {keyword=** name=k}"))}), IsEmpty());
}

TEST(HalfOptimizerEps, FusedAndOptimizersWithoutEpsAreSilent) {
    EXPECT_THAT(lint("MP303", {python(optimizer("fp16 parameters", " {keyword=fused constant=true}"))}),
                IsEmpty());
    EXPECT_THAT(lint("MP303", {python(optimizer("fp16 parameters", "", "SGD"))}), IsEmpty());
    EXPECT_THAT(lint("MP303", {python("    call 5:3 apex.optimizers.FusedAdam kind=constructor "
                                      "args=[{fp16 parameters}]\n")}),
                IsEmpty());
}

TEST(HalfOptimizerEps, ShardsKeepTheDtypeOfTheModule) {
    EXPECT_THAT(lint("MP303", {python("    call 3:3 torch.distributed.fsdp.MixedPrecision "
                                      "kind=constructor args=[{fp16 dtype constant=torch.float16 "
                                      "keyword=param_dtype}] result.shape=object\n" +
                                      optimizer("fp16 parameters"))}),
                IsEmpty());
}

TEST(HalfOptimizerEps, GroupsAreLookedInto) {
    const auto groups = [](std::string dtype) {
        return lint("MP303", {python("    call 3:3 torch.nn.Module.parameters kind=method args=[{" + dtype +
                                     " module name=m}] result.dtype=" + dtype +
                                     " result.shape=parameters\n"
                                     "    call 4:3 dict kind=constructor args=[{" +
                                     dtype +
                                     " parameters call=0 keyword=params}] result.shape=object\n"
                                     "    call 4:2 list kind=constructor args=[{object call=1}] "
                                     "result.shape=object\n" +
                                     optimizer("object call=2"))});
    };
    EXPECT_THAT(groups("fp16"), ElementsAre("error 5"));
    EXPECT_THAT(groups("fp32"), IsEmpty());
}

TEST(HalfOptimizerEps, FixRaisesTheEpsThatIsWritten) {
    const auto found = findings(
        "MP303", {python(optimizer("fp16 parameters", " {keyword=eps constant=1e-08 span=5:30-38}"))});
    ASSERT_EQ(found.size(), 1u);
    ASSERT_EQ(found[0].edits.size(), 1u);
    EXPECT_EQ(found[0].edits[0].text, "eps=1e-4");
}

// A module of C++, cast by `cast`, whose parameters an Adam gets with `options`.
std::string cpp(std::string_view cast, std::string_view options) {
    return host("    call 3:5 torch::nn::Module::to kind=method args=[{pointer text=net->} " +
                std::string(cast) +
                "\n"
                "    call 4:5 torch::nn::Module::parameters kind=method args=[{pointer text=net->}]\n"
                "    call 5:5 torch::optim::AdamOptions::AdamOptions kind=constructor "
                "args=[{fp64 constant=0.001}] result.shape=object\n"
                "    call 5:9 torch::optim::AdamOptions::eps kind=method args=[{object call=2} {fp64 "
                "constant=1e-04}]\n"
                "    call 6:5 torch::optim::AdamOptions::AdamOptions kind=constructor "
                "args=[{fp64 constant=0.001}] result.shape=object\n"
                "    call 7:5 torch::optim::Adam::Adam kind=constructor args=[{object call=1} " +
                std::string(options) + "]\n");
}

constexpr const char* kHalfModule = "{fp16 other constant=Half}] result.dtype=fp16";
constexpr const char* kFloatModule = "{fp32 other constant=Float}] result.dtype=fp32";

TEST(HalfOptimizerEps, AnOptimizerOfCppOnAHalfModuleIsAnError) {
    EXPECT_THAT(lint("MP303", {cpp(kHalfModule, "{object call=4}")}), ElementsAre("error 7"));
    EXPECT_THAT(lint("MP303", {cpp(kHalfModule, "{fp64 constant=0.001}")}), ElementsAre("error 7"));
    EXPECT_THAT(lint("MP303", {cpp(kHalfModule, "{object constant=0.001}")}), ElementsAre("error 7"));
}

TEST(HalfOptimizerEps, InCppAnEpsThatFp16HoldsIsSilent) {
    EXPECT_THAT(lint("MP303", {cpp(kHalfModule, "{object call=3}")}), IsEmpty());
    EXPECT_THAT(lint("MP303", {cpp(kHalfModule, "{object call=2}")}), IsEmpty());
}

TEST(HalfOptimizerEps, InCppAnotherDtypeOrOptionsFromElsewhereAreSilent) {
    EXPECT_THAT(lint("MP303", {cpp(kFloatModule, "{object call=4}")}), IsEmpty());
    EXPECT_THAT(lint("MP303", {cpp(kHalfModule, "{object name=options}")}), IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
