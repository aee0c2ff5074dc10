// Python files in the driver: found without commands, extracted many to a process, kept in one pack,
// and not even linked when nothing has changed.

#include <fcntl.h>
#include <sys/stat.h>

#include <gmock/gmock.h>

#include "analyzer/driver/discover.hpp"
#include "tests/analyzer/driver/toy_front_end.hpp"

namespace mp::lint {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

class PythonTest : public LintTest {
protected:
    // How often the toy rule ran: 0 when the findings were replayed.
    static int judged;
    static TorchVersion judged_for;
    static void count(const RuleContext& context, Findings& out) {
        ++judged;
        judged_for = context.torch;
        complain(context, out);
    }
    void SetUp() override {
        LintTest::SetUp();
        judged = 0;
        parts_.rules = kCounting;
    }
    static constexpr Rule kCount{
        .id = "MP901", .name = "toy-rule", .confirmed_by = "", .triggers = {kToyTriggers}, .check = count};
    static constexpr const Rule* kCounting[] = {&kCount};
};

int PythonTest::judged = 0;
TorchVersion PythonTest::judged_for;

TEST_F(PythonTest, RulesKnowTheTorchThatTheRequirementsAskFor) {
    write_old("p/a.py", "fn one\n");
    run();
    EXPECT_FALSE(judged_for.known());
    write("p/requirements.txt", "torch==2.2.0\n");
    run();
    EXPECT_EQ(judged_for, (TorchVersion{2, 2})) << "findings for another version are not replayed";
    options_.torch = "2.4";
    run();
    EXPECT_EQ(judged_for, (TorchVersion{2, 4})) << "the user's word counts";
}

TEST_F(PythonTest, ADirectoryOfPythonNeedsNoDatabaseAndNoCommand) {
    write("p/a.py", "fn one\n");
    write("p/pkg/b.py", "fn two\n");
    write("p/pkg/c.pyi", "fn three\n");
    parts_.find_database = [](const std::string&) -> std::string {
        ADD_FAILURE() << "a compile database was looked for";
        return {};
    };
    const Report report = run();
    EXPECT_THAT(places(report.findings), ElementsAre("a.py:1", "pkg/b.py:1"));
    EXPECT_EQ(report.files, 2u);
    EXPECT_EQ(exit_code(report, true), 1);
}

TEST_F(PythonTest, BothLanguagesAreOneProgram) {
    write("p/a.cu", "fn one\n");
    write("p/b.py", "fn two\n");
    EXPECT_THAT(places(run().findings), ElementsAre("a.cu:1", "b.py:1"));
}

TEST_F(PythonTest, ModulesAreNamedFromTheWalkedDirectory) {
    write("p/pkg/sub/m.py", "module\n");
    write("p/pkg/__init__.py", "module\n");
    write("p/top.py", "module\n");
    std::vector<std::string> names;
    for (const Finding& f : run().findings) names.emplace_back(f.function.str());
    EXPECT_THAT(names, UnorderedElementsAre("pkg", "pkg.sub.m", "top"));
    options_.inputs = {"pkg/sub/m.py"};
    EXPECT_EQ(run().findings.at(0).function.str(), "m") << "a named file is a module of its directory";

    write("p/a/train.py", "module\n");
    write("p/b/train.py", "module\n");
    options_.inputs = {"a/train.py", "b/train.py"};
    EXPECT_EQ(run().findings.at(0).function.str(), "a.train")
        << "named files are modules of what is above them";
}

TEST_F(PythonTest, InstalledPackagesAndEnvironmentsAreSkippedUnlessNamed) {
    write("p/env/pyvenv.cfg");
    write("p/env/lib/a.py", "fn one\n");
    write("p/lib/site-packages/b.py", "fn two\n");
    write("p/c.py", "fn three\n");
    EXPECT_THAT(places(run().findings), ElementsAre("c.py:1"));
    options_.inputs = {"lib/site-packages", "env"};
    EXPECT_THAT(places(run().findings), ElementsAre("env/lib/a.py:1", "lib/site-packages/b.py:1"));
}

TEST_F(PythonTest, WhatTheFilterRefusesIsNotExtractedButCounted) {
    write("p/a.py", "dull\n");
    const Report report = run();
    EXPECT_THAT(extracted(), IsEmpty());
    EXPECT_EQ(report.files, 1u);
    EXPECT_EQ(exit_code(report, true), 0);
}

TEST_F(PythonTest, AFileThatCrashesOrHangsCostsItselfOnly) {
    for (const char c : std::string("abcdef")) write(std::string("p/") + c + ".py", "fn one\n");
    write("p/c.py", "crash\n");
    write("p/e.py", "hang\n");
    write("p/f.py", "odd\nfn half\n");
    options_.timeout = 0.5;
    const Report report = run();
    ASSERT_THAT(report.units, SizeIs(6));
    EXPECT_EQ(report.units[2].state, UnitState::crashed);
    EXPECT_THAT(report.units[2].message, HasSubstr("signal 6"));
    EXPECT_EQ(report.units[4].state, UnitState::timeout);
    EXPECT_EQ(report.units[5].state, UnitState::partial);
    EXPECT_THAT(places(report.findings), ElementsAre("a.py:1", "b.py:1", "d.py:1", "f.py:2"));
    EXPECT_EQ(exit_code(report, false), 1);
    EXPECT_EQ(exit_code(report, true), 2);
    extracted();
    run();
    EXPECT_THAT(extracted(), UnorderedElementsAre("c.py", "c.py", "e.py"))
        << "neither is cached: together, which ends at c, then each alone";
}

TEST_F(PythonTest, AnUnchangedTreeIsNotJudgedAgain) {
    write_old("p/a.py", "fn one\n");
    write_old("p/b.py", "odd\nfn two  # mp-lint: disable=MP901\n");
    const Report first = run();
    EXPECT_EQ(judged, 1);
    const Report second = run();
    EXPECT_EQ(judged, 1) << "replayed";
    EXPECT_EQ(places(second.findings), places(first.findings));
    EXPECT_EQ(places(second.suppressed), places(first.suppressed));
    EXPECT_EQ(second.findings.at(0).message, "a function");
    EXPECT_EQ(second.findings.at(0).rule, "MP901");
    ASSERT_THAT(second.units, SizeIs(2));
    EXPECT_EQ(second.units[1].state, UnitState::partial);
    EXPECT_TRUE(second.units[1].cached);
    EXPECT_EQ(second.units[0].coverage, first.units[0].coverage);
}

TEST_F(PythonTest, WhateverChangesIsSeen) {
    write_old("p/a.py", "fn one\n");
    write_old("p/b.py", "fn two\n");
    run();
    write_old("p/b.py", "fn six\n", 500);  // same size, other content and time
    EXPECT_THAT(places(run().findings), SizeIs(2));
    EXPECT_EQ(judged, 2);
    write_old("p/c.py", "fn new\n");
    EXPECT_THAT(places(run().findings), SizeIs(3));
    fs::remove(path("p/a.py"));
    EXPECT_THAT(places(run().findings), ElementsAre("b.py:1", "c.py:1"));
    EXPECT_EQ(judged, 4);
    options_.device = "hpu";
    run();
    EXPECT_EQ(judged, 5) << "other settings are another run";
    options_.use_cache = false;
    run();
    EXPECT_EQ(judged, 6);
}

TEST_F(PythonTest, OneEditedFileIsExtractedAlone) {
    write_old("p/a.py", "fn one\n");
    write_old("p/b.py", "fn two\n");
    run();
    extracted();
    write_old("p/b.py", "fn three\nfn four\n", 500);
    EXPECT_THAT(places(run().findings), ElementsAre("a.py:1", "b.py:1", "b.py:2"));
    EXPECT_THAT(extracted(), ElementsAre("b.py"));
    run();
    EXPECT_THAT(extracted(), IsEmpty());
}

TEST_F(PythonTest, AnEditThatOnlyMovesLinesIsNotJudgedAgain) {
    write_old("p/a.py", "fn one\nfn two\n");
    write_old("p/b.py", "fn three\n");
    run();
    write_old("p/a.py", "\n# more\nfn one\n\nfn two\n", 500);
    EXPECT_THAT(places(run().findings), ElementsAre("a.py:3", "a.py:5", "b.py:1"));
    EXPECT_EQ(judged, 1) << "replayed, on other lines";
    EXPECT_THAT(places(run().findings), ElementsAre("a.py:3", "a.py:5", "b.py:1"));
    write_old("p/a.py", "fn one\nfn two  # mp-lint: disable=MP901 -- as it must\n", 400);
    const Report silenced = run();
    EXPECT_THAT(places(silenced.findings), ElementsAre("a.py:1", "b.py:1"));
    EXPECT_THAT(silenced.suppressed, SizeIs(1)) << "comments are read from the text of now";
    EXPECT_EQ(judged, 1);
    write_old("p/a.py", "fn two\nfn one\n", 300);
    EXPECT_THAT(places(run().findings), SizeIs(3));
    EXPECT_EQ(judged, 2) << "another order is another program";
}

TEST_F(PythonTest, AnEditOfAFileThatNothingLeadsToIsNotJudged) {
    const std::string padding(3 << 20, '#');
    write_old("p/a.py", "fn half\n" + padding);
    write_old("p/b.py", "fn plain\n" + padding);
    write_old("p/c.py", "fn other\n" + padding);
    run();
    extracted();
    write_old("p/b.py", "fn plainer\nfn plain\n" + padding, 500);
    EXPECT_THAT(places(run().findings), ElementsAre("a.py:1"));
    EXPECT_EQ(judged, 1);
    EXPECT_THAT(extracted(), IsEmpty());
    write_old("p/b.py", "fn half\n" + padding, 400);
    EXPECT_THAT(places(run().findings), ElementsAre("a.py:1", "b.py:1"));
    EXPECT_EQ(judged, 2) << "now it speaks of precision";
    write_old("p/c.py", "fn other\n", 300);
    run();
    EXPECT_EQ(judged, 3) << "the tree is no longer large: every file counts";
}

TEST_F(PythonTest, ATouchedFileIsComparedByContent) {
    write_old("p/a.py", "fn one\n");
    run();
    extracted();
    set_age("p/a.py", 500);
    EXPECT_THAT(run().findings, SizeIs(1));
    EXPECT_THAT(extracted(), IsEmpty());
    EXPECT_EQ(judged, 1) << "the content is the same: replayed";
}

TEST_F(PythonTest, AFileWrittenJustNowIsNotTrustedByItsTime) {
    write("p/a.py", "fn one\n");
    struct stat before{};
    ::stat(path("p/a.py").c_str(), &before);
    run();
    write("p/a.py", "fn two\nfn");  // not of the same size: what follows restores that, too
    write("p/a.py", "fn six\n");
    const timespec times[2] = {before.st_atim, before.st_mtim};
    ::utimensat(AT_FDCWD, path("p/a.py").c_str(), times, 0);
    EXPECT_EQ(run().findings.at(0).function.str(), "six");
}

TEST_F(PythonTest, ADamagedPackIsMadeAnew) {
    write_old("p/a.py", "fn one\n");
    run();
    for (const auto& file : fs::directory_iterator(path("cache"))) {
        if (file.is_regular_file()) fs::resize_file(file, fs::file_size(file) / 2);
    }
    EXPECT_THAT(run().findings, SizeIs(1));
    extracted();
    write_old("p/b.py", "fn two\n");
    EXPECT_THAT(run().findings, SizeIs(2));
    EXPECT_THAT(extracted(), ElementsAre("b.py")) << "the pack is whole again";
}

TEST_F(PythonTest, ConfigurationFilesThatCodeNamesAreUnits) {
    write_old("p/ops.txt", "fn top\n");
    write_old("p/other.txt", "fn other\n");
    write_old("p/a/b/m.py", "fn ops.txt\n");
    options_.inputs = {"a"};
    EXPECT_THAT(places(run().findings), ElementsAre("a/b/m.py:1", "ops.txt:1"));
    run();
    EXPECT_EQ(judged, 1);
    write_old("p/ops.txt", "fn top\nfn more\n");
    EXPECT_THAT(places(run().findings), SizeIs(3)) << "it is an input like any other";
    write_old("p/a/ops.txt", "fn near\n");
    EXPECT_THAT(places(run().findings), ElementsAre("a/b/m.py:1", "a/ops.txt:1"))
        << "one that appears nearer is seen";
    options_.inputs = {"other.txt"};
    EXPECT_THAT(places(run().findings), ElementsAre("other.txt:1")) << "or it is named";
}

TEST_F(PythonTest, OfALargeTreeOnlyWhatMattersIsExtracted) {
    const std::string padding(3 << 20, '#');
    write_old("p/a.py", "fn half\n" + padding);
    write_old("p/b.py", "fn plain\n" + padding);
    write_old("p/c.py", "fn other\n" + padding);
    const Report report = run();
    EXPECT_THAT(places(report.findings), ElementsAre("a.py:1"));
    EXPECT_THAT(extracted(), ElementsAre("a.py"));
    EXPECT_EQ(report.files, 3u);
    write_old("p/b.py", "fn half\n" + padding, 500);
    EXPECT_THAT(places(run().findings), ElementsAre("a.py:1", "b.py:1"));
    EXPECT_THAT(extracted(), ElementsAre("b.py")) << "what is known of the others is kept";
    options_.inputs = {"c.py"};
    EXPECT_THAT(places(run().findings), ElementsAre("c.py:1")) << "alone it is no large tree";
}

TEST_F(PythonTest, AWholeTreeIsExtractedWhole) {
    const std::string padding(5 << 20, '#');
    write_old("p/a.py", "fn half\n" + padding);
    write_old("p/b.py", "fn plain\n" + padding);
    write_old("p/c.py", "dull\n");
    options_.use_cache = false;
    EXPECT_THAT(places(run().findings), ElementsAre("a.py:1"));
    options_.whole_tree = true;
    EXPECT_THAT(places(run().findings), ElementsAre("a.py:1", "b.py:1"));
    EXPECT_THAT(extracted(), UnorderedElementsAre("a.py", "a.py", "b.py", "c.py")) << "what seems dull, too";
}

TEST_F(PythonTest, PythonFactsSurviveNativeCode) {
    write_old("p/a.py", "fn one\n");
    write_old("p/c.py", "dull\n");
    run();
    EXPECT_THAT(extracted(), ElementsAre("a.py"));
    write_old("p/b.cu", "fn two\n");
    EXPECT_THAT(places(run().findings), ElementsAre("a.py:1", "b.cu:1"));
    EXPECT_THAT(extracted(), UnorderedElementsAre("b.cu", "c.py")) << "what seems dull has facts now";
    fs::remove(path("p/b.cu"));
    const Report alone = run();
    EXPECT_THAT(extracted(), IsEmpty());
    EXPECT_EQ(alone.units.at(1).coverage, Coverage{}) << "the dull file has none again";
}

TEST_F(PythonTest, AFileWithATriggerIsNeverDull) {
    parts_.is_relevant = [](std::string_view, std::string_view) { return false; };
    write("p/a.py", "fn half\n");
    write("p/b.py", "fn plain\n");
    EXPECT_THAT(places(run().findings), ElementsAre("a.py:1"));
}

TEST_F(PythonTest, ManyFilesMakeFewJobs) {
    for (int i = 0; i < 200; ++i) write("p/f" + std::to_string(i) + ".py", "fn one\n");
    const Report report = run();
    EXPECT_THAT(report.findings, SizeIs(200));
    EXPECT_EQ(report.files, 200u);
}

}  // namespace
}  // namespace mp::lint
