#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "runtime/fold/run_model.hpp"
#include "runtime/judge/judge.hpp"

namespace mp::trace {

// The report as one HTML file: it loads nothing, and a Content-Security-Policy with the hashes of its own
// scripts and styles lets nothing else run. ASCII but for what dygraphs has in it.
std::string html_page(const RunModel&, const Judgement&);

// What the page draws. Texts are escaped as for a terminal and cut to kPageText bytes in their middle.
inline constexpr std::size_t kPageText = 240;
nlohmann::ordered_json page_data(const RunModel&, const Judgement&);

// JSON as text that can stand inside a <script>: no '<', '>', '&', and ASCII throughout.
std::string script_json(const nlohmann::ordered_json&);

}  // namespace mp::trace
