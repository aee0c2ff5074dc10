#include "analyzer/fix/fix.hpp"

#include <iterator>

#include <gmock/gmock.h>

#include "tests/analyzer/driver/temporary_tree.hpp"
#include "tests/analyzer/fix/edited.hpp"

namespace mp::lint {
namespace {

using edited::edit;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A linter for one file: every "bad" is a finding with the fix "good", "(" without ")" does not
// parse, "odd" is a finding whose fix is "(".
class Fixing : public TemporaryTree {
protected:
    std::string text() const {
        std::ifstream in(path("a.py"));
        return {std::istreambuf_iterator<char>(in), {}};
    }

    Result<Report> lint() {
        ++runs_;
        const std::string file = path("a.py");
        Report r = edited::report({{file, text()}}, {});
        r.working_directory = r.project_root = path();
        for (const auto& [word, fix] : {std::pair{"bad", "good"}, {"odd", "("}}) {
            for (std::size_t at = text().find(word); at != std::string::npos;
                 at = text().find(word, at + 1)) {
                const auto column = static_cast<std::uint32_t>(at + 1);
                const Edit e = edit(file, {1, column, 1, column + 3}, fix);
                r.findings.push_back(edited::finding({e}, safe_));
                r.findings.back().fix = needs_;
            }
        }
        if (text().find('(') != std::string::npos) r.units[0].state = UnitState::partial;
        if (meddle_) write("a.py", "edited\n");
        return r;
    }

    Result<Report> fix(const FixOptions& options = {}) {
        return lint_and_fix([this] { return lint(); }, options, outcome_);
    }

    FixOutcome outcome_;
    bool safe_ = true;
    std::string needs_;
    bool meddle_ = false;
    int runs_ = 0;
};

TEST_F(Fixing, AFixThatRaisesTheLeastVersionSaysSo) {
    write("a.py", "bad and bad\n");
    needs_ = "use good, which needs PyTorch 2.3";
    ASSERT_TRUE(fix());
    EXPECT_THAT(outcome_.messages, ElementsAre("the fixed code needs PyTorch 2.3 or newer"));
}

TEST_F(Fixing, TheReportIsThatOfTheFixedFile) {
    write("a.py", "bad and bad\n");
    const Result<Report> report = fix();
    ASSERT_TRUE(report);
    EXPECT_THAT(report->findings, IsEmpty());
    EXPECT_EQ(text(), "good and good\n");
    EXPECT_EQ(runs_, 2);
    EXPECT_EQ(fix_summary(outcome_, {}), "2 fixed");
}

TEST_F(Fixing, NothingToFixIsOneRun) {
    write("a.py", "fine\n");
    ASSERT_TRUE(fix());
    EXPECT_EQ(runs_, 1);
    EXPECT_EQ(fix_summary(outcome_, {}), "");
}

TEST_F(Fixing, OnlyShowWritesNothing) {
    write("a.py", "bad\n");
    const FixOptions show{.with_unsafe = false, .only_show = true};
    ASSERT_TRUE(fix(show));
    EXPECT_EQ(text(), "bad\n");
    EXPECT_EQ(outcome_.diff, "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-bad\n+good\n");
    EXPECT_EQ(fix_summary(outcome_, show), "1 would be fixed");
}

TEST_F(Fixing, UnsafeOnesAreCounted) {
    write("a.py", "bad\n");
    safe_ = false;
    ASSERT_TRUE(fix());
    EXPECT_EQ(text(), "bad\n");
    EXPECT_EQ(fix_summary(outcome_, {}), "1 need --unsafe-fixes");
    outcome_ = {};
    ASSERT_TRUE(fix({.with_unsafe = true, .only_show = false}));
    EXPECT_EQ(text(), "good\n");
}

TEST_F(Fixing, AFixThatBreaksTheFileIsTakenBack) {
    write("a.py", "odd\n");
    const Result<Report> report = fix();
    ASSERT_TRUE(report);
    EXPECT_EQ(text(), "odd\n");
    EXPECT_EQ(report->findings.size(), 1u) << "the report is that of the restored file";
    EXPECT_EQ(outcome_.fixed, 0u);
    EXPECT_EQ(fix_summary(outcome_, {}), "1 left alone");
    EXPECT_THAT(outcome_.messages, ElementsAre(HasSubstr("does not parse after its fixes")));
}

TEST_F(Fixing, AFileThatChangesDuringTheRunIsLeftAlone) {
    write("a.py", "bad\n");
    meddle_ = true;
    ASSERT_TRUE(fix());
    EXPECT_EQ(text(), "edited\n");
    EXPECT_EQ(fix_summary(outcome_, {}), "1 left alone");
    EXPECT_THAT(outcome_.messages, ElementsAre(HasSubstr("changed since it was analysed")));
}

}  // namespace
}  // namespace mp::lint
