#include "tests/analyzer/rules/rule_test.hpp"

namespace mp::lint::test {
namespace {

std::vector<std::string> constant(std::string value, std::string to = "fp16", std::string role = "none") {
    return lint("MP301", {kernel("cast 4:3 fp32->" + to + " source.constant=" + value + " role=" + role)});
}

TEST(HalfConstantOverflow, TheBoundIsExactRounding) {
    EXPECT_THAT(constant("65519.99"), IsEmpty());
    EXPECT_THAT(constant("65520"), ElementsAre("warning 4"));
    EXPECT_THAT(constant("-65520"), ElementsAre("warning 4"));
    EXPECT_THAT(constant("-1e+09"), ElementsAre("warning 4"));
    EXPECT_THAT(constant("70000"), ElementsAre("warning 4"));
    EXPECT_THAT(constant("-10000"), IsEmpty());
}

TEST(HalfConstantOverflow, FloatMaxLeavesBf16) {
    EXPECT_THAT(constant("3.4028234663852886e+38", "bf16"), ElementsAre("warning 4"));
    EXPECT_THAT(constant("-1e+30", "bf16"), IsEmpty());
    EXPECT_THAT(constant("1e+09", "bf16"), IsEmpty());
}

TEST(HalfConstantOverflow, Fp8HasNoInfinity) {
    EXPECT_THAT(constant("448", "e4m3"), IsEmpty());
    EXPECT_THAT(constant("500", "e4m3"), ElementsAre("warning 4"));
    EXPECT_THAT(constant("70000", "e5m2"), ElementsAre("warning 4"));
}

TEST(HalfConstantOverflow, RolesThatInfServesAsWellAreNotes) {
    EXPECT_THAT(constant("-1e+20", "fp16", "max_identity"), ElementsAre("note 4"));
    EXPECT_THAT(constant("1e+20", "fp16", "compared"), ElementsAre("note 4"));
    EXPECT_THAT(constant("1e+20", "fp16", "clamp"), ElementsAre("warning 4"));
    EXPECT_THAT(constant("-1e+20", "fp16", "mask_fill"), ElementsAre("warning 4"));
}

TEST(HalfConstantOverflow, InfinityItselfAndNonNumbersAreSilent) {
    for (const std::string value : {"inf", "-inf", "nan", "nullptr", "CUDA_R_16F", "true"})
        EXPECT_THAT(constant(value), IsEmpty()) << value;
}

TEST(HalfConstantOverflow, NotKnownWhichHalfIsAWarning) {
    EXPECT_THAT(constant("1e+09", "lowp"), ElementsAre("warning 4"));
}

TEST(HalfConstantOverflow, IntegerConstantsCount) {
    EXPECT_THAT(lint("MP301", {kernel("cast 4:3 int32->fp16 source.constant=70000")}),
                ElementsAre("warning 4"));
}

TEST(HalfConstantOverflow, WideDestinationsAreSilent) { EXPECT_THAT(constant("1e+09", "fp32"), IsEmpty()); }

TEST(HalfConstantOverflow, TensorOpsTakeTheDtypeOfTheirTensor) {
    const auto fill = [](std::string dtype, std::string value) {
        return lint("MP301", {host("call 5:3 at::Tensor::masked_fill kind=method op=masked_fill args=[{" +
                                   dtype + " tensor name=s} {bool tensor name=m} {fp64 constant=" + value +
                                   "}] result.shape=tensor")});
    };
    EXPECT_THAT(fill("fp16", "-1e+09"), ElementsAre("error 5"));
    EXPECT_THAT(fill("fp16", "-10000"), IsEmpty());
    EXPECT_THAT(fill("lowp", "-1e+09"), ElementsAre("warning 5"));
    EXPECT_THAT(fill("fp32", "-1e+09"), IsEmpty());
    EXPECT_THAT(fill("unknown", "-1e+09"), IsEmpty());
}

TEST(HalfConstantOverflow, MessageSaysWhatItBecomes) {
    const auto found = findings("MP301", {kernel("cast 4:3 fp32->fp16 source.constant=-1e+09")});
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].message, "-1e+09 does not fit fp16 (largest value 65504): it becomes -inf");
}

// ---- models of any class, cast as a whole

