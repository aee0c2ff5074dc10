// Edits and suppressions on their way through a run of the driver.

#include <gmock/gmock.h>

#include "tests/analyzer/driver/toy_front_end.hpp"

namespace mp::lint {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::string g_meddle;  // a file that is written to while rules run

void with_edits(const RuleContext& context, Findings& out) {
    complain(context, out);
    for (Finding& f : out) f.edits = {{f.span, "x"}};
    if (!g_meddle.empty()) std::ofstream(g_meddle) << "\nfn one\n";
}
constexpr Rule kEditing{.id = "MP901", .name = "toy-rule", .confirmed_by = "", .check = with_edits};
void nothing(const RuleContext&, Findings&) {}
constexpr Rule kUnused{.id = "MP001",
                       .name = "unused-suppression",
                       .severity = Severity::note,
                       .confirmed_by = "",
                       .check = nothing};
constexpr const Rule* kEditingRules[] = {&kUnused, &kEditing};

class EditsInLint : public LintTest {
protected:
    void SetUp() override {
        LintTest::SetUp();
        g_meddle.clear();
        parts_.rules = kEditingRules;
    }
};

TEST_F(EditsInLint, TheyArriveWithTheTextTheyAreOf) {
    write("p/a.py", "fn one\n");
    const Report report = run();
    ASSERT_THAT(report.findings, SizeIs(1));
    ASSERT_THAT(report.findings[0].edits, SizeIs(1));
    EXPECT_EQ(report.sources.text(path("p/a.py")), "fn one\n");
}

TEST_F(EditsInLint, OfATextThatChangedMeanwhileTheyAreDropped) {
    write("p/a.py", "fn one\nfn two\n");
    g_meddle = path("p/a.py");
    const Report report = run();
    ASSERT_THAT(report.findings, SizeIs(2));
    EXPECT_THAT(report.findings[0].edits, IsEmpty());
    EXPECT_THAT(report.findings[1].edits, IsEmpty());
    EXPECT_THAT(report.warnings, ElementsAre(HasSubstr("changed while it was analysed")));
}

TEST_F(EditsInLint, ANotebookHasNone) {
    write("p/a.ipynb", "fn one\n");
    const Report report = run();
    ASSERT_THAT(report.findings, SizeIs(1));
    EXPECT_THAT(report.findings[0].edits, IsEmpty());
}

TEST_F(EditsInLint, UnusedSuppressionsAreFoundInFilesWithoutFindings) {
    write("p/a.py", "x = 1  # mp-lint: disable=MP901 why\n");
    write("p/b.py", "y = 1\n");
    write("p/c.cu", "// mp-lint: disable-file=MP901 why\n");
    EXPECT_THAT(places(run().findings), ElementsAre("a.py:1", "c.cu:1"));
    EXPECT_THAT(places(run().findings), ElementsAre("a.py:1", "c.cu:1")) << "from the cache";
    options_.ignore = {"MP001"};
    EXPECT_THAT(run().findings, IsEmpty());
}

TEST_F(EditsInLint, AFileThatDidNotParseProvesNoSuppressionUnused) {
    write("p/a.cu", "odd\n// mp-lint: disable-file=MP901 why\n");
    EXPECT_THAT(run().findings, IsEmpty());
}

}  // namespace
}  // namespace mp::lint
