#include "kernels/base/text.hpp"

#include <gtest/gtest.h>

#include "tests/kernels/base/unsafe_text.hpp"

namespace mp {
namespace {

TEST(Text, InvalidUtf8IsSeen) {
    for (const char* bad : {"\xff", "\xc3\x28", "\xed\xa0\x80", "\xc0\x80", "\xf4\x90\x80\x80", "\xe2\x82"}) {
        EXPECT_FALSE(decode_utf8(bad).valid) << bad;
        EXPECT_EQ(decode_utf8(bad).length, 1u) << bad;
        EXPECT_EQ(decode_utf8(bad).value, static_cast<unsigned char>(bad[0])) << bad;
    }
    EXPECT_EQ(decode_utf8("\xc3\xa9").value, 0xE9u);
    EXPECT_EQ(decode_utf8("\xf0\x9f\x98\x80").value, 0x1F600u);
    EXPECT_EQ(decode_utf8("\xf0\x9f\x98\x80x").length, 4u);
    EXPECT_EQ(decode_utf8(std::string_view("\0", 1)).value, 0u);
}

TEST(Text, BytesThatAreNotUtf8AreReplaced) {
    EXPECT_EQ(valid_utf8("a\xff"
                         "b\xe2\x82"),
              "a\xef\xbf\xbd"
              "b\xef\xbf\xbd\xef\xbf\xbd");
    EXPECT_EQ(valid_utf8("größe 数"), "größe 数");
}

TEST(Text, ACutKeepsWholeCharacters) {
    const std::string_view text = "aé数\U0001F600b";
    const std::string_view starts[] = {"", "a", "a", "aé", "aé", "aé", "aé数"};
    for (std::size_t i = 0; i < std::size(starts); ++i) EXPECT_EQ(utf8_prefix(text, i), starts[i]) << i;
    const std::string_view ends[] = {"", "b", "b", "b", "b", "\U0001F600b", "\U0001F600b", "\U0001F600b"};
    for (std::size_t i = 0; i < std::size(ends); ++i) EXPECT_EQ(utf8_suffix(text, i), ends[i]) << i;
    for (const std::size_t enough : {text.size(), text.size() + 1}) {
        EXPECT_EQ(utf8_prefix(text, enough), text);
        EXPECT_EQ(utf8_suffix(text, enough), text);
    }
    EXPECT_EQ(utf8_prefix("a\xf0\x9f", 2), "a") << "the text itself was cut";
    const std::string_view bytes = "\x80\x80\x80\x80\x80\x80\x80\x80";  // no character to keep whole
    EXPECT_EQ(utf8_prefix(bytes, 6), bytes.substr(0, 6));
    EXPECT_EQ(utf8_suffix(bytes, 6), bytes.substr(2));
}

TEST(Text, UnsafeCharactersAreSpelledOut) {
    for (const std::string_view unsafe : kUnsafeCharacters) {
        EXPECT_TRUE(is_unsafe(decode_utf8(unsafe).value)) << unsafe;
        const std::string shown = escape_controls(unsafe);
        EXPECT_EQ(shown[0], '\\') << unsafe;
        EXPECT_EQ(shown.find_first_not_of("\\xuU0123456789abcdef"), std::string::npos) << shown;
    }
    for (const std::string_view safe : kSafeCharacters) EXPECT_EQ(escape_controls(safe), safe);
    EXPECT_EQ(escape_controls("a\x1b[2Jb\n\t\r"), "a\\x1b[2Jb\\n\\t\\r");
    EXPECT_EQ(escape_controls("a\u202eb"), "a\\u202eb");
    EXPECT_EQ(escape_controls("\U000e0041"), "\\U000e0041");
    EXPECT_EQ(escape_controls("a\xc2\x9b"
                              "b"),
              "a\\x9bb")
        << "CSI as one C1 character";
    EXPECT_EQ(escape_controls("\xff"), "\\xff");
}

TEST(Text, WidthsAreThoseOfATerminal) {
    EXPECT_EQ(display_width('a'), 1);
    EXPECT_EQ(display_width(0xE9), 1);
    EXPECT_EQ(display_width(0x6570), 2);
    EXPECT_EQ(display_width(0x1F600), 2);
    EXPECT_EQ(display_width(0x301), 0) << "a combining mark";
    EXPECT_EQ(display_width(0xFE0F), 0) << "a variation selector";
}

}  // namespace
}  // namespace mp