// A trainer of package `kit` that casts the model it is given, and what else it does with it.
std::string trainer(std::string more =
                        "    call 9:9 ?.parameters kind=method args=[{other param=1 "
                        "name=model}]\n",
                    std::string cast = "?.half", std::string path = "kit/trainer.py") {
    return "unit " + path +
           " language=python\n"
           "  func 5:9 kit.trainer.Trainer.__init__ kind=python parent_class=kit.trainer.Trainer "
           "params=[{object name=self} {other name=model}]\n"
           "    call 7:9 " +
           cast +
           " kind=method args=[{other param=1 name=self.model}] "
           "result.dtype=fp16 result.shape=other result.name=self.model\n" +
           more;
}

// A module of the same package; its forward has the arguments x and mask.
std::string attention(std::string_view facts, std::string path = "kit/models/attention.py") {
    return "unit " + path +
           " language=python\n"
           "  func 10:9 kit.models.attention.Layer.forward kind=python "
           "parent_class=kit.models.attention.Layer bases=[torch.nn.Module] "
           "params=[{module name=self} {other name=x} {other name=mask}]\n" +
           std::string(facts);
}

std::string fill_of(std::string value, std::string tensor = "{tensor param=1 name=x}",
                    std::string more = "") {
    return "    call 12:9 torch.Tensor.masked_fill kind=method op=masked_fill args=[" + tensor +
           " {other param=2 name=mask} {constant=" + value + "}] result.shape=tensor" + more + "\n";
}

std::vector<std::string> with_trainer(const std::string& module) {
    return lint("MP301", {trainer(), module});
}

TEST(HalfConstantOverflow, AModelCastAsAWholeReachesModulesOfItsPackage) {
    EXPECT_THAT(with_trainer(attention(fill_of("-1e+08"))), ElementsAre("note 12"));
    EXPECT_THAT(lint("MP301", {attention(fill_of("-1e+08"))}), IsEmpty()) << "nobody casts";
    EXPECT_THAT(lint("MP301", {trainer(), attention(fill_of("-1e+08"))}, Profile::inference),
                ElementsAre("note 12"));
}

TEST(HalfConstantOverflow, ItemsAreFilledByAssignmentToo) {
    const auto assigned = [](std::string value, std::string tensor) {
        return with_trainer(attention("    call 12:9 ?.__setitem__ kind=method args=[" + tensor +
                                      " {other param=2 name=mask} {constant=" + value + "}]\n"));
    };
    EXPECT_THAT(assigned("-1e+08", "{tensor param=1 name=x}"), ElementsAre("note 12"));
    EXPECT_THAT(assigned("-1e+04", "{tensor param=1 name=x}"), IsEmpty());
    EXPECT_THAT(assigned("-1e+08", "{fp32 tensor param=1 name=x}"), IsEmpty());
    EXPECT_THAT(assigned("-1e+08", "{other param=1 name=x}"), IsEmpty()) << "perhaps a dict";
    EXPECT_THAT(with_trainer(attention(
                    "    call 11:9 ?.__call__ kind=method args=[{other name=self.q} {other param=1}]\n"
                    "    call 12:9 ?.__setitem__ kind=method args=[{other call=0 name=s} {other param=2 "
                    "name=mask} {constant=-1e+08}]\n")),
                ElementsAre("note 12"));
}

TEST(HalfConstantOverflow, NumbersThatFp16HoldsAndThoseOfIntegersAreSilentThere) {
    for (const std::string value :
         {"-10000", "-65504", "-1e+04", "-inf", "-100000000", "-3.5e+38", "-100000000 name=value text=value"})
        EXPECT_THAT(with_trainer(attention(fill_of(value))), IsEmpty()) << value;
    EXPECT_THAT(with_trainer(attention(fill_of("-70000 text=-70000.0"))), ElementsAre("note 12"));
}

TEST(HalfConstantOverflow, AKnownDtypeIsNotTheModels) {
    for (const std::string dtype : {"fp32", "bool", "int64", "bf16"})
        EXPECT_THAT(with_trainer(attention(fill_of("-1e+08", "{" + dtype + " tensor param=1 name=x}"))),
                    IsEmpty())
            << dtype;
    EXPECT_THAT(with_trainer(attention("    call 11:9 ?.float kind=method args=[{other param=1 name=x}] "
                                       "result.dtype=fp32 result.shape=tensor\n" +
                                       fill_of("-1e+08", "{tensor call=0 name=x}"))),
                IsEmpty());
}

