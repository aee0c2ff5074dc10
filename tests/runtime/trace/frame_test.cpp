#include "runtime/trace/frame.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "runtime/trace/bytes.hpp"

namespace mp::trace {
namespace {

TEST(Bytes, NumbersComeBack) {
    std::string out;
    ByteWriter to(out);
    const std::uint64_t numbers[] = {0, 1, 127, 128, 16383, 16384, std::numeric_limits<std::uint64_t>::max()};
    const std::int64_t signed_numbers[] = {0, -1, 1, std::numeric_limits<std::int64_t>::min(),
                                           std::numeric_limits<std::int64_t>::max()};
    for (const auto v : numbers) to.number(v);
    for (const auto v : signed_numbers) to.signed_number(v);
    to.f64(-0.0);
    to.text("abc");
    ByteReader from(out);
    for (const auto v : numbers) EXPECT_EQ(from.number(), v);
    for (const auto v : signed_numbers) EXPECT_EQ(from.signed_number(), v);
    EXPECT_TRUE(std::signbit(from.f64()));
    EXPECT_EQ(from.text(), "abc");
    EXPECT_TRUE(from.ok() && from.at_end());
    from.u8();
    EXPECT_FALSE(from.ok());
}

TEST(Bytes, ANumberLongerThan64BitsIsRefused) {
    ByteReader eleven(std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11));
    eleven.number();
    EXPECT_FALSE(eleven.ok());
    ByteReader overflow(std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10));
    overflow.number();
    EXPECT_FALSE(overflow.ok());
    ByteReader length(std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01 abc", 14));
    EXPECT_EQ(length.text(), "");
    EXPECT_FALSE(length.ok());
}

TEST(Frame, IsReadBackAndEveryFlippedBitIsSeen) {
    Packer packer;
    const std::string payload = "the payload of a small frame";
    const std::string good = packer.frame(FrameKind::note, 77, payload);
    const auto header = read_frame_header(good.data());
    ASSERT_TRUE(header);
    EXPECT_EQ(header->kind, static_cast<std::uint8_t>(FrameKind::note));
    EXPECT_EQ(header->sequence, 77u);
    EXPECT_EQ(header->stored, payload.size());
    EXPECT_EQ(good.substr(kFrameHeaderSize, payload.size()), payload);
    EXPECT_TRUE(frame_intact(good));
    for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
        std::string bad = good;
        bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
        EXPECT_FALSE(frame_intact(bad)) << bit;
        if (bit / 8 < kFrameHeaderSize) EXPECT_FALSE(read_frame_header(bad.data())) << bit;
    }
    for (std::size_t size = 0; size < good.size(); ++size) EXPECT_FALSE(frame_intact(good.substr(0, size)));
}

TEST(Frame, LongPayloadsArePackedAndIncompressibleOnesAreNot) {
    Packer packer;
    EXPECT_LT(packer.frame(FrameKind::step, 0, std::string(10000, 'a')).size(), 1000u);
    std::string noise(10000, '\0');
    std::uint64_t state = 88172645463325252u;
    for (char& c : noise) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        c = static_cast<char>(state);
    }
    EXPECT_EQ(packer.frame(FrameKind::step, 0, noise).size(), noise.size() + kFrameOverhead);
}

TEST(Frame, APayloadOverTheLimitIsRefused) {
    Packer packer;
    EXPECT_TRUE(packer.frame(FrameKind::step, 0, std::string(kMaxPayload + 1, 'a')).empty());
}

TEST(FileHeader, OfThisVersionIsGoodAndEveryFlippedBitIsSeen) {
    const std::string good = file_header();
    EXPECT_EQ(good.size(), kFileHeaderSize);
    EXPECT_EQ(check_file_header(good), HeaderState::good);
    for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
        std::string bad = good;
        bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
        EXPECT_EQ(check_file_header(bad), HeaderState::damaged) << bit;
    }
    EXPECT_EQ(check_file_header(good.substr(0, 31)), HeaderState::damaged);
}

}  // namespace
}  // namespace mp::trace
