#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyzer/report/report.hpp"

namespace mp::lint {

// What the writers of CI formats share.

// Most severe first, else in report order: what a consumer cuts off is then the least important.
std::vector<const Finding*> worst_first(const Findings&);

// "half-accumulator"; the id when the rule did not run.
std::string rule_name(const Report&, std::string_view id);

// "variance is held in fp16. Fix: keep it in float"
std::string message_with_fix(const Finding&);

// The same bytes as valid UTF-8: what is not is U+FFFD.
std::string valid_utf8(std::string_view text);

// As text or attribute of XML 1.0. Characters that XML does not allow, not even as references, are
// spelled out first (\x1b).
std::string xml_escaped(std::string_view text);

// As text of GitHub's and GitLab's Markdown: nothing becomes markup, a link or a mention.
std::string markdown_escaped(std::string_view text);

// "12 findings", "1 finding"
std::string counted(std::size_t n, std::string_view what);

}  // namespace mp::lint
