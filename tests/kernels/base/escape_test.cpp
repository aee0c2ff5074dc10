#include "kernels/base/escape.hpp"

#include <gtest/gtest.h>

namespace mp {
namespace {

TEST(Escape, XmlHasNoMarkupAndNoForbiddenCharacters) {
    EXPECT_EQ(xml_escaped("<&\"'>"), "&lt;&amp;&quot;&apos;&gt;");
    EXPECT_EQ(xml_escaped("a\xef\xbf\xbf\xef\xbf\xbe\xef\xbf\xbd"), "a\ufffd\ufffd\ufffd");
    EXPECT_EQ(xml_escaped("\xef\xbf"), "\xef\xbf") << "cut off";
}

TEST(Escape, MarkdownHasNoMarkupNoLinksAndNoMentions) {
    EXPECT_EQ(markdown_escaped("<b> & @all"), "&lt;b&gt; &amp; &#64;all");
    EXPECT_EQ(markdown_escaped("[x](http://y) | `z` *b*"), "\\[x\\]\\(http\\:\\/\\/y\\) \\| \\`z\\` \\*b\\*");
    EXPECT_EQ(markdown_escaped("größe"), "größe");
}

TEST(Escape, ShellWordsAreQuotedOnlyWhereNeeded) {
    EXPECT_EQ(shell_word("./train.py"), "./train.py");
    EXPECT_EQ(shell_word("my run"), "'my run'");
    EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
    EXPECT_EQ(shell_word(""), "''");
    EXPECT_EQ(shell_word("$(reboot)"), "'$(reboot)'");
}

}  // namespace
}  // namespace mp
