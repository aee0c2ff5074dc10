#include "analyzer/driver/lint.hpp"

#include <gmock/gmock.h>

#include "analyzer/driver/gather.hpp"
#include "analyzer/facts/text.hpp"
#include "tests/analyzer/driver/toy_front_end.hpp"

namespace mp::lint {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;
using testing::UnorderedElementsAre;

TEST_F(LintTest, FindsInFilesAndDirectories) {
    write("p/a.cu", "fn one\nfn fine\nfn two\n");
    write("p/src/b.cpp", "fn three\n");
    options_.inputs = {"a.cu", "src"};
    const Report report = run();
    EXPECT_THAT(places(report.findings), ElementsAre("a.cu:1", "a.cu:3", "src/b.cpp:1"));
    EXPECT_EQ(report.files, 2u);
    EXPECT_EQ(exit_code(report, false), 1);
    EXPECT_EQ(report.rules[0].page, "# MP901 toy-rule\n");
}

TEST_F(LintTest, NoInputMeansTheWorkingDirectory) {
    write("p/a.cu", "fn fine\n");
    const Report report = run();
    EXPECT_EQ(report.files, 1u);
    EXPECT_EQ(exit_code(report, true), 0);
}

TEST_F(LintTest, NothingToAnalyseIsAnError) {
    EXPECT_THAT(error(), HasSubstr("nothing to analyse"));
    options_.inputs = {"gone.cu"};
    EXPECT_THAT(error(), HasSubstr("gone.cu"));
}

TEST_F(LintTest, AFaultyUnitCostsItselfOnly) {
    write("p/a.cu", "crash\n");
    write("p/b.cu", "hang\n");
    write("p/c.cu", "fn seen\n");
    write("p/d.cu", "odd\nfn half\n");
    options_.timeout = 0.5;
    const Report report = run();
    ASSERT_THAT(report.units, SizeIs(4));
    EXPECT_EQ(report.units[0].state, UnitState::crashed);
    EXPECT_THAT(report.units[0].message, HasSubstr("signal 6"));
    EXPECT_EQ(report.units[1].state, UnitState::timeout);
    EXPECT_THAT(places(report.findings), ElementsAre("c.cu:1", "d.cu:2"));
    EXPECT_EQ(report.files, 2u);
    EXPECT_EQ(exit_code(report, false), 1);
    EXPECT_EQ(exit_code(report, true), 2);
}

TEST_F(LintTest, WhenNoUnitCouldBeAnalysedTheExitIsTwo) {
    write("p/a.cu", "fail\n");
    EXPECT_EQ(exit_code(run(), false), 2);
}

TEST_F(LintTest, NotesNeverCount) {
    Report report;
    report.findings = {{.rule = "MP901",
                        .severity = Severity::note,
                        .span = {},
                        .message = {},
                        .fix = {},
                        .notes = {},
                        .function = {}}};
    EXPECT_EQ(exit_code(report, true), 0);
}

TEST_F(LintTest, CommentsSilenceAndAreCounted) {
    write("p/a.cu", "fn one  // mp-lint: disable=MP901 why\nfn two  // NOLINT(toy-rule)\nfn three\n");
    const Report report = run();
    EXPECT_THAT(places(report.findings), ElementsAre("a.cu:3"));
    EXPECT_THAT(places(report.suppressed), ElementsAre("a.cu:1", "a.cu:2"));
}

TEST_F(LintTest, TheSecondRunExtractsOnlyWhatChanged) {
    write("p/a.cu", "fn one\ninclude x.h\n");
    write("p/b.cu", "fn two\n");
    write("p/x.h", "fn inner\n");
    const auto first = places(run().findings);
    EXPECT_THAT(extracted(), UnorderedElementsAre("a.cu", "b.cu"));
    EXPECT_EQ(places(run().findings), first);
    EXPECT_THAT(extracted(), IsEmpty());
    write("p/x.h", "fn other\nfn more\n");
    EXPECT_THAT(places(run().findings), ElementsAre("a.cu:1", "b.cu:1", "x.h:1", "x.h:2"));
    EXPECT_THAT(extracted(), ElementsAre("a.cu"));
    options_.use_cache = false;
    run();
    EXPECT_THAT(extracted(), SizeIs(2));
}

TEST_F(LintTest, OtherFlagsOrAnotherVersionAreOtherUnits) {
    write("p/a.cu", "fn one\n");
    run();
    options_.flags = {"-DX"};
    run();
    EXPECT_THAT(extracted(), SizeIs(2));
    parts_.version = [] { return std::string("toy 2"); };
    run();
    EXPECT_THAT(extracted(), SizeIs(1));
}

TEST_F(LintTest, CrashesAndTimeoutsAreNotCached) {
    write("p/a.cu", "crash\n");
    run();
    run();
    EXPECT_THAT(extracted(), SizeIs(2));
}

TEST_F(LintTest, HeadersAreUnitsOnlyWhenNoSourceReachesThem) {
    write("p/a.cu", "include used.h\n");
    write("p/used.h", "fn used\n");
    write("p/lonely.cuh", "fn lonely\n");
    EXPECT_THAT(places(run().findings), ElementsAre("lonely.cuh:1", "used.h:1"));
    EXPECT_THAT(extracted(), UnorderedElementsAre("a.cu", "lonely.cuh"));
}

TEST_F(LintTest, EveryCommandOfTheDatabaseIsAUnit) {
    write("p/a.cu", "fn one\n");
    const std::string file = path("p/a.cu");
    g_database.commands = {{.file = file, .directory = path("p"), .arguments = {"nvcc", "-DA", file}},
                           {.file = "a.cu", .directory = path("p"), .arguments = {"nvcc", "-DB", "a.cu"}},
                           {.file = file, .directory = path("p"), .arguments = {"nvcc", "-DA", file}}};
    const Report report = run();
    EXPECT_THAT(report.units, SizeIs(2)) << "two variants, the third command is the first again";
    EXPECT_THAT(report.findings, SizeIs(1));
    EXPECT_EQ(report.files, 1u);
    options_.flags.emplace();
    EXPECT_THAT(run().units, SizeIs(1)) << "flags after -- win over the database";
}

TEST_F(LintTest, ACommandIsFoundByAnyNameOfItsFile) {
    write("p/src/a.cu", "fn one\n");
    fs::create_directory_symlink("src", path("p/link"));
    g_database.commands = {
        {.file = "../src/./a.cu", .directory = path("p/build"), .arguments = {"nvcc", "-DA", "../src/a.cu"}},
        {.file = "link/a.cu", .directory = path("p"), .arguments = {"nvcc", "-DB", "link/a.cu"}}};
    EXPECT_THAT(run().units, SizeIs(2));
}

TEST_F(LintTest, AFileTheDatabaseMissesBorrowsItsNeighboursCommand) {
    write("p/src/a.cu", "fn one\n");
    write("p/src/b.cu", "fn two\n");
    const std::string file = path("p/src/a.cu");
    g_database.commands = {{.file = file, .directory = path("p"), .arguments = {"nvcc", "-Ideep", file}}};
    const Result<std::string> shown = show_command(options_, parts_);
    ASSERT_TRUE(shown);
    EXPECT_THAT(*shown, HasSubstr("nvcc -Ideep " + path("p/src/b.cu")));
    EXPECT_THAT(*shown, HasSubstr("nvcc -Ideep " + path("p/src/a.cu")));
}

TEST_F(LintTest, ThePythonFilesOfAShownCommandAreCounted) {
    write("p/a.py", "x = 1\n");
    const Result<std::string> shown = show_command(options_, parts_);
    ASSERT_TRUE(shown);
    EXPECT_EQ(*shown, "# 1 Python file without a command\n");
}

TEST_F(LintTest, ConfigurationExcludesAndIgnores) {
    write("p/a.cu", "fn one\ninclude vendor/v.h\n");
    write("p/vendor/b.cu", "fn two\n");
    write("p/vendor/v.h", "fn three\n");
    write("p/t/c.cu", "fn four\n");
    Config config;
    config.directory = path("p");
    config.exclude = {"vendor"};
    config.per_file_ignores = {{.pattern = "t/**", .rules = {"MP901"}}};
    apply_config(options_, config);
    EXPECT_THAT(places(run().findings), ElementsAre("a.cu:1"));
    EXPECT_THAT(extracted(), UnorderedElementsAre("a.cu", "c.cu"));
    options_.inputs = {"vendor/b.cu"};
    EXPECT_THAT(places(run().findings), ElementsAre("vendor/b.cu:1")) << "named files are spared";
}

TEST_F(LintTest, TheCommandLineWinsOverTheConfiguration) {
    Config config;
    config.directory = "/c";
    config.cuda = "stubs";
    config.jobs = 7;
    config.torch = "1.13";
    config.select = {"MP1"};
    options_.select = {"MP9"};
    set_cuda(options_, "kit");
    apply_config(options_, config);
    EXPECT_EQ(options_.cuda, CudaHeaders::toolkit);
    EXPECT_EQ(options_.cuda_path, path("p/kit"));
    EXPECT_EQ(options_.jobs, 2);
    EXPECT_EQ(options_.torch, "1.13");
    EXPECT_THAT(options_.select, ElementsAre("MP9"));
}

TEST_F(LintTest, AnUnknownTorchVersionIsAnError) {
    write("p/a.cu", "fn one\n");
    options_.torch = "nonsense";
    EXPECT_THAT(error(), Not(IsEmpty()));
}

TEST_F(LintTest, OpListsOfHmpStandBesideTheConfiguration) {
    write("p/a.cu", "fn one\n");
    write("p/lists/bf16.txt", "linear\n");
    Config config;
    config.directory = path("p");
    config.hmp = {.bf16 = "lists/bf16.txt", .fp32 = "lists/fp32.txt"};
    apply_config(options_, config);
    EXPECT_EQ(options_.hmp.bf16, path("p/lists/bf16.txt"));
    EXPECT_THAT(error(), HasSubstr("lists/fp32.txt")) << "a list that is not there";
    write("p/lists/fp32.txt", "softmax\n");
    EXPECT_THAT(run().findings, SizeIs(1));
}

TEST_F(LintTest, AnUnusableCacheIsAWarning) {
    write("p/a.cu", "fn one\n");
    options_.cache_directory = "/proc/no/such";
    const Report report = run();
    EXPECT_THAT(report.findings, SizeIs(1));
    EXPECT_THAT(report.warnings, ElementsAre(StartsWith("no cache:")));
}

TEST_F(LintTest, FactsComeInTheOrderOfTheInputs) {
    write("p/a.cu", "fn one\n");
    write("p/b.cu", "fn two\n");
    options_.inputs = {"b.cu", "a.cu"};
    const auto units = run_facts(options_, parts_);
    ASSERT_TRUE(units);
    ASSERT_THAT(*units, SizeIs(2));
    EXPECT_EQ((*units)[0].path.str(), path("p/b.cu"));
}

TEST_F(LintTest, ProgressNamesEveryUnitOnce) {
    for (const char* name : {"p/a.cu", "p/b.cu", "p/c.cu"}) write(name, "fn fine\n");
    std::vector<std::size_t> done;
    options_.progress = [&](std::size_t n, std::size_t all, const std::string&) {
        done.push_back(n);
        EXPECT_EQ(all, 3u);
    };
    run();
    EXPECT_THAT(done, ElementsAre(1, 2, 3));
}

}  // namespace
}  // namespace mp::lint
