#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyzer/driver/gather.hpp"

namespace mp::lint {

struct CachedResults {
    std::vector<UnitResult> units;
    Findings findings;
};

// The findings of the last run with the same settings, before suppressions, configuration and baselines
// apply. Findings are valid for the hash of the settings and of the keys and facts of all
// units of the program. Lines are not part of the hash. Each place of a finding is also stored as a unit
// and the index of a line in that unit's table of lines, so it is re-anchored when lines have moved.
//
// If no input has changed at all, the facts are the same, and the store is not even opened.
class ResultCache {
public:
    // An empty `directory` disables the cache.
    ResultCache(UnitPlanner&, const std::vector<const Rule*>& rules, const std::string& directory);

    // The results of the last run, if every input of it is unchanged.
    std::optional<CachedResults> unchanged(const std::vector<PlannedUnit>& commands);
    // The slice of the last run; nullptr: there was none. Known after unchanged().
    const LastSlice* slice() const { return slice_ ? &*slice_ : nullptr; }
    // The findings of the last run on their present lines, if the program has the same facts.
    std::optional<Findings> with_same_facts(const Gatherer&);
    // Does nothing if a unit was lost or its inputs are not known.
    void save(const std::vector<PlannedUnit>& commands, const Gatherer&, const Findings&) const;

private:
    bool same_inputs(RecordReader&, const std::vector<PlannedUnit>& commands);

    UnitPlanner& planner_;
    const std::vector<const Rule*>& rules_;
    std::string path_;  // empty: nothing is kept
    std::string bytes_;
    Segment segment_;  // of bytes_
    bool is_open_ = false;
    std::optional<LastSlice> slice_;
};

}  // namespace mp::lint
