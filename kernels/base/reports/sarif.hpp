#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

// The parts of a SARIF 2.1.0 log that do not depend on the tool. Both tools share one shape, so that a viewer
// merges their logs.

namespace mp::sarif {

using Json = nlohmann::ordered_json;

inline constexpr std::size_t kMostResults = 5000;  // GitHub keeps as many of a run
inline constexpr std::string_view kRoot = "%SRCROOT%";

// A run with "tool", "columnKind" and "automationDetails"; `tool` is "mp-lint" or "mp-trace".
Json run_of(std::string_view tool, Json driver);
Json log_of(Json run);

// A path below the project becomes relative to %SRCROOT%, an absolute one a file:// URI.
Json artifact(std::string_view path);

// "variance is held in fp16. Fix: keep it in float"
std::string message(const std::string& text, const std::string& fix);

Json tags();  // of every rule
Json notification(std::string_view level, std::string_view text);
Json invocation(bool successful, Json notifications);

// One line; bytes that are not UTF-8 are replaced.
std::string written(const Json&);

}  // namespace mp::sarif
