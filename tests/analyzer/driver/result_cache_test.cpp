// When the findings of the last run are used again, for trees with C++, headers and Python.

#include "analyzer/driver/result_cache.hpp"

#include <gmock/gmock.h>

#include "tests/analyzer/driver/toy_front_end.hpp"

namespace mp::lint {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class ResultCacheTest : public LintTest {
protected:
    static int judged;
    static void count(const RuleContext& context, Findings& out) {
        ++judged;
        complain(context, out);
    }
    static constexpr Rule kCount{.id = "MP901", .name = "toy-rule", .confirmed_by = "", .check = count};
    static constexpr const Rule* kCounting[] = {&kCount};

    void SetUp() override {
        LintTest::SetUp();
        judged = 0;
        parts_.rules = kCounting;
        write_old("p/a.cu", "fn one\ninclude x.h\nfn two\n");
        write_old("p/b.cu", "fn three\ninclude x.h\n");
        write_old("p/x.h", "fn inner\n");
        write_old("p/lonely.h", "fn lonely\n");
        write_old("p/m.py", "fn python\n");
        settle();
        run();
        extracted();
    }
    // A directory that was just written to is not trusted by its time.
    void settle() const { set_age("p", 900); }
};

int ResultCacheTest::judged = 0;

TEST_F(ResultCacheTest, AnUnchangedTreeWithHeadersIsNeitherExtractedNorJudged) {
    options_.use_cache = false;
    const Report fresh = run();
    options_.use_cache = true;
    judged = 0;
    extracted();
    const Report report = run();
    EXPECT_EQ(judged, 0);
    EXPECT_THAT(extracted(), IsEmpty());
    EXPECT_EQ(places(report.findings), places(fresh.findings));
    ASSERT_EQ(report.units.size(), fresh.units.size());
    for (std::size_t i = 0; i < fresh.units.size(); ++i) {
        EXPECT_EQ(report.units[i].path, fresh.units[i].path);
        EXPECT_EQ(report.units[i].coverage, fresh.units[i].coverage);
        EXPECT_TRUE(report.units[i].cached);
    }
}

TEST_F(ResultCacheTest, AnEditedHeaderIsSeenInEveryUnit) {
    write_old("p/x.h", "fn inner\nfn more\n", 500);
    EXPECT_THAT(places(run().findings),
                ElementsAre("a.cu:1", "a.cu:3", "b.cu:1", "lonely.h:1", "m.py:1", "x.h:1", "x.h:2"));
    EXPECT_THAT(extracted(), SizeIs(2));
    EXPECT_EQ(judged, 2);
}

TEST_F(ResultCacheTest, AnEditThatOnlyMovesLinesIsNotJudged) {
    write_old("p/x.h", "// a comment\n\nfn inner\n", 500);
    write_old("p/a.cu", "fn one\n\ninclude x.h\nfn two\n", 500);
    EXPECT_THAT(places(run().findings),
                ElementsAre("a.cu:1", "a.cu:4", "b.cu:1", "lonely.h:1", "m.py:1", "x.h:3"));
    EXPECT_THAT(extracted(), SizeIs(2));
    EXPECT_EQ(judged, 1) << "the facts are the same";
    EXPECT_THAT(places(run().findings),
                ElementsAre("a.cu:1", "a.cu:4", "b.cu:1", "lonely.h:1", "m.py:1", "x.h:3"));
    EXPECT_EQ(judged, 1);
}

// Complains of each function with a finding that has all parts.
void complain_fully(const RuleContext& context, Findings& out) {
    for (const Function* f : context.program.functions()) {
        SourceSpan after = f->span;
        after.column = 9;
        out.push_back({.rule = "MP901",
                       .severity = Severity::note,
                       .span = f->span,
                       .message = "message",
                       .fix = "fix",
                       .notes = {{after, "see"}},
                       .function = f->display,
                       .edits = {{after, "text"}},
                       .safe_edits = true});
    }
}

std::string text_of(const Report& report) {
    std::string out;
    for (const Finding& f : report.findings) {
        out += std::string(f.rule) + to_string(f.span) + std::string(name_of(f.severity)) + f.message +
               f.fix + std::string(f.function.str()) + (f.safe_edits ? " safe\n" : "\n");
        for (const Note& n : f.notes) out += to_string(n.span) + n.text + "\n";
        for (const Edit& e : f.edits) out += to_string(e.at) + e.text + "\n";
    }
    return out;
}

TEST_F(ResultCacheTest, EveryPartOfAFindingIsReplayed) {
    static constexpr Rule kFull{
        .id = "MP901", .name = "toy-rule", .confirmed_by = "", .check = complain_fully};
    static constexpr const Rule* kFullRules[] = {&kFull};
    parts_.rules = kFullRules;
    options_.device = "hpu";  // other settings than before
    const std::string fresh = text_of(run());
    EXPECT_THAT(fresh, HasSubstr("x.h:1:9"));
    EXPECT_EQ(text_of(run()), fresh) << "nothing changed";
    write_old("p/x.h", "\nfn inner\n", 500);
    const std::string moved = text_of(run());
    options_.use_cache = false;
    EXPECT_EQ(moved, text_of(run())) << "lines moved";
    EXPECT_THAT(moved, HasSubstr("x.h:2:9"));
}

// The store may be newer than the findings: another run, with other settings, has read the edit.
TEST_F(ResultCacheTest, LinesMoveUnderARunWithOtherSettings) {
    write_old("p/a.cu", "\nfn one\ninclude x.h\nfn two\n", 500);
    options_.device = "hpu";
    run();
    options_.device.clear();
    judged = 0;
    EXPECT_THAT(places(run().findings),
                ElementsAre("a.cu:2", "a.cu:4", "b.cu:1", "lonely.h:1", "m.py:1", "x.h:1"));
    EXPECT_EQ(judged, 0);
}

TEST_F(ResultCacheTest, ATouchedHeaderIsComparedByContent) {
    set_age("p/x.h", 500);
    run();
    EXPECT_THAT(extracted(), IsEmpty());
    EXPECT_EQ(judged, 1);
}

TEST_F(ResultCacheTest, AHeaderThatBecomesUsedIsNoLongerAUnit) {
    write_old("p/b.cu", "fn three\ninclude lonely.h\n", 500);
    const Report report = run();
    EXPECT_THAT(places(report.findings),
                ElementsAre("a.cu:1", "a.cu:3", "b.cu:1", "lonely.h:1", "m.py:1", "x.h:1"));
    EXPECT_THAT(report.units, SizeIs(3));
    EXPECT_EQ(judged, 2);
}

TEST_F(ResultCacheTest, OtherFlagsAreOtherFacts) {
    options_.flags = {"-DX"};
    run();
    EXPECT_THAT(extracted(), SizeIs(3)) << "the commands and the header; not the Python file";
    EXPECT_EQ(judged, 2);
    options_.flags.reset();
    run();
    EXPECT_THAT(extracted(), IsEmpty()) << "facts for both flags are kept";
}

TEST_F(ResultCacheTest, ANewHeaderBesideTheIncluderIsSeen) {
    write_old("p/sub/c.cu", "fn four\n");
    settle();
    run();
    judged = 0;
    extracted();
    write_old("p/sub/x.h", "fn shadow\n");  // could be found first by an include of x.h
    EXPECT_THAT(places(run().findings), SizeIs(8));
    EXPECT_EQ(judged, 1);
    EXPECT_THAT(extracted(), testing::Contains("x.h"));
}

TEST_F(ResultCacheTest, ALostUnitIsNotRemembered) {
    write_old("p/b.cu", "crash\n", 500);
    run();
    extracted();
    run();
    EXPECT_THAT(extracted(), ElementsAre("b.cu"));
}

TEST_F(ResultCacheTest, DamageIsAMissAndOneWarning) {
    for (const auto& file : fs::directory_iterator(path("cache"))) {
        if (file.is_regular_file()) fs::resize_file(file, fs::file_size(file) - fs::file_size(file) / 2);
    }
    const Report report = run();
    EXPECT_THAT(report.findings, SizeIs(6));
    EXPECT_THAT(report.warnings, ElementsAre(HasSubstr("damaged")));
    EXPECT_THAT(run().warnings, IsEmpty());
}

}  // namespace
}  // namespace mp::lint
