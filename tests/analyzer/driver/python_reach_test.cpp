#include "analyzer/driver/python_reach.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzer/driver/python_scan.hpp"
#include "analyzer/facts/text.hpp"
#include "tests/analyzer/driver/toy_front_end.hpp"

namespace mp::lint {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

bool is_seed(std::string_view text) { return Seeds(kRules).any_in_code(text); }

TEST(Seeds, AreTheWordsOfTheRules) {
    EXPECT_TRUE(is_seed("x = y.half()\n"));
    EXPECT_FALSE(Seeds({}).any_in_code("x = y.half()\n"));
    EXPECT_FALSE(is_seed("precision = 1\n")) << "no rule has this word";
}

TEST(Seeds, EdgesAndDigits) {
    EXPECT_FALSE(is_seed("halfway = 1\n"));
    EXPECT_TRUE(is_seed("half"));
    EXPECT_TRUE(is_seed("x = -9e15\n"));
    EXPECT_FALSE(is_seed("x = -e15\n"));
    EXPECT_FALSE(is_seed("x = -9"));
}

TEST(Seeds, CodeCountsAndProseDoesNot) {
    EXPECT_TRUE(is_seed("x = y.half()\n"));
    EXPECT_FALSE(is_seed("y = rotate_half(x)\n"));
    EXPECT_TRUE(is_seed("half = torch.float\n"));
    EXPECT_TRUE(is_seed("trainer = T(kind=\"bf16-mixed\")\n"));
    EXPECT_FALSE(is_seed("# in bf16\nx = 1\n"));
    EXPECT_FALSE(is_seed("def f():\n    \"\"\"Runs in\n    float16.\"\"\"\n    return 1\n"));
    EXPECT_FALSE(is_seed("    r'''bf16'''\n"));
    EXPECT_TRUE(is_seed("def f():\n    \"\"\"Doc.\"\"\"\n    return x.half()\n"));
    EXPECT_TRUE(is_seed("s = 1\n'''never closed\nbf16\n")) << "wrong towards yes at most";
    EXPECT_FALSE(is_seed(""));
}

std::vector<std::uint64_t> names(std::string_view text) { return imported_names(text); }
bool imports(std::string_view text, std::string_view name) {
    const auto one = names("import " + std::string(name) + "\n");
    const auto all = names(text);
    for (const std::uint64_t word : one) {
        if (!std::binary_search(all.begin(), all.end(), word)) return false;
    }
    return true;
}

TEST(ImportedNames, EveryForm) {
    EXPECT_TRUE(imports("import a.b as c\n", "b"));
    EXPECT_TRUE(imports("from a import (\n    x,\n    y,\n)\n", "y"));
    EXPECT_TRUE(imports("from a import x, \\\n    y\n", "y"));
    EXPECT_TRUE(imports("def f():\n    from .tools import low\n", "low"));
    EXPECT_FALSE(imports("from .tools import low\n", "tools")) << "only what it names";
    EXPECT_TRUE(imports("from .tools import *\n", "tools"));
    EXPECT_FALSE(imports("important = 1\nx = y\n", "x"));
}

TEST(ImportedNames, TellsAFileThatEvaluatesStrings) {
    const auto evaluates = [](std::string_view text) {
        const std::vector<std::uint64_t> all = names(text);
        return std::binary_search(all.begin(), all.end(), hash_bytes(kEvaluates));
    };
    EXPECT_TRUE(evaluates("import nets\nnet = eval(name)\n"));
    EXPECT_TRUE(evaluates("exec(open(path).read())\n"));
    EXPECT_FALSE(evaluates("import nets\nnet.eval()\n"));
    EXPECT_FALSE(evaluates("net.eval(1)\nrun_eval(net)\n"));
}

Unit unit(std::string_view facts) {
    auto parsed = parse_facts(facts);
    EXPECT_TRUE(parsed);
    return parsed ? std::move(*parsed) : Unit{};
}

class Reach : public testing::Test {
protected:
    void add(std::string_view module, bool wanted, std::string_view text = "") {
        reach_.add(module, wanted, true, imported_names(text));
        modules_.emplace_back(module);
    }
    void take(std::size_t file, std::string_view facts) {
        reach_.take(file, outline_of(unit(facts), modules_[file], Seeds(kRules)));
    }
    PythonReach reach_;
    std::vector<std::string> modules_;
};

TEST_F(Reach, WhatSpeaksOfPrecisionIsNeeded) {
    add("a", true);
    add("b", false);
    EXPECT_THAT(reach_.next(), ElementsAre(0u));
    take(0, "unit a.py language=python\n  func 1:1 a.f kind=python\n");
    EXPECT_THAT(reach_.next(), IsEmpty());
}

TEST_F(Reach, WhatItCallsIsNeededAndWhatThatCalls) {
    add("a", true);
    add("pkg.b", false);
    add("pkg.c", false);
    add("pkg.d", false);
    EXPECT_THAT(reach_.next(), ElementsAre(0u));
    take(0,
         "unit a.py language=python\n  func 1:1 a.f kind=python\n"
         "    call 2:1 pkg.b.N.g callee=pkg.b.N.g\n");
    EXPECT_THAT(reach_.next(), ElementsAre(1u));
    take(1,
         "unit b.py language=python\n"
         "  func 1:1 pkg.b.N.g kind=python parent_class=pkg.b.N bases=[pkg.c.Base]\n");
    EXPECT_THAT(reach_.next(), ElementsAre(2u));
}

TEST_F(Reach, AFunctionThatIsPassedOnIsNeeded) {
    add("a", true);
    add("b", false);
    reach_.next();
    take(0,
         "unit a.py language=python\n  func 1:1 a.f kind=python\n"
         "    call 2:1 threading.Thread lambdas=[b.work]\n");
    EXPECT_THAT(reach_.next(), ElementsAre(1u));
}

TEST_F(Reach, ReExportsLeadOn) {
    add("a", true);
    add("pkg", false);
    add("pkg.impl", false);
    reach_.next();
    take(0, "unit a.py language=python\n  func 1:1 a.f kind=python\n    call 2:1 pkg.g callee=pkg.g\n");
    EXPECT_THAT(reach_.next(), ElementsAre(1u));
    take(1,
         "unit p.py language=python\n  func 1:1 pkg.<module> kind=python\n"
         "    type 1:1 pkg.impl.g alias=pkg.g\n");
    EXPECT_THAT(reach_.next(), ElementsAre(2u));
}

TEST_F(Reach, WhoImportsWhatGivesHalfIsNeeded) {
    add("a", true);
    add("b", false, "from a import low\n");
    add("c", false, "from a import other\n");
    add("d", false, "import torch\n");
    reach_.next();
    take(0,
         "unit a.py language=python\n  func 1:1 a.low kind=python\n"
         "    return fp16 tensor\n  func 5:1 a.other kind=python\n");
    EXPECT_THAT(reach_.next(), ElementsAre(1u));
}

TEST_F(Reach, OfWhatIsOnlyCalledNothingElseLeadsOn) {
    add("a", true);
    add("b", false);
    add("c", false);
    add("d", false);
    reach_.next();
    take(0, "unit a.py language=python\n  func 1:1 a.f kind=python\n    call 2:1 b.g callee=b.g\n");
    EXPECT_THAT(reach_.next(), ElementsAre(1u));
    take(1,
         "unit b.py language=python\n  func 1:1 b.g kind=python\n    call 2:1 b.h callee=b.h\n"
         "  func 4:1 b.h kind=python\n    call 5:1 c.g callee=c.g\n"
         "  func 7:1 b.other kind=python\n    call 8:1 d.g callee=d.g\n");
    EXPECT_THAT(reach_.next(), ElementsAre(2u)) << "b.h is called by b.g";
}

TEST_F(Reach, WhoImportsARegionOpensOnes) {
    add("a", true);
    add("b", false, "from a import low\n");
    add("c", false, "from b import amp\n");
    reach_.next();
    take(0,
         "unit a.py language=python\n  func 1:1 a.low.__enter__ kind=python\n"
         "    call 2:1 torch.autocast kind=constructor\n");
    EXPECT_THAT(reach_.next(), ElementsAre(1u));
    take(1, "unit b.py language=python\n  func 1:1 b.amp.__enter__ kind=python\n");
    EXPECT_THAT(reach_.next(), ElementsAre(2u));
}

TEST_F(Reach, AManagerOfAnotherKindLeadsNowhere) {
    add("a", true);
    add("b", false);
    add("c", false, "from b import timer\n");
    reach_.next();
    take(0,
         "unit a.py language=python\n  func 1:1 a.f kind=python\n"
         "    call 2:1 b.timer.__enter__ callee=b.timer.__enter__\n");
    EXPECT_THAT(reach_.next(), ElementsAre(1u));
    take(1, "unit b.py language=python\n  func 1:1 b.timer.__enter__ kind=python\n");
    EXPECT_THAT(reach_.next(), IsEmpty());
}

// `from .a import a` in a package: "pkg.a" means "pkg.a.a".
TEST_F(Reach, ReExportsInACircleEnd) {
    add("m", true);
    add("pkg", false);
    add("pkg.a", false);
    reach_.next();
    take(0,
         "unit m.py language=python\n  func 1:1 m.f kind=python\n"
         "    call 2:1 pkg.a.run callee=pkg.a.run\n    call 3:1 pkg.x callee=pkg.x\n");
    EXPECT_THAT(reach_.next(), ElementsAre(1u, 2u));
    take(1,
         "unit p.py language=python\n  func 1:1 pkg.<module> kind=python\n"
         "    type 1:1 pkg.a.a alias=pkg.a\n    type 2:1 pkg.y.y alias=pkg.x\n"
         "    type 3:1 pkg.x.x alias=pkg.y\n");
    take(2, "unit a.py language=python\n  func 1:1 pkg.a.run kind=python\n");
    EXPECT_THAT(reach_.next(), IsEmpty());
}

}  // namespace
}  // namespace mp::lint
