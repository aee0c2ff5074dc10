#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyzer/driver/gather.hpp"

namespace mp::lint {

// What a run found, before suppressions, configuration and baselines sort it out.
struct Replayed {
    std::vector<UnitResult> units;
    Findings findings;
};

// Findings of the last run over the same inputs, with the same settings and the same binary. They are
// true again when the same files are found and none has changed: then nothing is read, linked or
// judged. For runs over Python alone: what C++ units depend on is not known before their facts are.
class Replay {
public:
    Replay(const Plan&, const LintOptions&, const std::vector<const Rule*>& rules);

    std::optional<Replayed> load();
    // `files` are those read, the plan's first; `absent` are paths that were looked for in vain. Runs
    // that lost a unit are not kept.
    void save(const std::vector<ReadFile>& files, const std::vector<std::string>& absent,
              const std::vector<UnitResult>& units, const Findings& findings);

private:
    struct Inputs {
        std::vector<ReadFile> files;
        std::vector<std::string> absent;
        bool touched = false;  // an equal file has another time than it had
    };
    bool same_inputs(class RecordReader&, Inputs& now) const;

    const Plan& plan_;
    const std::vector<const Rule*>& rules_;
    std::string directory_;
    std::string path_;  // empty: this run is not one that is kept
};

}  // namespace mp::lint
