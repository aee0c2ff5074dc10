#pragma once

#include <string_view>

namespace mp::lint {

// Shell patterns on paths with '/': `*` and `?` stay within one component, `**` crosses components, `[a-z]`
// is a set, `[!a]` its complement. Time is at most proportional to pattern length times text length.
bool glob_match(std::string_view pattern, std::string_view text);

// Matches a pattern with the rules of .gitignore: without '/' it may match any component, and a match of a
// directory covers everything below. `path` is relative to the directory of the configuration.
bool path_matches(std::string_view pattern, std::string_view path);

}  // namespace mp::lint
