#include "analyzer/analyses/unused_code.hpp"

#include "tests/analyzer/rules/rule_test.hpp"

namespace mp::lint::test {
namespace {

const Project kProgram{.is_whole = true};

Project that_imports(std::string_view word) {
    return {.is_whole = true, .is_imported_unread = [word](std::string_view name) { return name == word; }};
}

// The functions that a run over these units knows to be never called.
std::vector<std::string> never_called(const std::vector<std::string>& texts,
                                      const Project& project = kProgram) {
    std::vector<Unit> units;
    for (const std::string& text : texts) units.push_back(parse_facts(text).value());
    const Program program = Program::link(std::move(units));
    const Policies policies;
    const RuleContext context{.program = program, .policies = policies, .project = project};
    std::vector<std::string> names;
    for (const Function* f : program.functions())
        if (is_never_called(context, *f)) names.emplace_back(f->name.str());
    return names;
}

std::string python(std::string_view module, std::string_view facts, std::string_view unit = "") {
    return "unit /p/" + std::string(module) + ".py language=python " + std::string(unit) + "\n" +
           std::string(facts);
}

const std::string kSetUp = python("dist", "  func 1:5 pkg.dist.setup kind=python\n");

TEST(UnusedCode, AFunctionOfAWholeProgramThatNothingNames) {
    EXPECT_THAT(never_called({kSetUp}), ElementsAre("pkg.dist.setup"));
    EXPECT_THAT(never_called({kSetUp}, {}), IsEmpty()) << "a run over some of the files";
    EXPECT_THAT(never_called({kSetUp}, {.is_whole = true, .is_package = true}), IsEmpty());
}

TEST(UnusedCode, WhatIsCalledOrHandedOnIsUsed) {
    const auto other = [](std::string_view facts, std::string_view unit = "") {
        return python("run",
                      "  func 1:5 pkg.start.go kind=python annotations=[app.command]\n" + std::string(facts),
                      unit);
    };
    EXPECT_THAT(never_called({kSetUp, other("    call 2:1 pkg.dist.setup callee=pkg.dist.setup\n")}),
                IsEmpty());
    EXPECT_THAT(never_called({kSetUp, other("    call 2:1 x.setup kind=method args=[{name=x}]\n")}),
                IsEmpty());
    EXPECT_THAT(never_called({kSetUp, other("", "taken=[pkg.dist.setup]")}), IsEmpty());
    EXPECT_THAT(never_called({kSetUp, other("    call 2:1 getattr args=[{name=dist} {name=kind}]\n")}),
                IsEmpty());
    EXPECT_THAT(never_called({kSetUp, other("    call 2:1 importlib.import_module args=[{name=x}]\n")}),
                IsEmpty());
    EXPECT_THAT(never_called({kSetUp + "  func 7:5 pkg.dist.main kind=python\n"
                                       "    call 8:1 eval args=[{name=x}]\n"}),
                IsEmpty());
    EXPECT_THAT(never_called({kSetUp, other("    call 2:1 eval args=[{name=x}]\n")}),
                ElementsAre("pkg.dist.setup"))
        << "of another file, which does not import it";
    EXPECT_THAT(never_called({kSetUp + "  func 7:5 pkg.dist.main kind=python\n"
                                       "    call 8:1 ?.eval kind=method args=[{name=model}]\n"}),
                ElementsAre("pkg.dist.setup"));
    EXPECT_THAT(never_called({kSetUp, other("    call 2:1 print args=[{name=x}]\n")}),
                ElementsAre("pkg.dist.setup"));
}

TEST(UnusedCode, ACallOfAnotherFunctionOfTheNameIsNone) {
    const auto notebook = [](std::string_view callee) {
        return python("nb",
                      "  func 1:5 nb.setup kind=python\n  func 5:1 nb.<module> kind=python\n    call 6:1 "
                      "setup callee=" +
                          std::string(callee) + "\n");
    };
    EXPECT_THAT(never_called({kSetUp, notebook("nb.setup")}), ElementsAre("pkg.dist.setup"));
    EXPECT_THAT(never_called({kSetUp, notebook("other.setup")}), IsEmpty()) << "its body is not known";
}

TEST(UnusedCode, DecoratorsAndEntryPointsHaveCallersElsewhere) {
    EXPECT_THAT(never_called({python("a",
                                     "  func 1:5 a.go kind=python annotations=[app.command]\n"
                                     "  func 2:5 a.main kind=python\n  func 3:5 a.model_fn kind=python\n")}),
                IsEmpty());
}

TEST(UnusedCode, AFileWithoutFactsMayCallWhatItImports) {
    for (const std::string_view word : {"setup", "dist", "pkg", "importlib"})
        EXPECT_THAT(never_called({kSetUp}, that_imports(word)), IsEmpty()) << word;
    EXPECT_THAT(never_called({kSetUp}, that_imports("numpy")), ElementsAre("pkg.dist.setup"));
}

TEST(UnusedCode, MethodsOfAClassThatNothingMakes) {
    const std::string net =
        python("net", "  func 5:9 net.Naive.forward kind=python parent_class=net.Naive\n");
    const auto use = [](std::string_view facts) {
        return python("b", "  func 1:5 b.go kind=python annotations=[app.command]\n" + std::string(facts));
    };
    EXPECT_THAT(never_called({net}), ElementsAre("net.Naive.forward"));
    EXPECT_THAT(never_called({net, use("    call 2:1 net.Naive kind=constructor\n")}), IsEmpty());
    EXPECT_THAT(never_called({net, use("    call 2:1 net.Naive.apply\n")}), IsEmpty());
    EXPECT_THAT(never_called({net + "    call 6:1 net.Naive.help kind=method\n"}),
                ElementsAre("net.Naive.forward"));
    EXPECT_THAT(never_called({net, python("c",
                                          "  func 3:9 c.Deep.forward kind=python parent_class=c.Deep "
                                          "bases=[net.Naive]\n  func 9:5 c.main kind=python\n"
                                          "    call 10:1 c.Deep kind=constructor\n")}),
                IsEmpty());
    EXPECT_THAT(never_called({net, python("d",
                                          "  func 1:7 net.Naive.<class> kind=python parent_class=net.Naive "
                                          "annotations=[MODELS.register]\n")}),
                IsEmpty());
}

TEST(UnusedCode, AMethodThatNothingCallsByItsName) {
    const auto net = [](std::string_view more) {
        return python(
            "net", "  func 5:9 net.Net.policy kind=python parent_class=net.Net" + std::string(more) + "\n");
    };
    const auto use = [](std::string_view facts) {
        return python("b",
                      "  func 1:5 b.go kind=python annotations=[app.command]\n"
                      "    call 2:1 net.Net kind=constructor\n" +
                          std::string(facts));
    };
    EXPECT_THAT(never_called({net(""), use("")}), ElementsAre("net.Net.policy"));
    EXPECT_THAT(never_called({net(""), use("    call 3:1 ?.policy kind=method args=[{name=x}]\n")}),
                IsEmpty());
    EXPECT_THAT(never_called({net(""), use("    call 3:1 g args=[{name=self.policy}]\n")}), IsEmpty());
    EXPECT_THAT(never_called({net(" bases=[frame.Work]"), use("")}), IsEmpty()) << "a framework may call it";
    EXPECT_THAT(never_called({net("") + "    call 6:1 getattr args=[{name=self} {name=x}]\n", use("")}),
                IsEmpty());
    EXPECT_THAT(never_called({net("") + "  func 4:7 net.Net.<class> kind=python parent_class=net.Net "
                                        "annotations=[MODELS.register]\n",
                              use("")}),
                IsEmpty())
        << "a registry may hand it on";
    const Project package{.is_whole = true, .is_package = true};
    EXPECT_THAT(never_called({net(""), use("")}, package), IsEmpty()) << "others may call it";
    const std::string own =
        python("d", "  func 5:9 d.D._policy kind=python parent_class=d.D\n  func 9:9 d._help kind=python\n");
    EXPECT_THAT(never_called({own}, package), ElementsAre("d.D._policy", "d._help"));
    const std::string used =
        python("e",
               "  func 5:9 e.E._policy kind=python parent_class=e.E params=[{name=self}]\n"
               "  func 9:9 e.E.go kind=python parent_class=e.E params=[{name=self}]\n"
               "    call 10:9 e.E._policy kind=method callee=e.E._policy args=[{param=0 name=self}]\n");
    EXPECT_THAT(never_called({used}, package), IsEmpty()) << "others may make E and call go()";
    const std::string other = python("c", "  func 5:9 c.Other.policy kind=python parent_class=c.Other\n");
    EXPECT_THAT(never_called(
                    {net(""), other,
                     use("    call 3:1 c.Other kind=constructor\n"
                         "    call 4:1 c.Other.policy kind=method callee=c.Other.policy args=[{call=1}]\n")}),
                ElementsAre("net.Net.policy"));
}

TEST(UnusedCode, NativeFunctionsThatNothingNames) {
    const std::string lone = "unit /p/a.cu language=cuda\n  func 3:6 gemm_half usr=c:@F@gemm_half unnamed\n";
    EXPECT_THAT(never_called({lone}), ElementsAre("gemm_half"));
    EXPECT_THAT(never_called({lone}, {.is_whole = true, .is_package = true}), ElementsAre("gemm_half"));
    EXPECT_THAT(never_called({lone}, {}), IsEmpty());
    EXPECT_THAT(never_called({"unit /p/a.cu language=cuda\n  func 3:6 gemm_half usr=c:@F@gemm_half\n"}),
                IsEmpty());
    const auto other = [](std::string_view facts) {
        return "unit /p/b.cpp\n  func 1:5 bind usr=c:@F@bind\n" + std::string(facts);
    };
    EXPECT_THAT(never_called({lone, other("    call 2:1 gemm_half callee=c:@F@gemm_half\n")}), IsEmpty());
    EXPECT_THAT(never_called({lone, other("    call 2:1 def args=[{text=&gemm_half}]\n")}), IsEmpty());
    EXPECT_THAT(never_called({lone, python("ops",
                                           "  func 1:5 ops.go kind=python annotations=[app.command]\n"
                                           "    call 2:1 ext.gemm_half\n")}),
                IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
