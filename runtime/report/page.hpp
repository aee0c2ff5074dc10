#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "runtime/fold/run_model.hpp"
#include "runtime/judge/judge.hpp"

namespace mp::trace {

// The report as one HTML file. It loads no other file, and a Content-Security-Policy with the hashes of its own
// scripts and styles blocks all others. The file is ASCII except for the text of dygraphs.
std::string html_page(const RunModel&, const Judgement&);

// The data of the page. Texts are escaped as for a terminal, and longer texts are cut in their middle to kPageText
// bytes.
inline constexpr std::size_t kPageText = 240;
nlohmann::ordered_json page_data(const RunModel&, const Judgement&);

// JSON as text that is safe inside a <script>: ASCII without '<', '>' and '&'.
std::string script_json(const nlohmann::ordered_json&);

}  // namespace mp::trace