TEST(HalfConstantOverflow, WhatIsFilledComesFromArgumentsOrLayers) {
    const auto after = [](std::string_view call) {
        return with_trainer(attention("    call 11:9 " + std::string(call) + "\n" +
                                      fill_of("-1e+08", "{tensor call=0 name=s}")));
    };
    EXPECT_THAT(after("torch.nn.Linear.forward kind=method op=linear args=[{module name=self.q} "
                      "{other param=1}] result.shape=tensor"),
                ElementsAre("note 12"));
    EXPECT_THAT(after("?.__call__ kind=method args=[{other name=self.q} {other param=1}]"),
                ElementsAre("note 12"));
    EXPECT_THAT(after("torch.matmul op=matmul args=[{other param=1} {other param=2}]"),
                ElementsAre("note 12"));
    EXPECT_THAT(after("torch.matmul op=matmul args=[{other param=1} {fp32 tensor name=w}]"), IsEmpty());
    EXPECT_THAT(after("torch.softmax op=softmax args=[{other param=1} {other name=d keyword=dtype}]"),
                IsEmpty());
    EXPECT_THAT(after("torch.zeros op=zeros args=[{other param=1}]"), IsEmpty());
    EXPECT_THAT(after("?.load kind=method args=[{other name=table} {other param=1}]"), IsEmpty());
}

TEST(HalfConstantOverflow, ABranchThatAsksForTheDtypeIsSilentThere) {
    const std::string blocks =
        "    block to=[{1 condition=self.fp16 when=false} {2 condition=self.fp16}]\n"
        "    block to=[2]\n    block leaves\n";
    EXPECT_THAT(with_trainer(attention(blocks + fill_of("-1e+08", "{tensor param=1 name=x}", " block=1"))),
                IsEmpty());
}

TEST(HalfConstantOverflow, OnlyWhatForwardRunsCounts) {
    const auto in_helper = [](std::string called_by) {
        std::string helper = attention(fill_of("-1e+08"));
        const std::string name = "kit.models.attention.Layer.forward";
        helper.replace(helper.find(name), name.size(), "kit.models.attention.Layer.mask");
        return with_trainer(helper + "  func 20:9 kit.models.attention.Layer." + called_by +
                            " kind=python parent_class=kit.models.attention.Layer "
                            "bases=[torch.nn.Module] params=[{module name=self} {other name=x}]\n"
                            "    call 21:9 kit.models.attention.Layer.mask kind=method "
                            "callee=kit.models.attention.Layer.mask args=[{module param=0 name=self} "
                            "{other param=1 name=x} {other name=m}]\n");
    };
    EXPECT_THAT(in_helper("forward"), ElementsAre("note 12"));
    EXPECT_THAT(in_helper("describe"), IsEmpty());
    std::string no_module = attention(fill_of("-1e+08"));
    no_module.replace(no_module.find("torch.nn.Module"), 15, "object");
    EXPECT_THAT(with_trainer(no_module), IsEmpty());
}

TEST(HalfConstantOverflow, ACastOfWhatIsNoModuleProvesNothing) {
    const auto with = [](const std::string& cast) {
        return lint("MP301", {cast, attention(fill_of("-1e+08"))});
    };
    EXPECT_THAT(with(trainer("")), IsEmpty()) << "a name is no proof";
    EXPECT_THAT(with(trainer("    call 9:9 ?.sum kind=method args=[{other param=1 name=model}]\n")),
                IsEmpty());
    EXPECT_THAT(with(trainer("    call 9:9 isinstance args=[{other param=1 name=model} {other "
                             "constant=torch.nn.Module}]\n")),
                ElementsAre("note 12"));
    EXPECT_THAT(with(trainer("    call 9:9 ?.cuda kind=method args=[{other name=self.model}]\n"
                             "    call 9:9 ?.eval kind=method args=[{other call=1}]\n")),
                ElementsAre("note 12"));
}

