// When an edit changed nothing but lines, and what becomes of findings then.

#include "analyzer/driver/moved_facts.hpp"

#include <string>

#include <gmock/gmock.h>

#include "analyzer/facts/text.hpp"

namespace mp::lint {
namespace {

// Two calls of a function at `line`; the second is given a lambda written in its own line.
Unit unit(int line, int second, std::string_view constant = "1e-08", std::string_view path = "/m.py") {
    const std::string one = std::to_string(line), two = std::to_string(second);
    const std::string lambda = "m.f.<lambda:" + two + ":9>";
    auto parsed = parse_facts(
        "facts 2\nunit " + std::string(path) + " language=python\n" + "  coverage functions=" + one +
        " statements=7\n" + "  func " + one + ":5-6 m.f kind=python\n" + "    call " + one +
        ":10-20 torch.full kind=function args=[{other constant=" + std::string(constant) + " span=" + one +
        ":15-19}]\n" + "    call " + two + ":3-20 map kind=function lambdas=[" + lambda + "]\n" + "  func " +
        two + ":9-15 " + lambda + " kind=lambda\n");
    EXPECT_TRUE(parsed);
    return parsed ? std::move(*parsed) : Unit{};
}

TEST(MovedFacts, LinesMoveAndWhatIsCountedMayDiffer) {
    const auto lines = moved_lines(unit(3, 4), unit(5, 9));
    ASSERT_TRUE(lines);
    EXPECT_EQ(lines->of(3), 5u);
    EXPECT_EQ(lines->of(4), 9u);
    EXPECT_EQ(lines->of(5), std::nullopt) << "no fact spoke of it";
}

TEST(MovedFacts, AnotherConstantIsAnotherProgram) {
    EXPECT_TRUE(moved_lines(unit(3, 4), unit(3, 4)));
    EXPECT_FALSE(moved_lines(unit(3, 4), unit(3, 4, "1e-05")));
    EXPECT_FALSE(moved_lines(unit(3, 4), unit(3, 4, "1e-08", "/other.py")));
}

TEST(MovedFacts, TheOrderOfLinesMustStay) {
    EXPECT_FALSE(moved_lines(unit(3, 4), unit(4, 3))) << "swapped";
    EXPECT_FALSE(moved_lines(unit(3, 4), unit(4, 4))) << "now on one line";
    EXPECT_FALSE(moved_lines(unit(4, 4), unit(4, 5))) << "no longer on one line";
}

TEST(MovedFacts, FindingsMoveWithTheirNotesAndEdits) {
    const auto lines = moved_lines(unit(3, 4), unit(5, 9));
    ASSERT_TRUE(lines);
    const Symbol file("/m.py"), other("/other.py");
    const auto at = [](Symbol in, std::uint32_t line) {
        return SourceSpan{.file = in, .line = line, .column = 1, .end_line = line, .end_column = 2};
    };
    Finding f;
    f.span = at(file, 3);
    f.notes = {{at(other, 4), "there"}, {at(file, 4), "here"}};
    f.edits = {{at(file, 4), "x"}};
    ASSERT_TRUE(move_finding(*lines, file, f));
    EXPECT_EQ(f.span, at(file, 5));
    EXPECT_EQ(f.notes[0].span, at(other, 4));
    EXPECT_EQ(f.notes[1].span, at(file, 9));
    EXPECT_EQ(f.edits[0].at, at(file, 9));
    f.span = at(file, 77);
    EXPECT_FALSE(move_finding(*lines, file, f)) << "nobody knows where line 77 went";
    f.span = at(other, 77);
    f.notes.clear();
    f.edits.clear();
    EXPECT_TRUE(move_finding(*lines, file, f));
    f.message = "m.f.<lambda:4:9> runs here";
    EXPECT_FALSE(move_finding(*lines, file, f)) << "its words hold a line";
}

}  // namespace
}  // namespace mp::lint
