#pragma once

// Files that were edited since the last run, and whether that changes anything for the others.

#include <cstddef>
#include <optional>
#include <vector>

#include "analyzer/cache/pack.hpp"
#include "analyzer/driver/gather.hpp"
#include "analyzer/driver/moved_facts.hpp"

namespace mp::lint {

struct EditedFile {
    std::size_t index = 0;  // in the plan
    ReadFile then;          // as it was in the last run
};

struct RereadFile {
    std::size_t index = 0;
    ReadFile now;
    UnitResult result;
    LineMap lines;
};

// Reads the edited files again and keeps what they say in the pack. `low_names` are those of the last
// run, see PythonReach. Nothing when one of the files now says something else, or leads to other files,
// or the pack no longer has what it said: then everything is to be linked and judged.
std::optional<std::vector<RereadFile>> reread_edited(const Plan&, const LintOptions&, const FrontEnds&,
                                                     FactsPack&, const std::vector<EditedFile>&,
                                                     const std::vector<std::uint64_t>& low_names);

}  // namespace mp::lint