TEST(HalfConstantOverflow, TheProofMayStandInAnotherMethodACallerOrACallee) {
    const auto with = [](const std::string& more) {
        return lint("MP301", {trainer(more), attention(fill_of("-1e+08"))});
    };
    EXPECT_THAT(with("  func 20:9 kit.trainer.Trainer.step kind=python "
                     "parent_class=kit.trainer.Trainer params=[{object name=self}]\n"
                     "    call 21:9 ?.train kind=method args=[{other name=self.model}]\n"),
                ElementsAre("note 12"));
    EXPECT_THAT(with("  func 20:9 kit.trainer.main kind=python\n"
                     "    call 21:9 ?.build kind=method args=[{other name=task}]\n"
                     "    call 22:9 ?.state_dict kind=method args=[{other call=0 name=net}]\n"
                     "    call 23:9 kit.trainer.Trainer kind=constructor "
                     "callee=kit.trainer.Trainer.__init__ args=[{other call=0 name=net}]\n"),
                ElementsAre("note 12"));
    EXPECT_THAT(with("    call 9:9 kit.trainer.count args=[{other name=self.model}] "
                     "callee=kit.trainer.count\n"
                     "  func 20:9 kit.trainer.count kind=python params=[{other name=m}]\n"
                     "    call 21:9 ?.parameters kind=method args=[{other param=0 name=m}]\n"),
                ElementsAre("note 12"));
}

TEST(HalfConstantOverflow, AModelOfAKnownClassSaysNothingOfOthers) {
    const auto with = [](const std::string& cast) {
        return lint("MP301", {"unit kit/run.py language=python\n"
                              "  func 1:1 kit.run.main kind=python params=[{module name=given}]\n" +
                                  cast,
                              attention(fill_of("-1e+08"))});
    };
    const std::string cast =
        "    call 4:3 ?.half kind=method args=[{other call=0 name=m}] "
        "result.dtype=fp16\n"
        "    call 5:3 ?.eval kind=method args=[{other name=m}]\n";
    EXPECT_THAT(with("    call 3:3 ?.build kind=method args=[{other name=t}]\n" + cast),
                ElementsAre("note 12"));
    EXPECT_THAT(with("    call 3:3 timm.create_model\n" + cast), IsEmpty());
    EXPECT_THAT(with("    call 3:3 kit.other.Net kind=constructor callee=kit.other.Net.__init__\n" + cast),
                IsEmpty());
    const std::string annotated =
        "    call 4:3 torch.nn.Module.half kind=method args=[{module param=0 "
        "name=given}] result.dtype=fp16 result.shape=module\n    call 5:3 ";
    const std::string run = " kind=method args=[{module param=0 name=given} {other name=x}]\n";
    EXPECT_THAT(with(annotated + "torch.nn.Module.forward" + run), ElementsAre("note 12"));
    EXPECT_THAT(with(annotated + "kit.other.Net.forward" + run), IsEmpty());
}

TEST(HalfConstantOverflow, OtherPackagesOtherDtypesAndTestsSayNothing) {
    const std::string module = attention(fill_of("-1e+08"));
    const std::string proof = "    call 9:9 ?.train kind=method args=[{other name=self.model}]\n";
    EXPECT_THAT(lint("MP301", {trainer(proof, "?.half", "other/kit/trainer.py"), module}), IsEmpty());
    EXPECT_THAT(lint("MP301", {trainer(proof, "?.half", "kit/tests/trainer.py"), module}), IsEmpty());
    std::string bf16 = trainer(proof, "?.to");
    bf16.replace(bf16.find("fp16"), 4, "bf16");
    EXPECT_THAT(lint("MP301", {bf16, module}), IsEmpty());
}

TEST(HalfConstantOverflow, TheReportNamesTheCast) {
    const auto found = findings("MP301", {trainer(), attention(fill_of("-1e+08"))});
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].message,
              "-1e+08 does not fit fp16 (largest value 65504): this module runs in "
              "fp16 when its package casts the model to it");
    ASSERT_EQ(found[0].notes.size(), 1u);
    EXPECT_EQ(to_string(found[0].notes[0].span), "kit/trainer.py:7:9");
    EXPECT_EQ(found[0].notes[0].text, "module 'self.model', of whatever class, is cast to fp16 here");
    EXPECT_TRUE(found[0].edits.empty()) << "finfo refuses integers";
}

}  // namespace
}  // namespace mp::lint::test
