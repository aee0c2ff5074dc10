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

#include "analyzer/cache/file_state.hpp"
#include "analyzer/facts/fields.hpp"

namespace mp::lint {

struct InputFile {
    Symbol path;
    FileId id;  // mtime_ns 0: too fresh to be trusted, the content is compared
    std::uint64_t hash = 0;

    friend bool operator==(const InputFile&, const InputFile&) = default;
};

// A directory in which a new file could change what an #include finds.
struct InputDirectory {
    Symbol path;
    std::int64_t mtime_ns = 0;
    std::uint64_t names = 0;  // hash of the names in it that an #include of the unit could begin with

    friend bool operator==(const InputDirectory&, const InputDirectory&) = default;
};

struct Inputs {
    std::vector<InputFile> files;
    std::vector<Symbol> missing;  // headers that were not found
    std::vector<InputDirectory> directories;

    friend bool operator==(const Inputs&, const Inputs&) = default;
};

template <class V, Of<FileId> F>
void fields(V& v, F& f) {
    v("size", f.size);
    v("mtime_ns", f.mtime_ns);
    v("inode", f.inode);
}

template <class V, Of<InputFile> F>
void fields(V& v, F& f) {
    v.title(f.path);
    v("id", f.id);
    v("hash", f.hash);
}

template <class V, Of<InputDirectory> F>
void fields(V& v, F& f) {
    v.title(f.path);
    v("mtime_ns", f.mtime_ns);
    v("names", f.names);
}

template <class V, Of<Inputs> F>
void fields(V& v, F& f) {
    v("files", f.files);
    v("missing", f.missing);
    v("directories", f.directories);
}

enum class InputsMatch : std::uint8_t { changed, same, touched };

// Compares with the file system. `touched`: the content is the same under new times, which are now in
// the argument.
InputsMatch match_inputs(Inputs&, FileStates&);

// The inputs of a C++ unit that was just extracted. Nothing if they cannot be compared later: a file
// changed meanwhile, or there are too many directories. `include_roots`: -I directories and the like.
std::optional<Inputs> inputs_of(const Unit&, std::vector<std::string> include_roots, FileStates&);

}  // namespace mp::lint
