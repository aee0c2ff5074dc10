#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyzer/driver/gather.hpp"
#include "analyzer/driver/python_edits.hpp"

namespace mp::lint {

// What a run found, before suppressions, configuration and baselines sort it out.
struct Replayed {
    std::vector<UnitResult> units;
    Findings findings;
    std::vector<ReadFile> read;  // files that were read again
};

// What a run read.
struct RunInputs {
    std::vector<ReadFile> files;             // the plan's, then configuration files
    std::vector<std::string> absent;         // paths that were looked for in vain
    std::vector<std::uint64_t> low_names{};  // Gathered's
};

// Findings of the last run over the same inputs, with the same settings and the same binary. They are
// true again when the same files are found and none has changed, or a few have that say the same as
// before, on other lines perhaps: then nothing is linked or judged. For runs over Python alone: what
// C++ units depend on is not known before their facts are.
class Replay {
public:
    Replay(const Plan&, const LintOptions&, const FrontEnds&, const std::vector<const Rule*>& rules);

    // Edited files are compared with what the pack has of them, and kept there.
    std::optional<Replayed> load(FactsPack&);
    // Runs that lost a unit are not kept.
    void save(const RunInputs&, const std::vector<UnitResult>& units, const Findings& findings);

private:
    struct Inputs : RunInputs {
        std::vector<EditedFile> edited;  // their entries in `files` are those of the last run
        bool touched = false;            // an equal file has another time than it had
    };
    bool same_inputs(class RecordReader&, Inputs& now) const;
    bool same_file(std::size_t index, ReadFile& file, Inputs& now) const;
    bool catch_up(FactsPack&, Inputs& now, Replayed& last) const;

    const Plan& plan_;
    const LintOptions& options_;
    const FrontEnds& parts_;
    const std::vector<const Rule*>& rules_;
    std::string directory_;
    std::string path_;  // empty: this run is not one that is kept
};

}  // namespace mp::lint
