#include "analyzer/adopt/baseline.hpp"

#include <gmock/gmock.h>

#include "tests/analyzer/driver/temporary_tree.hpp"

namespace mp::lint {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// A run over these files, with one finding per line that contains "bad".
Report run(const std::map<std::string, std::string>& files) {
    Report r;
    r.working_directory = r.project_root = "/p";
    r.rules = {{"MP401", "half-accumulator", Severity::error, ""}};
    for (const auto& [path, text] : files) {
        r.sources.add(path, text);
        UnitResult unit;
        unit.path = path;
        r.units.push_back(unit);
        for (std::uint32_t n = 1; n <= r.sources.line_count(path); ++n) {
            if (r.sources.line(path, n).find("bad") == std::string_view::npos) continue;
            r.findings.push_back({.rule = "MP401",
                                  .severity = Severity::error,
                                  .span = {.file = Symbol(path), .line = n},
                                  .message = "m",
                                  .fix = {},
                                  .notes = {},
                                  .function = Symbol(path + ".f")});
        }
    }
    return r;
}

// The files of the run and "/p/elsewhere.py" exist.
BaselineMatch match(const Baseline& baseline, const Report& report) {
    return match_baseline(baseline, report, [&](const std::string& path) {
        return path == "/p/elsewhere.py" || report.sources.has(path);
    });
}

std::vector<std::string> names(const Baseline& baseline) {
    std::vector<std::string> out;
    for (const BaselineEntry& e : baseline) out.push_back(e.path + " " + std::to_string(e.count));
    return out;
}

TEST(Baseline, WhatIsInItIsPreexisting) {
    const Report before = run({{"/p/a.py", "bad\n"}});
    const Report after = run({{"/p/a.py", "new = 1\n\n  bad\nbad 2\n"}});
    const BaselineMatch m = match(make_baseline(before), after);
    EXPECT_THAT(m.preexisting, SizeIs(1)) << "lines above and blanks do not matter";
    ASSERT_THAT(m.introduced, SizeIs(1));
    EXPECT_EQ(m.introduced[0].span.line, 4u);
    EXPECT_THAT(m.fixed, IsEmpty());
}

TEST(Baseline, EqualOnesAreCounted) {
    const Baseline baseline = make_baseline(run({{"/p/a.py", "bad\nbad\n"}}));
    EXPECT_THAT(names(baseline), ElementsAre("a.py 2"));
    EXPECT_THAT(match(baseline, run({{"/p/a.py", "bad\nbad\nbad\n"}})).introduced, SizeIs(1));
    const BaselineMatch fewer = match(baseline, run({{"/p/a.py", "bad\n"}}));
    EXPECT_THAT(names(fewer.fixed), ElementsAre("a.py 1"));
    EXPECT_THAT(names(fewer.remaining), ElementsAre("a.py 1"));
}

TEST(Baseline, AMovedFileIsRecognisedByItsCode) {
    const Baseline baseline = make_baseline(run({{"/p/a.py", "bad\n"}}));
    const BaselineMatch moved = match(baseline, run({{"/p/sub/b.py", "bad\n"}}));
    EXPECT_THAT(moved.introduced, IsEmpty());
    EXPECT_THAT(moved.fixed, IsEmpty());
    EXPECT_THAT(names(moved.remaining), ElementsAre("sub/b.py 1"));
    const BaselineMatch copied = match(baseline, run({{"/p/a.py", "bad\n"}, {"/p/sub/b.py", "bad\n"}}));
    EXPECT_THAT(copied.introduced, SizeIs(1)) << "a copy is new";
    const BaselineMatch other = match(baseline, run({{"/p/a.py", "\n"}, {"/p/b.py", "bad\n"}}));
    EXPECT_THAT(other.introduced, SizeIs(1)) << "fixed here, made anew there";
    EXPECT_THAT(names(other.fixed), ElementsAre("a.py 1"));
}

TEST(Baseline, WhatWasNotJudgedIsNotFixed) {
    Baseline baseline = make_baseline(run({{"/p/a.py", "bad\n"}, {"/p/elsewhere.py", "bad\n"}}));
    Report part = run({{"/p/a.py", "\n"}});
    EXPECT_THAT(names(match(baseline, part).fixed), ElementsAre("a.py 1"));
    EXPECT_THAT(names(match(baseline, part).remaining), ElementsAre("elsewhere.py 1"));
    part.units[0].state = UnitState::partial;
    EXPECT_THAT(match(baseline, part).fixed, IsEmpty());
    part.units[0].state = UnitState::ok;
    part.rules.clear();
    EXPECT_THAT(match(baseline, part).fixed, IsEmpty());
}

TEST(Baseline, AFileThatIsGoneWasFixed) {
    const Baseline baseline = make_baseline(run({{"/p/a.py", "bad\n"}}));
    EXPECT_THAT(names(match(baseline, run({{"/p/b.py", "\n"}})).fixed), ElementsAre("a.py 1"));
}

TEST(Baseline, PrintsSortedAndReadsBack) {
    const Baseline baseline = make_baseline(run({{"/p/b.py", "bad\n"}, {"/p/a\"\n\xff.py", "bad\nbad x\n"}}));
    const std::string text = print_baseline(baseline);
    const Result<Baseline> back = parse_baseline(text, "b.json");
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(*back, baseline);
    EXPECT_EQ(print_baseline(*back), text);
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3 + 3 + 2) << "an entry is a line";
}

TEST(Baseline, WhatIsNoneIsSaid) {
    for (const char* text : {"", "[]", "{\"version\": 2, \"entries\": []}", "{\"version\": 1}",
                             "{\"version\": 1, \"entries\": [{}]}", "{\"version\": 1, \"entries\": [3]}"}) {
        const Result<Baseline> read = parse_baseline(text, "b.json");
        ASSERT_FALSE(read) << text;
        EXPECT_THAT(read.error().message, HasSubstr("b.json: is not a baseline"));
    }
    EXPECT_THAT(load_baseline("/no/such.json").error().hint, HasSubstr("baseline make"));
}

using BaselineFile = TemporaryTree;

TEST_F(BaselineFile, ReportsSplitAndStaleEntriesAreAWarning) {
    write("a.py", "bad\n");
    write("b.py", "\n");
    const auto report = [this](const char* b) {
        Report r = run({{path("a.py"), "bad\n"}, {path("b.py"), b}});
        r.project_root = path();
        return r;
    };
    const Baseline baseline = make_baseline(report("bad\n"));
    Report now = report("\nbad too\n");
    apply_baseline(now, baseline, "base.json");
    EXPECT_THAT(now.findings, SizeIs(1));
    EXPECT_THAT(now.baselined, SizeIs(1));
    EXPECT_TRUE(now.used_baseline);
    EXPECT_THAT(now.warnings, ElementsAre("base.json: 1 entry is no longer found; 'mp-lint "
                                          "baseline update base.json' removes them"));
}

TEST(BaselineDiff, SaysWhatCameAndWhatWent) {
    const Baseline baseline = make_baseline(run({{"/p/a.py", "bad\nbad\n"}}));
    const Report now = run({{"/p/a.py", "\nbad new\n"}});
    EXPECT_EQ(baseline_diff(match(baseline, now), now),
              "+ a.py:2: error: m [MP401]\n- a.py: MP401 in /p/a.py.f, 2 times\n"
              "1 introduced, 2 fixed, 0 preexisting\n");
}

}  // namespace
}  // namespace mp::lint
