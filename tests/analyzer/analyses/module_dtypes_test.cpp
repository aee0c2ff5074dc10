#include <algorithm>

#include "tests/analyzer/rules/python_facts.hpp"

// Through MP501, which asks for the dtype of the parameters of an optimizer.

namespace mp::lint::test {
namespace {

std::string function(int line, const std::string& name, const std::string& params, const std::string& facts) {
    return "  func " + std::to_string(line) + ":5 " + name + " kind=python params=[" + params + "]\n" + facts;
}

std::string method(int line, const std::string& name, const std::string& params, const std::string& facts) {
    return "  func " + std::to_string(line) + ":5 t.Trainer." + name +
           " kind=python parent_class=t.Trainer params=[{object name=self} " + params + "]\n" + facts;
}

std::string optimizer(int line, const std::string& module, int parameters) {
    const std::string at = "    call " + std::to_string(line);
    return at + ":30 ?.parameters kind=method args=[{other " + module + "}] result.shape=other\n" + at +
           ":5 torch.optim.AdamW kind=constructor args=[{other call=" + std::to_string(parameters) + "}]\n";
}

std::string cast(int line, const std::string& module, const std::string& dtype = "bf16") {
    return "    call " + std::to_string(line) + ":5 ?.to kind=method args=[{other " + module + "} {" + dtype +
           " dtype}] result.dtype=" + dtype + " result.shape=other\n";
}

std::vector<std::string> mp501(const std::string& functions) {
    return lint("MP501", {"unit t.py language=python\n" + functions});
}

const std::string kModel = "param=0 name=model";
const std::string kSelfModel = "name=self.model";

std::string call_of_method(int line, const std::string& name) {
    return "    call " + std::to_string(line) + ":5 t.Trainer." + name + " kind=method callee=t.Trainer." +
           name + " args=[{object param=0 name=self}]\n";
}

std::string trainer(const std::string& order) {
    return method(1, "__init__", "{other name=model}",
                  "    setting 1:5 self.model value.shape=other value.param=1\n" + order) +
           method(10, "cast", "", cast(11, kSelfModel)) +
           method(20, "optimize", "", optimizer(21, kSelfModel, 0));
}

// `wrapped = WRAPPER(model)` of a model in bf16.
std::string wrapped_by(const std::string& wrapper, const std::string& more = "") {
    return function(1, "t.f", "{other name=model}",
                    cast(2, kModel) + "    call 3:5 " + wrapper + " args=[{other " + kModel + "}" + more +
                        "] result.shape=other result.name=wrapped\n" +
                        optimizer(4, "call=1 name=wrapped", 2));
}

}  // namespace

TEST(ModuleDTypes, CastInPlaceBeforeIt) {
    EXPECT_THAT(mp501(function(1, "t.f", "{other name=model}", cast(2, kModel) + optimizer(3, kModel, 1))),
                ElementsAre("error 3"));
    EXPECT_THAT(mp501(function(1, "t.f", "{other name=model}",
                               cast(2, kModel) + cast(3, kModel, "fp32") + optimizer(4, kModel, 2))),
                IsEmpty());
    EXPECT_THAT(mp501(function(1, "t.f", "{other name=model}", optimizer(2, kModel, 0) + cast(3, kModel))),
                IsEmpty());
}

TEST(ModuleDTypes, CastOnOneBranchIsNotProven) {
    const std::string branches =
        "    block to=[{1 condition=low} {2 condition=low when=false}]\n    block to=[2]\n    block leaves\n";
    std::string conditional = cast(2, kModel);
    conditional.insert(conditional.size() - 1, " block=1");
    std::string after = optimizer(3, kModel, 1);
    for (std::size_t at = 0; (at = after.find('\n', at)) != std::string::npos; at += 9)
        after.insert(at, " block=2");
    EXPECT_THAT(mp501(function(1, "t.f", "{other name=model}", branches + conditional + after)),
                ElementsAre("warning 3"));
}

TEST(ModuleDTypes, AWrapperKeepsTheDType) {
    for (const std::string wrapper :
         {"torch.compile", "copy.deepcopy", "torch.nn.parallel.DistributedDataParallel",
          "torch.distributed.fsdp.fully_shard", "torch.nn.SyncBatchNorm.convert_sync_batchnorm",
          "apex.parallel.convert_syncbn_model", "fairscale.nn.ShardedDataParallel"})
        EXPECT_THAT(mp501(wrapped_by(wrapper)), ElementsAre("error 4")) << wrapper;
}

TEST(ModuleDTypes, OtherFunctionsOfThatNameKeepNothing) {
    for (const std::string other : {"re.compile", "tensorrt_tool.compile", "shell.script"})
        EXPECT_THAT(mp501(wrapped_by(other)), IsEmpty()) << other;
    EXPECT_THAT(mp501(wrapped_by("intel_extension_for_pytorch.optimize", " {fp32 dtype keyword=dtype}")),
                IsEmpty());
}

TEST(ModuleDTypes, CastInAnotherMethodThatRanBefore) {
    EXPECT_THAT(mp501(trainer(call_of_method(2, "cast") + call_of_method(3, "optimize"))),
                ElementsAre("error 21"));
}

TEST(ModuleDTypes, CastInAMethodThatRunsLaterOrNeverIsSilent) {
    EXPECT_THAT(mp501(trainer(call_of_method(2, "optimize") + call_of_method(3, "cast"))), IsEmpty());
    EXPECT_THAT(mp501(trainer(call_of_method(2, "optimize"))), IsEmpty());
}

TEST(ModuleDTypes, CastByAHelperAndByTheCaller) {
    const std::string helper = function(10, "t.prepare", "{other name=net}", cast(11, "param=0 name=net"));
    EXPECT_THAT(mp501(function(1, "t.f", "{other name=model}",
                               "    call 2:5 t.prepare callee=t.prepare args=[{other param=0 name=model}]\n" +
                                   optimizer(3, kModel, 1)) +
                      helper),
                ElementsAre("error 3"));
    EXPECT_THAT(mp501(function(1, "t.f", "{other name=net}",
                               cast(2, "param=0 name=net") +
                                   "    call 3:5 t.make callee=t.make args=[{other param=0 name=net}]\n") +
                      function(10, "t.make", "{other name=model}", optimizer(11, kModel, 0))),
                ElementsAre("error 11"));
}

TEST(ModuleDTypes, ParameterThatOneOfTwoCallersCastsIsNotProven) {
    const auto caller = [](int line, const std::string& name, const std::string& before, int at) {
        return function(line, name, "{other name=net}",
                        before + "    call " + std::to_string(at) +
                            ":5 t.make callee=t.make args=[{other param=0 name=net}]\n");
    };
    EXPECT_THAT(mp501(caller(1, "t.low", cast(2, "param=0 name=net"), 3) + caller(5, "t.other", "", 6) +
                      function(10, "t.make", "{other name=model}", optimizer(11, kModel, 0))),
                ElementsAre("warning 11"));
}

TEST(ModuleDTypes, UnknownDTypeEndsTheSearch) {
    EXPECT_THAT(
        mp501(function(1, "t.f", "{other name=model} {other name=dtype}",
                       cast(2, kModel) +
                           "    call 3:5 ?.to kind=method args=[{other param=0 name=model} {other param=1 "
                           "name=dtype text=dtype}] result.shape=other\n" +
                           optimizer(4, kModel, 2))),
        IsEmpty());
}

TEST(ModuleDTypes, ASettingIsShownWhereACallerPassesIt) {
    const auto with = [&](const std::string& passed) {
        return "unit t.py language=python\n" +
               function(
                   1, "t.make", "{other name=model} {other name=dtype}",
                   "    call 2:5 ?.to kind=method args=[{other param=0 name=model} {other param=1 name=dtype "
                   "text=dtype}] result.shape=other\n" +
                       optimizer(3, kModel, 1)) +
               function(10, "t.main", "{other name=net} {other name=args}",
                        "    call 11:5 t.make callee=t.make args=[{other param=0 name=net} {other " + passed +
                            "}]\n");
    };
    const Findings found = findings("MP501", {with("alternative=torch.bfloat16")});
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].severity, Severity::warning);
    EXPECT_TRUE(std::ranges::any_of(
        found[0].notes, [](const Note& note) { return note.text == "passed here" && note.span.line == 11; }));
    EXPECT_THAT(findings("MP501", {with("alternative=torch.float32")}), IsEmpty());
}

