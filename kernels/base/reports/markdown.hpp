#pragma once

#include <string>
#include <string_view>

// The table of findings for a step summary or a comment of GitHub and GitLab. Cells are Markdown already.

namespace mp::markdown {

inline constexpr std::string_view kTableHead = "| | rule | where | what | fix |\n|---|---|---|---|---|\n";

inline std::string row(std::string_view severity, const std::string& rule, const std::string& where,
                       const std::string& what, const std::string& fix) {
    return "| " + std::string(severity) + " | " + rule + " | " + where + " | " + what + " | " + fix + " |\n";
}

}  // namespace mp::markdown
