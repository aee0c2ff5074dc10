#include "analyzer/analyses/program_options.hpp"

#include "analyzer/analyses/excluded_code.hpp"
#include "tests/analyzer/rules/rule_test.hpp"

namespace mp::lint::test {
namespace {

// A program that casts on line 22 `if args.fp16:`, and whose other function has these facts.
class ProgramOptions : public ::testing::Test {
protected:
    bool is_kept_off(const std::string& others, std::string_view given = "") {
        return excluded(others, [given](std::string_view option) { return option == given; });
    }
    bool is_kept_off_in_parts(const std::string& others) { return excluded(others, {}); }

    std::string condition = "args.fp16";

private:
    bool excluded(const std::string& others, std::function<bool(std::string_view)> is_given) {
        const std::string text =
            "unit /p/train.py language=python\n"
            "  func 18:9 train.step kind=python params=[{name=model} {name=args}]\n"
            "    block to=[{1 condition=\"" +
            condition + "\"} {2 condition=\"" + condition +
            "\" when=false}]\n    block to=[2]\n    block 26:9 leaves\n"
            "    call 22:26-55 ?.half kind=method args=[{name=model}] block=1\n" +
            others;
        std::vector<Unit> units;
        units.push_back(parse_facts(text).value());
        const Program program = Program::link(std::move(units));
        const Policies policies;
        const RuleContext context{.program = program,
                                  .policies = policies,
                                  .project = {.is_whole = true, .is_given = std::move(is_given)}};
        const Function& step = *program.definition(Symbol("train.step"));
        return option_that_excludes(context, step, step.calls.front().span).has_value();
    }
};

std::string parser(const std::string& arguments) {
    return "  func 30:5 train.parse kind=python annotations=[used]\n"
           "    call 31:5-50 ?.add_argument kind=method args=[{name=p} " +
           arguments + "]\n";
}
const std::string kFlag = "{constant=\"'--fp16'\"} {constant=\"'store_true'\" keyword=action}";

TEST_F(ProgramOptions, AnOptionOfACommandThatNothingGives) {
    EXPECT_TRUE(is_kept_off(parser(kFlag)));
    EXPECT_TRUE(is_kept_off(parser("{constant=\"'--fp16'\"} {constant=false keyword=default}")));
    EXPECT_FALSE(is_kept_off(parser(kFlag), "fp16")) << "a script gives it";
    EXPECT_FALSE(is_kept_off_in_parts(parser(kFlag))) << "scripts are not known";
    EXPECT_FALSE(is_kept_off(parser("{constant=\"'--fp16'\"} {constant=true keyword=default}")));
    EXPECT_FALSE(is_kept_off(parser("{constant=\"'--fp16'\"} {constant=\"'store_false'\" keyword=action}")));
    EXPECT_FALSE(is_kept_off("")) << "nothing says what it is";
    EXPECT_FALSE(is_kept_off(parser("{constant=\"'--fp16'\"} {text=None keyword=default}"))) << "a value";
    EXPECT_FALSE(is_kept_off(parser("{constant=\"'--fp16'\"} {constant=0 keyword=default}"))) << "a number";
}

TEST_F(ProgramOptions, ALibraryHasOptionsOfItsOwn) {
    const auto call = [](const std::string& callee) {
        return "  func 40:5 train.load kind=python annotations=[used]\n    call 41:5-50 " + callee +
               " kind=constructor args=[{constant=true keyword=fp16}]\n";
    };
    EXPECT_TRUE(is_kept_off(parser(kFlag) + call("transformers.BitsAndBytesConfig")));
    EXPECT_FALSE(is_kept_off(parser(kFlag) + call("train.Config")));
}

TEST_F(ProgramOptions, EveryDefaultHasToBeOff) {
    const std::string on =
        "  func 40:5 other.parse kind=python annotations=[used]\n    call 41:5-50 ?.add_argument "
        "kind=method args=[{name=p} {constant=\"'--fp16'\"} {constant=true keyword=default}]\n";
    EXPECT_FALSE(is_kept_off(parser(kFlag) + on));
}

TEST_F(ProgramOptions, FieldsAndParametersHaveDefaults) {
    EXPECT_TRUE(
        is_kept_off("  func 7:7 train.Cfg.<class> kind=python parent_class=train.Cfg\n"
                    "    define 8:5 train.Cfg.fp16 value.constant=false value.assumed=true\n"));
    EXPECT_FALSE(
        is_kept_off("  func 7:7 train.Cfg.<class> kind=python parent_class=train.Cfg\n"
                    "    define 8:5 train.Cfg.fp16 value.constant=true value.assumed=true\n"));
    EXPECT_TRUE(is_kept_off("  func 7:7 train.run kind=python params=[{name=fp16 constant=false}]\n"));
    EXPECT_FALSE(is_kept_off("  func 7:7 train.run kind=python params=[{name=fp16 constant=true}]\n"));
}

TEST_F(ProgramOptions, WhatIsHandedOnIsFollowed) {
    condition = "self.use_amp";
    const std::string init =
        "  func 50:5 train.T.__init__ kind=python parent_class=train.T params=[{object name=self} "
        "{name=amp}]\n    setting 50:5 self.use_amp value.param=1\n";
    const auto made = [](const std::string& value) {
        return "  func 60:5 train.go kind=python annotations=[used]\n    call 61:5-20 train.T "
               "kind=constructor "
               "callee=train.T.__init__ args=[{" +
               value + "}]\n";
    };
    EXPECT_TRUE(is_kept_off(init + made("name=args.fp16") + parser(kFlag)));
    EXPECT_TRUE(is_kept_off(init + made("constant=false") + parser(kFlag)));
    EXPECT_TRUE(is_kept_off(init + made("text=\"args.fp16 and cuda\"") + parser(kFlag)));
    EXPECT_FALSE(is_kept_off(init + made("constant=true") + parser(kFlag)));
    EXPECT_FALSE(is_kept_off(init + made("name=choice") + parser(kFlag)));
    EXPECT_FALSE(is_kept_off(init + made("name=args.fp16") + parser(kFlag), "use_amp"));
    EXPECT_FALSE(is_kept_off(init + made("name=args.fp16") + parser(kFlag), "fp16"));
}

TEST_F(ProgramOptions, AResultIsFollowedThroughBoolAlone) {
    condition = "self.use_amp";
    const auto init = [](const std::string& made) {
        return "  func 50:5 train.T.__init__ kind=python parent_class=train.T params=[{object name=self} "
               "{name=amp constant=false}]\n    call 51:5-30 " +
               made + " result.name=self.use_amp\n";
    };
    EXPECT_TRUE(is_kept_off(init("bool args=[{param=1 name=amp}]")));
    EXPECT_TRUE(is_kept_off(init("bool args=[{text=\"amp and self.cuda\"}]")));
    EXPECT_FALSE(is_kept_off(init("bool args=[{constant=true}]")));
    EXPECT_FALSE(is_kept_off(init("bool args=[{param=1 name=amp}]") +
                             "    call 52:5-30 choose result.name=self.use_amp\n"));
}

TEST_F(ProgramOptions, AValueThatNothingGives) {
    condition = "args.precision == 'fp16'";
    const auto option = [](const std::string& value) {
        return parser("{constant=\"'--precision'\"} {" + value + " keyword=default}");
    };
    EXPECT_TRUE(is_kept_off(option("constant=\"'bf16'\"")));
    EXPECT_FALSE(is_kept_off(option("constant=\"'fp16'\"")));
    EXPECT_FALSE(is_kept_off(option("text=None"))) << "a user gives it";
    EXPECT_FALSE(is_kept_off(option("constant=\"'bf16'\""), "precision=fp16")) << "a script gives it";
    EXPECT_TRUE(is_kept_off(option("constant=\"'bf16'\""), "precision"));
    const std::string config =
        "  func 7:7 train.Cfg.<class> kind=python parent_class=train.Cfg\n"
        "    define 8:5 train.Cfg.precision value.constant='bf16' value.assumed=true\n";
    EXPECT_TRUE(is_kept_off(config));
    EXPECT_FALSE(is_kept_off(config + "  func 60:5 train.go kind=python annotations=[used]\n"
                                      "    call 61:5-20 train.Cfg kind=constructor args=[{constant='fp16' "
                                      "keyword=precision}]\n"));
    condition = "args.loss == 'mse'";
    EXPECT_FALSE(is_kept_off(parser("{constant=\"'--loss'\"} {constant=\"'l1'\" keyword=default}")))
        << "no precision";
}

TEST_F(ProgramOptions, AnEntryOfAConfigurationThatNothingGives) {
    const auto get = [](std::string_view object, std::string_view otherwise = "") {
        return "    call 21:12-30 ?.get kind=method args=[{name=" + std::string(object) +
               "} {constant=\"'low'\" text='low'} " + std::string(otherwise) + "]\n";
    };
    condition = "cfg.get('low')";
    EXPECT_TRUE(is_kept_off(get("cfg")));
    EXPECT_FALSE(is_kept_off(get("cfg"), "low")) << "a text gives it";
    EXPECT_FALSE(is_kept_off_in_parts(get("cfg")));
    const std::string other = "  func 40:5 train.other kind=python annotations=[used]\n";
    EXPECT_FALSE(is_kept_off(get("cfg") + other + "    call 41:5 dict args=[{constant=5 keyword=low}]\n"));
    EXPECT_TRUE(is_kept_off(get("cfg") + other + "    call 41:5 dict args=[{constant=None keyword=low}]\n"));
    EXPECT_FALSE(
        is_kept_off(get("cfg") + other +
                    "    call 41:5 ?.__setitem__ kind=op args=[{name=c} {constant=\"'low'\"} {name=x}]\n"));
    condition = "cfg.get('low', None)";
    EXPECT_TRUE(is_kept_off(get("cfg", "{constant=None}")));
    condition = "cfg.get('low', 1)";
    EXPECT_FALSE(is_kept_off(get("cfg", "{constant=1}"))) << "on by default";
    condition = "batch.get('low')";
    EXPECT_FALSE(is_kept_off(get("batch"))) << "data";
}

TEST_F(ProgramOptions, TheTrainerOfTransformersIsOffByDefault) {
    const std::string reads =
        "  func 30:5 train.parse kind=python annotations=[used]\n"
        "    call 31:5-50 transformers.HfArgumentParser args=[{name=x}]\n";
    EXPECT_TRUE(is_kept_off(reads));
    EXPECT_FALSE(is_kept_off(reads, "fp16"));
}

}  // namespace
}  // namespace mp::lint::test
