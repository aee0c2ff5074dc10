#pragma once

// A look at the text of a Python file, thousands of times cheaper than its tree: does it say anything of
// low precision itself, and what does it import.

#include <cstdint>
#include <string_view>
#include <vector>

namespace mp::lint {

// A word stands in it, outside of docstrings and comments, without which no rule has a finding unless
// another file brings in the dtype, the region or the scaler. Wrong towards "yes" at most.
bool mentions_precision(std::string_view text);

// Hashes of every name that an import statement brings in, sorted: the functions of another file are
// reached by their own names, their class's, or their module's.
std::vector<std::uint64_t> imported_names(std::string_view text);

}  // namespace mp::lint