TEST(ModuleDTypes, ACastNamesTheCallThatPassesItsDType) {
    const std::string unit =
        "unit t.py language=python\n" +
        function(1, "t.make", "{other name=model} {other name=dtype}",
                 "    call 2:5 ?.to kind=method args=[{other param=0 name=model} {other param=1 name=dtype "
                 "keyword=dtype}] result.shape=other\n" +
                     optimizer(3, kModel, 1)) +
        function(10, "t.main", "{other name=net}",
                 "    call 11:5 t.make callee=t.make args=[{other param=0 name=net} {bf16 dtype}]\n");
    const Findings found = findings("MP501", {unit});
    ASSERT_EQ(found.size(), 1u);
    EXPECT_TRUE(std::ranges::any_of(
        found[0].notes, [](const Note& note) { return note.text == "passed here" && note.span.line == 11; }));
}

// A call that names fp32 does not get the half that other callers ask for.
TEST(ModuleDTypes, ACallThatNamesFp32GetsIt) {
    const auto made_by = [](const std::string& argument) {
        return function(
                   1, "t.load", "{other name=dtype}",
                   "    call 2:5 transformers.AutoModel.from_pretrained args=[{constant='x'} {other param=0 "
                   "name=dtype keyword=dtype}] result.shape=module\n"
                   "    return module call=0\n") +
               function(10, "t.f", "",
                        "    call 11:5 t.load callee=t.load args=[" + argument +
                            "] result.shape=other result.name=net\n" + optimizer(12, "call=0 name=net", 1)) +
               function(20, "t.g", "",
                        "    call 21:5 t.load callee=t.load args=[{bf16 dtype constant=torch.bfloat16}]\n");
    };
    EXPECT_THAT(mp501(made_by("{bf16 dtype constant=torch.bfloat16}")), ::testing::SizeIs(1));
    EXPECT_THAT(mp501(made_by("{fp32 dtype constant=torch.float32}")), ::testing::IsEmpty());
}

