#include <algorithm>
#include <chrono>

#include <gmock/gmock.h>

#include "tests/analyzer/region/linked.hpp"

namespace mp::lint {
namespace {

using testing::ElementsAre;

std::vector<std::string> names(const Program& program) {
    std::vector<std::string> found;
    for (const Function* f : program.functions()) found.emplace_back(f->display.str());
    return found;
}

TEST(Program, KeepsAFunctionOfAHeaderOnce) {
    const std::string shared = "func h.hpp:3:1 helper usr=h\n  call 4:1 at::sum op=sum\n";
    const Program program = linked({"unit b.cpp\n" + shared + "func 9:1 b\n  call 10:1 helper callee=h\n",
                                    "unit a.cpp\n" + shared + "func 9:1 a\n  call 10:1 helper callee=h\n"});
    EXPECT_THAT(names(program), ElementsAre("a", "b", "helper"));
    EXPECT_EQ(program.callers(Symbol("h")).size(), 2u);
    EXPECT_EQ(program.units().size(), 2u);
}

TEST(Program, KeepsEveryInstantiation) {
    const Program program =
        linked({"unit a.cu\nfunc 3:1 norm usr=n1 display=norm<float>\n"
                "func 3:1 norm usr=n2 display=norm<__half> instantiated=40:5\n"});
    EXPECT_THAT(names(program), ElementsAre("norm<__half>", "norm<float>"));
    EXPECT_EQ(program.instantiation_notes(*program.functions()[1]).size(), 0u);
    const auto notes = program.instantiation_notes(*program.functions()[0]);
    ASSERT_EQ(notes.size(), 1u);
    EXPECT_EQ(to_string(notes[0].span) + " " + notes[0].text, "a.cu:40:5 norm<__half> is instantiated here");
}

TEST(Program, PrefersTheCleanerReportOfAFunctionWhateverTheOrder) {
    const std::string broken = "unit a.cpp state=partial\nfunc h.hpp:3:1 helper usr=h\n";
    const std::string clean = "unit b.cpp\nfunc h.hpp:3:1 helper usr=h\n  call 4:1 at::sum op=sum\n";
    for (const auto& texts : {std::vector{broken, clean}, std::vector{clean, broken}}) {
        const Program program = linked(texts);
        ASSERT_EQ(program.functions().size(), 1u);
        EXPECT_EQ(program.functions()[0]->calls.size(), 1u);
    }
}

TEST(Program, TwoProgramsOfOneTreeKeepTheirOwnMain) {
    const Program program = linked({"unit a.cpp\nfunc 1:1 main usr=main\n  call 2:1 at::sum\n",
                                    "unit b.cpp\nfunc 1:1 main usr=main\n  call 2:1 at::sum\n"});
    EXPECT_EQ(program.functions().size(), 2u);
}

TEST(Program, AFunctionThatSeveralScriptsHaveIsTheOneOfTheNearestFile) {
    const auto script = [](const std::string& path, const std::string& callee) {
        return "unit " + path + " language=python\nfunc 1:5 train.run kind=python\n  call 2:1 " + callee +
               " callee=" + callee + "\nfunc 5:5 train.step kind=python\n";
    };
    const Program program =
        linked({script("/p/a/train.py", "train.step"), script("/p/b/train.py", "train.step"),
                "unit /p/b/main.py language=python\nfunc 1:5 main.go kind=python\n  call 2:1 train.step "
                "callee=train.step\n"});
    std::vector<std::string> meant;
    for (const Function* f : program.functions())
        for (const Call& call : f->calls) {
            const Function* callee = program.definition(call.callee);
            ASSERT_NE(callee, nullptr);
            meant.push_back(std::string(f->span.file.str()) + " -> " + std::string(callee->span.file.str()));
        }
    EXPECT_THAT(meant, testing::UnorderedElementsAre("/p/a/train.py -> /p/a/train.py",
                                                     "/p/b/train.py -> /p/b/train.py",
                                                     "/p/b/main.py -> /p/b/train.py"));
}

TEST(Program, ACallMeansTheBodyInItsOwnFileWhenSeveralShareAName) {
    const auto file = [](const std::string& name, const std::string& dtype) {
        return "unit " + name +
               "\nfunc 1:1 helper usr=h params=[tensor]\n  call 2:1 at::sum args=[{tensor "
               "param=0}]\n" +
               "func 4:1 use_" + name.substr(0, 1) + "\n  call 5:1 helper callee=h args=[{" + dtype +
               " tensor}]\n";
    };
    const Program program = linked({file("a.cpp", "fp16"), file("b.cpp", "fp32")});
    ASSERT_EQ(program.functions().size(), 4u);
    for (const Function* f : program.functions()) {
        if (f->name.str() != "helper") continue;
        const DType expected = f->span.file.str() == "a.cpp" ? DType::fp16 : DType::fp32;
        EXPECT_EQ(program.dtype_of(*f, f->calls[0].args[0]).dtype, expected);
    }
}

TEST(Program, KnowsDefinitionsAndOwners) {
    const Program program =
        linked({"unit a.cpp\nfunc 1:1 f\n  call 2:1 g callee=g\nfunc 5:1 g\n  call 6:1 at::sum\n"});
    const Function& f = function_named(program, "f");
    EXPECT_EQ(program.definition(Symbol("g")), &function_named(program, "g"));
    EXPECT_EQ(program.definition(Symbol("nowhere")), nullptr);
    EXPECT_EQ(program.owner(f.calls[0]), &f);
    const Call stray;
    EXPECT_EQ(program.owner(stray), nullptr);
    EXPECT_EQ(program.callers(Symbol("g"))[0], &f.calls[0]);
}

TEST(Program, OrderOfUnitsDoesNotMatter) {
    const std::vector<std::string> texts{
        "unit a.cpp\nfunc 1:1 open\n call 2:1 at::autocast::set_enabled args=[constant=true]\n"
        " call 3:1 work callee=work\n",
        "unit b.cpp\nfunc 1:1 work params=[tensor]\n call 2:1 at::sum args=[{tensor param=0}]\n",
        "unit c.cpp\nfunc 1:1 other\n call 3:1 work callee=work\n"};
    std::vector<std::string> shuffled{texts[2], texts[0], texts[1]};
    const Program one = linked(texts), two = linked(shuffled);
    EXPECT_EQ(names(one), names(two));
    EXPECT_EQ(states(one, "work", 0), states(two, "work", 0));
    EXPECT_EQ(states(one, "work", 0), "on:fp16 off");
    EXPECT_EQ(leaks(one), leaks(two));
}

TEST(Program, EmptyAndMovedProgramsWork) {
    Program program = linked({});
    EXPECT_TRUE(program.functions().empty());
    program = linked({"unit a.cpp\nfunc 1:1 f\n"});
    EXPECT_EQ(program.functions().size(), 1u);
}

// A layered program: every function calls ten of the next layer, all of it inside a region.
std::vector<Unit> layered(std::uint32_t functions, std::uint32_t calls) {
    std::vector<Unit> units(16);
    std::vector<Symbol> usrs;
    for (std::uint32_t i = 0; i < functions; ++i) usrs.emplace_back("f" + std::to_string(i));
    for (std::uint32_t i = 0; i < functions; ++i) {
        Function f;
        f.usr = f.name = f.display = usrs[i];
        f.span = {Symbol("file" + std::to_string(i % 16)), i + 1, 1, 0, 0};
        f.params.resize(1);
        for (std::uint32_t c = 0; c < calls; ++c) {
            Call call;
            call.span = {f.span.file, i + 1, c + 2, 0, 0};
            call.callee = call.name = usrs[std::min(functions - 1, i + 1 + c * 97)];
            call.args.resize(1);
            call.args[0].param = 0;
            f.calls.push_back(call);
        }
        if (i == 0) {
            f.calls[0].name = Symbol("at::autocast::set_enabled");
            f.calls[0].callee = {};
            f.calls[0].args[0] = {};
            f.calls[0].args[0].constant = Symbol("true");
        }
        units[i % 16].functions.push_back(std::move(f));
    }
    return units;
}

// The bound is for debug and sanitizer builds; an optimised build takes well under a second.
TEST(Program, LinksAMillionCallsInTime) {
    std::vector<Unit> units = layered(100'000, 10);
    const auto start = std::chrono::steady_clock::now();
    const Program program = Program::link(std::move(units));
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    RecordProperty("milliseconds", static_cast<int>(seconds.count() * 1000));
    EXPECT_EQ(program.functions().size(), 100'000u);
    EXPECT_THAT(states(program, "f99999", 0), testing::HasSubstr("on:fp16"));
    EXPECT_LT(seconds.count(), 20.0);
}

}  // namespace
}  // namespace mp::lint
