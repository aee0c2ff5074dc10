#pragma once

// One Python file at a time: what is known of it from its text, and its facts as a record of the pack.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/cache/pack.hpp"
#include "analyzer/driver/gather.hpp"
#include "analyzer/driver/pool.hpp"
#include "analyzer/driver/python_scan.hpp"
#include "analyzer/driver/python_units.hpp"

namespace mp::lint {

// What the text of a file says before anything is parsed.
struct Scan {
    bool unreadable = false;
    bool relevant = false;  // its facts can matter
    bool wanted = false;    // it is a seed file of the slice
    bool may_suppress = false;
    std::vector<std::uint64_t> imports;  // hashes of the names it imports, sorted
    ReadFile read;
};

// How the files of a run are looked at.
struct PythonReader {
    const FrontEnds& parts;
    Seeds seeds;
    bool whole_tree = false;  // every file is relevant
};

Scan scan_file(const PythonFile&, const PythonReader&);

// In a worker process: the record of a file, with its facts.
void extract_file(SegmentWriter&, const PythonFile&, const PythonReader&);

// Smaller trees are extracted whole: that is quicker than to ask which of their files matter.
bool is_large_tree(const std::vector<PythonFile>&);

// A unit without facts.
Unit empty_unit(const std::string& path, UnitState, std::string_view message);
UnitResult result_of(const PythonFile&, const Unit&);

// The identity to remember: without a time when the file is too fresh to be told by it.
FileId trusted(FileId);

// Where the facts of the plan's Python files are kept.
std::unique_ptr<FactsPack> pack_of(const Plan&, const LintOptions&);

PoolOptions pool_for(const LintOptions&, std::size_t batches);

}  // namespace mp::lint
