#pragma once

// What the facts of a unit depend on. Stored facts are used only if every file that the unit read is
// unchanged (size, time and inode; if those differ, the content) and no file has appeared that one of
// its includes would now find first. Two cases of stale facts are known and accepted: a header that is
// named only in a `__has_include` that was false and that appears later, and a file that changed while
// its size, time and inode stayed the same (git and make trust the same).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/cache/codec.hpp"
#include "analyzer/cache/file_state.hpp"
#include "analyzer/facts/model.hpp"

namespace mp::lint {

struct InputFile {
    Symbol path;
    FileId id;  // mtime_ns 0: too fresh to be trusted, the content is compared
    std::uint64_t hash = 0;
};

// A directory in which a new file could change what an #include finds.
struct InputDirectory {
    Symbol path;
    std::int64_t mtime_ns = 0;
    std::uint64_t names = 0;  // hash of the names in it that an #include of the unit could begin with
};

struct Inputs {
    std::vector<InputFile> files;
    std::vector<Symbol> missing;  // headers that were not found
    std::vector<InputDirectory> directories;
};

void write_id(SegmentWriter&, const FileId&);
FileId read_id(RecordReader&);

void write_inputs(SegmentWriter&, const Inputs&);
Inputs read_inputs(RecordReader&);

enum class InputsMatch : std::uint8_t { changed, same, touched };

// Compares with the file system. `touched`: the content is the same under new times, which are now in
// the argument.
InputsMatch match_inputs(Inputs&, FileStates&);

// The inputs of a C++ unit that was just extracted. Nothing if they cannot be compared later: a file
// changed meanwhile, or there are too many directories. `include_roots`: -I directories and the like.
std::optional<Inputs> inputs_of(const Unit&, std::vector<std::string> include_roots, FileStates&);

}  // namespace mp::lint
