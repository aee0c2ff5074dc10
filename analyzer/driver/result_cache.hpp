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
// apply. One rule decides when they are replayed: findings are valid for the hash of the settings, of the keys and
// fact hashes of the units of the program, in the order in which they are linked, and of what other files import.
// Lines are not part of the hash. Every place of a finding refers to its lines by their ordinals in a unit, so a replay
// reads the present lines from the tables of the units.
//
// unchanged() is a shortcut for the rule: if no input has changed, all facts and lines are the same, and the store is
// not even opened.
class ResultCache {
public:
    // An empty `directory` disables the cache.
    ResultCache(UnitPlanner&, const std::vector<const Rule*>& rules, const std::string& directory);

    // The results of the last run, if every input of it is unchanged.
    std::optional<CachedResults> unchanged(const std::vector<PlannedUnit>& commands);
    // The findings of the last run on their present lines, if the program has the same facts.
    std::optional<Findings> same_facts(const Gatherer&);
    // Does nothing if a unit was lost or its inputs are not known.
    void save(const std::vector<PlannedUnit>& commands, const Gatherer&, const Findings&) const;

private:
    std::optional<Findings> read_findings(const Gatherer* now);
    bool same_inputs(RecordReader&, const std::vector<PlannedUnit>& commands);

    UnitPlanner& planner_;
    const std::vector<const Rule*>& rules_;
    std::string path_;  // empty: nothing is kept
    std::string bytes_;
    Segment segment_;  // of bytes_
    bool is_open_ = false;
};

}  // namespace mp::lint
