#include "analyzer/cache/codec.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "analyzer/cache/file_state.hpp"
#include "tests/analyzer/facts/full_unit.hpp"

namespace mp::lint {
namespace {

constexpr std::size_t kSizeAt = 4, kCheckAt = 8, kStringsAt = 16, kRecordsAt = 20;

void put_word(std::string& bytes, std::size_t at, std::uint32_t word) {
    std::memcpy(bytes.data() + at, &word, sizeof word);
}

// Forged, not damaged: its checksum fits.
void sign(std::string& bytes) {
    const std::uint64_t check = hash_bytes(std::string_view(bytes).substr(kStringsAt));
    std::memcpy(bytes.data() + kCheckAt, &check, sizeof check);
}

std::string segment() {
    SegmentWriter writer;
    writer.text("one");
    writer.number(300);
    writer.end_record();
    return writer.take();
}

TEST(Segment, RecordsComeBack) {
    const std::string bytes = segment();
    Segment read;
    ASSERT_TRUE(read.open(bytes));
    ASSERT_EQ(read.records(), 1u);
    RecordReader record(read, read.record(0));
    EXPECT_EQ(record.text(), "one");
    EXPECT_EQ(record.number(), 300u);
    EXPECT_TRUE(record.ok);
    (void)record.number();
    EXPECT_FALSE(record.ok);
}

std::string segment_of(const std::vector<Unit>& units) {
    SegmentWriter writer;
    for (const Unit& unit : units) {
        writer.unit(unit);
        writer.end_record();
    }
    return writer.take();
}

Unit read_back(RecordReader& record) {
    const Digest digest = record.digest();
    return record.unit(digest.lines);
}

TEST(Segment, EveryFactComesBack) {
    const Unit unit = full_unit();
    Unit places;
    for (const std::uint32_t line : {0u, 7u, ~0u, 1u}) {
        Function& f = places.functions.emplace_back();
        f.span = {.file = {}, .line = line, .column = ~line, .end_line = line / 2, .end_column = 3};
    }
    const std::string bytes = segment_of({unit, places, unit});
    Segment read;
    ASSERT_TRUE(read.open(bytes));
    for (const std::size_t i : {2, 1, 0}) {
        RecordReader record(read, read.record(i));
        EXPECT_EQ(read_back(record), i == 1 ? places : unit) << "record " << i;
        EXPECT_TRUE(record.ok);
    }
}

TEST(Segment, ARecordCutAnywhereIsReadWithinIt) {
    const std::string bytes = segment_of({full_unit()});
    Segment read;
    ASSERT_TRUE(read.open(bytes));
    const std::string_view whole = read.record(0);
    for (std::size_t size = 0; size < whole.size(); ++size) {
        const std::string cut(whole.substr(0, size));  // on the heap, for AddressSanitizer
        RecordReader record(read, cut);
        EXPECT_EQ(read_back(record), Unit{}) << size;
        EXPECT_FALSE(record.ok) << size;
    }
}

TEST(Segment, CountsThatItsSizeCannotHoldAreRefusedBeforeMemoryIsAskedFor) {
    for (const std::size_t at : {kStringsAt, kRecordsAt}) {
        std::string bytes = segment();
        put_word(bytes, at, 0xffffffff);
        sign(bytes);
        Segment read;
        EXPECT_FALSE(read.open(bytes)) << "count at " << at;
    }
}

TEST(Segment, AForgedEndOfATextOrRecordGivesNothing) {
    std::string bytes = segment();
    for (std::size_t at = kStringsAt; at + 4 <= bytes.size(); ++at) {
        std::string forged = bytes;
        put_word(forged, at, 0x7fffffff);
        sign(forged);
        Segment read;
        if (!read.open(forged)) continue;
        RecordReader record(read, read.record(0));
        EXPECT_LE(record.text().size(), bytes.size());
    }
    put_word(bytes, kSizeAt, 0xffffffff);
    EXPECT_FALSE(Segment().open(bytes));
}

}  // namespace
}  // namespace mp::lint
