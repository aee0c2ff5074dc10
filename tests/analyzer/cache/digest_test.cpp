// Which edits change the hash of a unit's facts, and which only move lines.

#include "analyzer/cache/codec.hpp"

#include <string>

#include <gmock/gmock.h>

#include "analyzer/facts/text.hpp"

namespace mp::lint {
namespace {

using testing::ElementsAre;

// The digest in a segment, after a record of `before`.
Digest digest_of(const Unit& unit, const Unit& before = {}) {
    SegmentWriter writer;
    for (const Unit* u : {&before, &unit}) {
        writer.unit(*u);
        writer.end_record();
    }
    const std::string bytes = writer.take();
    Segment segment;
    EXPECT_TRUE(segment.open(bytes));
    return RecordReader(segment, segment.record(1)).digest();
}

std::vector<std::string> lines_of(const Digest& digest) {
    std::vector<std::string> out;
    for (const Line& l : digest.lines)
        out.push_back(std::string(l.file.str()) + ":" + std::to_string(l.line));
    return out;
}

// Two calls of a function at `line`; the second is given a lambda written in its own line.
Unit unit(int line, int second, std::string_view constant = "1e-08", std::string_view path = "/m.py") {
    const std::string one = std::to_string(line), two = std::to_string(second);
    const std::string lambda = "m.f.<lambda:1>";
    auto parsed = parse_facts(
        "facts 2\nunit " + std::string(path) + " language=python\n" + "  coverage functions=" + one +
        " statements=7\n" + "  func " + one + ":5-6 m.f kind=python\n" + "    call " + one +
        ":10-20 torch.full kind=function args=[{other constant=" + std::string(constant) + " span=" + one +
        ":15-19}]\n" + "    call " + two + ":3-20 map kind=function lambdas=[" + lambda + "]\n" + "  func " +
        two + ":9-15 " + lambda + " kind=lambda\n");
    EXPECT_TRUE(parsed);
    return parsed ? std::move(*parsed) : Unit{};
}

std::uint64_t hash(int line, int second, std::string_view constant = "1e-08",
                   std::string_view path = "/m.py") {
    return digest_of(unit(line, second, constant, path)).hash;
}

TEST(Digest, LinesAndCoverageAreNotHashed) {
    const Digest before = digest_of(unit(3, 4));
    const Digest after = digest_of(unit(5, 119));
    EXPECT_EQ(before.hash, after.hash);
    EXPECT_THAT(lines_of(before), ElementsAre("/m.py:3", "/m.py:4"));
    EXPECT_THAT(lines_of(after), ElementsAre("/m.py:5", "/m.py:119"));
}

TEST(Digest, OtherRecordsOfTheSegmentAreNotHashed) {
    EXPECT_EQ(digest_of(unit(3, 4), unit(9, 9, "2.0", "/n.py")).hash, hash(3, 4));
}

TEST(Digest, AnotherConstantOrFileIsAnotherHash) {
    EXPECT_EQ(hash(3, 4), hash(3, 4));
    EXPECT_NE(hash(3, 4), hash(3, 4, "1e-05"));
    EXPECT_NE(hash(3, 4), hash(3, 4, "1e-08", "/other.py"));
}

TEST(Digest, TheOrderOfLinesIsHashed) {
    EXPECT_NE(hash(3, 4), hash(4, 3)) << "swapped";
    EXPECT_NE(hash(3, 4), hash(4, 4)) << "now on one line";
    EXPECT_NE(hash(4, 4), hash(4, 5)) << "no longer on one line";
}

TEST(Digest, LinesOfAnotherFileMoveApart) {
    const Symbol main("/m.py"), header("/h.h");
    const auto with_header = [&](std::uint32_t line) {
        Unit u = unit(3, 4);
        u.functions.at(0).calls.at(1).span = {.file = header, .line = line, .column = 1, .end_line = line};
        return u;
    };
    const Digest before = digest_of(with_header(2)), after = digest_of(with_header(9));
    EXPECT_EQ(before.hash, after.hash);
    EXPECT_THAT(lines_of(after), testing::IsSupersetOf({"/m.py:3", "/m.py:4", "/h.h:9"}));
    Unit elsewhere = with_header(9);
    elsewhere.functions.at(0).calls.at(1).span.file = main;
    EXPECT_NE(digest_of(elsewhere).hash, after.hash);
}

}  // namespace
}  // namespace mp::lint
