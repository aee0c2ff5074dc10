#include "analyzer/analyses/python_code.hpp"

#include "tests/analyzer/rules/python_facts.hpp"

namespace mp::lint::test {
namespace {

TEST(PythonCode, TestsAndBenchmarksAreKnownByTheirPath) {
    for (const std::string_view path : {"/p/tests/a.py", "/p/test/x/a.py", "/p/test_a.py", "/p/a_test.py",
                                        "tests/a.py", "/p/conftest.py", "/p/testing/a.py"})
        EXPECT_EQ(code_kind(path), CodeKind::test) << path;
    EXPECT_EQ(code_kind("/p/benchmarks/a.py"), CodeKind::benchmark);
    for (const std::string_view path :
         {"/p/latest/a.py", "/p/testdata/a.py", "/p/contest.py", "/p/train.py", "/p/benchmarks.py"})
        EXPECT_EQ(code_kind(path), CodeKind::product) << path;
}

TEST(PythonCode, SeverityIsLowerThere) {
    EXPECT_EQ(severity_in(CodeKind::test, Severity::error), Severity::warning);
    EXPECT_EQ(severity_in(CodeKind::test, Severity::warning), Severity::note);
    EXPECT_EQ(severity_in(CodeKind::benchmark, Severity::error), Severity::warning);
    EXPECT_EQ(severity_in(CodeKind::benchmark, Severity::warning), Severity::warning);
    EXPECT_EQ(severity_in(CodeKind::product, Severity::error), Severity::error);
}

TEST(PythonCode, EveryRuleReportsLowerInTests) {
    const std::string sum =
        " language=python\n  func 1:5 a.f kind=python\n"
        "    call 5:3 torch.Tensor.sum kind=method op=sum args=[{tensor name=x} {fp16 dtype "
        "constant=torch.float16}]\n";
    EXPECT_THAT(lint("MP411", {"unit a.py" + sum}), ElementsAre("error 5"));
    EXPECT_THAT(lint("MP411", {"unit tests/a.py" + sum}), ElementsAre("warning 5"));
}

TEST(PythonCode, AGuardSeparatesItsTwoSides) {
    const auto function = [](std::string_view condition) {
        auto unit = parse_facts(python("    block to=[{1 condition=" + std::string(condition) +
                                       "} {2 condition=" + std::string(condition) +
                                       " when=false}]\n    block to=[2]\n    block leaves\n"));
        return std::move(unit->functions.front());
    };
    EXPECT_TRUE(is_dtype_guarded(function("self.fp16"), 1));
    EXPECT_FALSE(is_dtype_guarded(function("self.fp16"), 2)) << "both sides come here";
    EXPECT_FALSE(is_dtype_guarded(function("self.training"), 1));
    EXPECT_FALSE(is_dtype_guarded(function("self.fp16"), 0));
}

}  // namespace
}  // namespace mp::lint::test
