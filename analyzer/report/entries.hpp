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

// As text of Markdown; unsafe characters are spelled out first (\x1b).
std::string markdown_text(std::string_view text);

// "3 notes; --notes shows them"
std::string notes_to_show(const Report&);

}  // namespace mp::lint