// p.data.add_(p.grad) in a method that is given each item of a list which the constructor keeps.
TEST(ModuleDTypes, ATensorIsAnItemOfAKeptListThatACallerPasses) {
    const auto step = [](const std::string& more) {
        return method(
                   1, "__init__", "{other name=model}",
                   cast(2, "param=1 name=model") +
                       "    call 3:9 ?.parameters kind=method args=[{other param=1 name=model}]\n"
                       "    call 3:5 list args=[{other call=1}] result.shape=other result.name=self.params\n"
                       "    setting 1:5 self.params value.shape=other value.call=2\n") +
               "  func 10:5 t.Trainer.step kind=python parent_class=t.Trainer params=[{object name=self}] "
               "aliases=[{name=p of=self.params item}]\n"
               "    call 11:5 t.Trainer.one kind=method callee=t.Trainer.one args=[{object param=0 "
               "name=self} "
               "{other name=p}]\n" +
               method(20, "one", "{other name=w}",
                      more +
                          "    call 22:5 ?.add_ kind=method op=add args=[{other name=w.data} {other "
                          "name=w.grad}] in_place\n");
    };
    EXPECT_THAT(mp501(step("")), ::testing::SizeIs(1));
    EXPECT_THAT(mp501(step("    call 21:5 ?.clone kind=method args=[{other name=w.data}]\n")),
                ::testing::IsEmpty());
}

TEST(ModuleDTypes, CheckpointDecides) {
    const auto loaded = [](const std::string& dtype) {
        return function(
            1, "t.f", "{other name=name}",
            "    call 2:5 transformers.AutoModel.from_pretrained args=[{other param=0 name=name}" + dtype +
                "] result.shape=module result.name=model\n" + optimizer(3, "call=0 name=model", 1));
    };
    EXPECT_THAT(mp501(loaded(" {constant='auto' keyword=dtype}")), ElementsAre("warning 3"));
    EXPECT_THAT(mp501(loaded("")), ElementsAre("note 3"));
    EXPECT_THAT(mp501(loaded(" {fp32 dtype keyword=dtype}")), IsEmpty());
}

}  // namespace mp::lint::test
