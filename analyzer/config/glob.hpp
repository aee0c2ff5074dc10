#pragma once

#include <string_view>

namespace mp::lint {

// Shell patterns over paths with '/': `*` and `?` stay within one component, `**` crosses them,
// `[a-z]` is a set, `[!a]` its complement. Linear in pattern times text: no pattern is slow.
bool glob_match(std::string_view pattern, std::string_view text);

// A pattern as .gitignore reads it: without '/' it may match any component; a match of a directory
// covers everything below. `path` is relative to the directory of the configuration.
bool path_matches(std::string_view pattern, std::string_view path);

}  // namespace mp::lint
