#include "tests/analyzer/rules/python_facts.hpp"

namespace mp::lint::test {
namespace {

constexpr std::string_view kSgd =
    "unit a.cu language=cuda\n  func 1:1 sgd kind=kernel params=[{bf16 pointer name=w} {bf16 "
    "pointer name=g} "
    "{fp32 name=lr} {int32 name=n}]\n";

std::vector<std::string> mp501(std::string_view facts, Profile profile = Profile::training) {
    return lint("MP501", {std::string(kSgd) + std::string(facts)}, profile);
}

TEST(HalfOptimizerUpdate, SubtractedStepWithoutMasterIsAnError) {
    EXPECT_THAT(mp501("update 9:5 \"w[i]\" param=0 dtype=bf16 computed=fp32 subtracts"),
                ElementsAre("error 9"));
    EXPECT_THAT(mp501("update 9:5 \"w[i]\" param=0 dtype=lowp computed=fp32 subtracts"),
                ElementsAre("warning 9"));
}

TEST(HalfOptimizerUpdate, MasterOrCompensationIsSilent) {
    EXPECT_THAT(mp501("update 9:5 \"w[i]\" param=0 dtype=bf16 subtracts has_master"), IsEmpty());
    EXPECT_THAT(mp501("update 9:5 \"w[i]\" param=0 dtype=bf16 subtracts compensated"), IsEmpty());
    EXPECT_THAT(mp501("update 9:5 \"w[i]\" param=0 dtype=fp32 subtracts"), IsEmpty());
}

TEST(HalfOptimizerUpdate, OptionalMasterIsAWarning) {
    EXPECT_THAT(mp501("update 9:5 \"w[i]\" param=0 dtype=bf16 subtracts has_master master_optional"),
                ElementsAre("warning 9"));
}

TEST(HalfOptimizerUpdate, WithoutARateItIsNoProvenOptimizer) {
    EXPECT_THAT(
        lint("MP501", {"unit a.cu language=cuda\n  func 1:1 sub kind=kernel params=[{fp16 pointer name=a} "
                       "{fp16 pointer name=b}]\n update 9:5 \"a[i]\" param=0 dtype=fp16 subtracts"}),
        ElementsAre("warning 9"));
}

TEST(HalfOptimizerUpdate, AveragesAndAdditionsAreSilent) {
    EXPECT_THAT(mp501("update 9:5 \"w[i]\" param=0 dtype=bf16"), IsEmpty());
    EXPECT_THAT(mp501("update 9:5 \"w[i]\" param=0 dtype=bf16 subtracts interpolates"), IsEmpty());
}

TEST(HalfOptimizerUpdate, NormalisationInPlaceIsSilent) {
    // One array only; with a second one, the statistics decide.
    EXPECT_THAT(
        lint("MP501", {"unit a.cu language=cuda\n  func 1:1 centre kind=kernel params=[{fp16 pointer name=x} "
                       "{fp32 name=shift}]\n update 9:5 \"x[i]\" param=0 dtype=fp16 subtracts"}),
        IsEmpty());
    EXPECT_THAT(mp501("update 9:5 \"w[i]\" param=0 dtype=bf16 subtracts\n"
                      "call 7:3 rsqrtf args=[{fp32 stat=variance}] result.dtype=fp32"),
                IsEmpty());
}

TEST(HalfOptimizerUpdate, HelperIsJudgedByItsBody) {
    const auto with = [](std::string helper, std::string usr = "h") {
        return lint("MP501", {std::string(kSgd) +
                              "update 9:5 \"w[i]\" param=0 dtype=bf16 subtracts has_master "
                              "master_optional through=stochastic_rounding through_usr=" +
                              usr + "\n" + helper});
    };
    const std::string body =
        "  func 20:1 stochastic_rounding usr=h kind=device params=[{fp32 name=in} {bf16 pointer "
        "name=out}]\n    update 22:5 *out param=1 dtype=bf16 computed=fp32";
    EXPECT_THAT(with(body), ElementsAre("warning 9"));
    EXPECT_THAT(with(body + " compensated"), IsEmpty());
    EXPECT_THAT(with(body, "not_seen"), IsEmpty());
}

TEST(HalfOptimizerUpdate, InferenceProfileHasNoOptimizer) {
    EXPECT_THAT(mp501("update 9:5 \"w[i]\" param=0 dtype=bf16 subtracts", Profile::inference), IsEmpty());
}

TEST(HalfOptimizerUpdate, SmallestStepIsDerivedFromTheFormat) {
    const auto found =
        findings("MP501", {std::string(kSgd) + "update 9:5 \"w[i]\" param=0 dtype=bf16 subtracts"});
    ASSERT_EQ(found.size(), 1u);
    EXPECT_THAT(found[0].message, HasSubstr("a step below 0.2 % of the weight rounds away"));
}

std::string optimizer(std::string dtype, std::string more = "") {
    return "    call 3:5 torch.nn.Module.parameters kind=method args=[{" + dtype +
           " module name=model}] result.shape=parameters result.dtype=" + dtype + "\n" +
           "    call 3:5-60 torch.optim.AdamW kind=constructor args=[{" + dtype + " parameters call=0}" +
           more + "]\n";
}

TEST(HalfOptimizerUpdate, PythonOptimizerOverHalfParameters) {
    EXPECT_THAT(lint("MP501", {python(optimizer("bf16"))}), ElementsAre("error 3"));
    EXPECT_THAT(lint("MP501", {python(optimizer("fp16", " {constant=1e-05 keyword=lr}"))}),
                ElementsAre("error 3"));
    EXPECT_THAT(lint("MP501", {python(optimizer("fp16", " {constant=0.1 keyword=lr}"))}),
                ElementsAre("note 3"));
    EXPECT_THAT(lint("MP501", {python(optimizer("fp32"))}), IsEmpty());
    EXPECT_THAT(lint("MP501", {python(optimizer("unknown"))}), IsEmpty());
    EXPECT_THAT(lint("MP501", {python(optimizer("bf16"))}, Profile::inference), IsEmpty());
}

TEST(HalfOptimizerUpdate, AdaptersAndFrozenModelsAreSilent) {
    EXPECT_THAT(lint("MP501", {python(optimizer("bf16") + "    call 9:1 peft.get_peft_model\n")}), IsEmpty());
    EXPECT_THAT(lint("MP501", {python(optimizer("bf16") +
                                      "    call 9:1 torch.nn.Module.requires_grad_ kind=method\n")}),
                IsEmpty());
}

TEST(HalfOptimizerUpdate, OptimizerThatIsWrappedForFp16IsSilent) {
    EXPECT_THAT(
        lint("MP501", {python(optimizer("fp16") +
                              "    call 9:1 apex.optimizers.FP16_Optimizer args=[{object call=1}]\n")}),
        IsEmpty());
}

TEST(HalfOptimizerUpdate, SchedulersAndOtherArgumentsAreNoOptimizers) {
    EXPECT_THAT(lint("MP501", {python("    call 3:5 torch.optim.lr_scheduler.StepLR kind=constructor "
                                      "args=[{bf16 parameters}]\n")}),
                IsEmpty());
}

TEST(HalfOptimizerUpdate, ALaunchWithDeepSpeedKeepsMasters) {
    const std::string trainer =
        "unit t.py language=python\n  func 1:5 t.main kind=python\n"
        "    call 2:5-30 transformers.TrainingArguments kind=constructor args=[{constant=true "
        "keyword=bf16}]\n"
        "    call 3:5-30 transformers.Trainer kind=constructor args=[{bf16 module keyword=model} {call=0 "
        "keyword=args}]\n";
    const auto with = [&](std::string_view given) {
        return lint("MP501", {trainer}, Profile::training, "",
                    {.is_given = [=](std::string_view option) { return option == given; }});
    };
    EXPECT_THAT(with("bf16"), ElementsAre("warning 3"));
    EXPECT_THAT(with("deepspeed_config_file"), ElementsAre("note 3"));
    EXPECT_THAT(with("zero_stage"), ElementsAre("note 3"));
}

}  // namespace
}  // namespace mp::lint::test
