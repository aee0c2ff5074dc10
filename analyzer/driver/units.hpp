#pragma once

// One unit at a time: its key, what is known from its text, and its facts as a record of the store.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/cache/store.hpp"
#include "analyzer/driver/front_ends.hpp"
#include "analyzer/driver/options.hpp"
#include "analyzer/driver/plan.hpp"
#include "analyzer/driver/python_scan.hpp"
#include "analyzer/report/report.hpp"

namespace mp::lint {

// A compile command, or a Python file.
struct PlannedUnit {
    std::string key;                    // in the store
    std::optional<Invocation> command;  // nothing: it is a Python file
    PythonFile python{};

    const std::string& path() const { return command ? command->file : python.path; }
    Language language() const { return command ? command->language : Language::python; }
};

class UnitPlanner {
public:
    UnitPlanner(const Plan&, const LintOptions&, const FrontEnds&);

    PlannedUnit command(const CompileCommand&);
    PlannedUnit python(PythonFile) const;
    // One unit per command of the plan. A database may name one compilation twice (two targets with
    // equal flags).
    std::vector<PlannedUnit> commands();

    const Plan& plan;
    const LintOptions& options;
    const FrontEnds& front_ends;
    const Seeds seeds;

private:
    friend class UnitExtractor;
    ExtractOptions extract_;
    std::string version_;  // of the C++ extractor; computed on first use, because it hashes all our headers
};

// Runs in a worker process.
class UnitExtractor {
public:
    explicit UnitExtractor(const UnitPlanner& planner)
        : planner_(planner), front_ends_(planner.front_ends), options_(planner.extract_) {}

    // Writes the record of the unit, with its facts.
    void extract(SegmentWriter& out, const PlannedUnit& unit);

private:
    void extract_command(SegmentWriter&, const PlannedUnit&);
    void extract_python(SegmentWriter&, const PlannedUnit&);

    const UnitPlanner& planner_;
    const FrontEnds& front_ends_;
    const ExtractOptions& options_;
    FileStates files_;
};

// What the text of a Python file shows before it is parsed.
struct Scan {
    bool is_readable = false;
    StoredHead head;  // without facts
};

Scan scan_file(const PlannedUnit&, const UnitPlanner&);

// Whether a Python file without any word of the front end can matter: as a wrapper, where rules look for the Python
// calls of native code.
bool may_all_be_relevant(const Plan&, const LintOptions&);

// A unit without facts.
Unit empty_unit(const PlannedUnit&, UnitState, std::string_view message);
UnitResult result_of(const PlannedUnit&, const Unit&);

// The directory for facts and findings.
std::string cache_directory(const LintOptions&);

// Size and time of the running binary: a rebuilt mp-lint may extract more from the same file.
std::string own_binary();

ExtractOptions extract_options(const LintOptions&, const Plan&);

}  // namespace mp::lint
