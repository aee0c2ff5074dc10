#pragma once

#include <string>

namespace mp::trace {

// Runs `tool summary directory` with the process's stderr and waits for it, ten seconds at most. The
// program cannot notice the child: it raises no SIGCHLD, no wait() of the program collects it, and it inherits
// neither our preload nor any descriptor except the standard ones.
void print_summary(const std::string& tool, const std::string& directory);

}  // namespace mp::trace
