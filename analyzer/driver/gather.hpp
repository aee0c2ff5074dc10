#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/cache/store.hpp"
#include "analyzer/driver/pool.hpp"
#include "analyzer/driver/python_reach.hpp"
#include "analyzer/driver/units.hpp"

namespace mp::lint {

struct GatheredUnit {
    PlannedUnit planned;
    StoredHead head;
    UnitResult result;
    Unit unit;                // valid if `has_unit`
    bool has_unit = false;    // its facts are in memory
    bool is_known = false;    // the store has a record of the file or command, and no input has changed
    bool in_program = false;  // its facts belong to the program: false for files outside the slice
    bool is_finished = false;
    bool is_lost = false;  // its worker crashed or ran out of time
};

// Finds or extracts the facts of every unit of a plan: compile commands, headers that no command
// reaches, Python files, and configuration files that their code names. Facts of unchanged units come
// from the store and are read by read_facts() only. A worker extracts one command or many Python files
// at a time. When a job with several files is lost, they are extracted one by one.
class Gatherer {
public:
    // Without a store no facts are kept between runs.
    Gatherer(UnitPlanner&, FactStore*);

    void run(const std::vector<PlannedUnit>& commands);
    // Reads the facts that are not in memory yet.
    void read_facts();
    // Writes new records to the store. False: errno holds the reason.
    bool save();

    std::vector<GatheredUnit>& units() { return units_; }  // in the plan's order
    const std::vector<GatheredUnit>& units() const { return units_; }
    // Index of the first Python file of the plan; commands and headers precede it.
    std::size_t first_python() const { return first_python_; }
    // Paths at which a configuration file was looked for.
    const std::vector<std::string>& absent() const { return absent_; }
    // Of a whole project, sorted hashes: the names that Python files import that have no facts or evaluate strings, and
    // the options that texts turn on (nothing where there are too many texts). Tests do not count.
    const std::vector<std::uint64_t>& unread_imports() const { return unread_imports_; }
    const std::optional<std::vector<std::uint64_t>>& given_options() const { return given_options_; }
    // No unit was lost, and all inputs are known.
    bool is_complete() const;

private:
    using Batch = std::vector<std::size_t>;  // indices of units_

    std::size_t add(PlannedUnit);
    void look_up(GatheredUnit&);
    void add_unreached_headers();
    void add_configuration_files();
    void look_for(const std::string& name, const std::string& from);
    void gather_slice();
    void find_slice();
    void scan(GatheredUnit&);
    void leave_out(GatheredUnit&);
    void describe_stored(GatheredUnit&);

    void extract_missing(std::size_t first);
    void extract(const std::vector<std::size_t>& units);
    void extract_batches(const std::vector<Batch>&);
    std::vector<Batch> batches_of(const std::vector<std::size_t>& units) const;
    PoolOptions pool_for(const std::vector<Batch>&) const;
    void receive(const Batch&, JobOutcome);
    bool is_test(const std::string& path) const;
    void read_project();
    bool receive_segment(const Batch&, JobOutcome&);
    void read(const std::vector<std::size_t>& units);
    void set_unit(GatheredUnit&, Unit);
    void finish(GatheredUnit&);

    UnitPlanner& planner_;
    const LintOptions& options_;
    FactStore* store_;
    UnitExtractor extractor_;
    FileStates files_;
    std::vector<GatheredUnit> units_;
    std::size_t first_python_ = 0;
    std::vector<std::size_t> to_store_;  // heads that changed without an extraction
    std::vector<std::size_t> retry_;     // units of jobs that were lost
    std::vector<std::string> absent_;
    std::vector<std::uint64_t> unread_imports_;
    std::optional<std::vector<std::uint64_t>> given_options_;
    bool has_slice_ = false;
    std::size_t done_ = 0;
    std::size_t total_ = 0;
};

// Smaller trees are extracted completely, which is faster than finding the slice.
bool is_large_tree(const std::vector<PythonFile>&);

}  // namespace mp::lint
