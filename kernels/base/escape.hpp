#pragma once

#include <string>
#include <string_view>

// Text as a part of another language. XML and Markdown want text that is already safe to show: the two tools spell
// unsafe characters differently.

namespace mp {

// As text or attribute of XML 1.0. U+FFFE and U+FFFF, which XML does not allow, become U+FFFD.
std::string xml_escaped(std::string_view safe);

// As text of GitHub's and GitLab's Markdown: nothing becomes markup, a link or a mention.
std::string markdown_escaped(std::string_view safe);

// As one word of a shell command; unchanged when it needs no quotes.
std::string shell_word(std::string_view);

}  // namespace mp
