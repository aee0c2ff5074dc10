#include "analyzer/analyses/engines.hpp"

#include "tests/analyzer/rules/rule_test.hpp"

namespace mp::lint::test {
namespace {

std::vector<Engine> engines(const std::string& calls, Program& keep) {
    auto unit = parse_facts("unit t.py language=python\n  func 1:1 t.<module> kind=python\n" + calls);
    if (!unit) {
        ADD_FAILURE() << unit.error().message;
        return {};
    }
    std::vector<Unit> units;
    units.push_back(std::move(*unit));
    keep = Program::link(std::move(units));
    return engines_of(keep);
}

class Engines : public ::testing::Test {
protected:
    std::vector<Engine> of(const std::string& calls) { return engines(calls, program_); }

private:
    Program program_ = Program::link({});
};

TEST_F(Engines, LightningMixedPrecisionAutocastsAndScales) {
    const auto found =
        of("call 3:5 lightning.Trainer kind=constructor args=[{constant=\"'16-mixed'\" "
           "keyword=precision}]\n");
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].kind, EngineKind::lightning);
    EXPECT_EQ(found[0].dtype, DType::fp16);
    EXPECT_TRUE(found[0].autocasts);
    EXPECT_FALSE(found[0].weights);
    EXPECT_TRUE(found[0].scales);
}

TEST_F(Engines, LightningTruePrecisionCastsTheWeightsAndDoesNotScale) {
    const auto found =
        of("call 3:5 pytorch_lightning.Trainer kind=constructor args=[{constant=\"'16-true'\" "
           "keyword=precision}]\n");
    ASSERT_EQ(found.size(), 1u);
    EXPECT_TRUE(found[0].weights);
    EXPECT_FALSE(found[0].autocasts);
    EXPECT_FALSE(found[0].scales);
}

TEST_F(Engines, AnotherTrainerIsNoEngine) {
    EXPECT_THAT(of("call 3:5 mylib.Trainer kind=constructor args=[{constant=\"'16-mixed'\" "
                   "keyword=precision}]\n"),
                IsEmpty());
}

TEST_F(Engines, AcceleratorWithoutAnArgumentIsOpen) {
    const auto found = of("call 3:5 accelerate.Accelerator kind=constructor\n");
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].dtype, DType::unknown);
    EXPECT_TRUE(found[0].scales);
}

TEST_F(Engines, DeepSpeedIsReadFromItsConfiguration) {
    const auto found =
        of("setting 3:5 bf16.enabled value.constant=true\n"
           "setting 4:5 fp16.enabled value.constant=false\n"
           "call 9:5 deepspeed.initialize\n");
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].dtype, DType::bf16);
    EXPECT_FALSE(found[0].scales);
}

TEST_F(Engines, FsdpPolicyKnowsWhetherItIsUsed) {
    const std::string policy =
        "call 3:5 torch.distributed.fsdp.MixedPrecision kind=constructor "
        "args=[{fp16 dtype constant=torch.float16 keyword=param_dtype}]\n";
    const auto defined = of(policy);
    ASSERT_EQ(defined.size(), 1u);
    EXPECT_EQ(defined[0].dtype, DType::fp16);
    EXPECT_EQ(defined[0].reduce, DType::fp16);
    EXPECT_EQ(defined[0].used, Switch::off);
    const auto used = of(policy +
                         "call 5:5 torch.distributed.fsdp.FullyShardedDataParallel "
                         "kind=constructor args=[{other name=m} {object call=0 "
                         "keyword=mixed_precision}]\n");
    ASSERT_EQ(used.size(), 1u);
    EXPECT_EQ(used[0].used, Switch::on);
}

TEST_F(Engines, TheCommandLineGivesTheSettingsOfATrainer) {
    const auto unit = parse_facts(
        "unit t.py language=python\n  func 1:1 t.f kind=python\n"
        "    call 2:5 transformers.HfArgumentParser.parse_args_into_dataclasses kind=method\n"
        "    call 2:9 ?.__getitem__ kind=op args=[{other call=0} {int64 constant=1}] "
        "result.name=training_args\n"
        "    call 3:5 transformers.Trainer kind=constructor args=[{module name=m keyword=model} {other "
        "call=1 "
        "name=training_args keyword=args}]\n"
        "    call 4:5 transformers.Trainer kind=constructor args=[{module name=m keyword=model} {other "
        "name=others keyword=args}]\n");
    ASSERT_TRUE(unit.has_value());
    const Function& f = unit->functions.front();
    const auto made = plain_trainer(f, f.calls[2]);
    ASSERT_TRUE(made.has_value());
    EXPECT_TRUE(made->is_parsed);
    EXPECT_EQ(made->settings, &f.calls[0]);
    EXPECT_FALSE(plain_trainer(f, f.calls[3]).has_value());
}

TEST_F(Engines, TrainingArgumentsWithoutHalfAreFp32) {
    const auto found =
        of("call 3:5 transformers.TrainingArguments kind=constructor args=[{constant=\"'out'\"}]\n");
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].dtype, DType::fp32);
    EXPECT_FALSE(found[0].scales);
}

}  // namespace
}  // namespace mp::lint::test
