#pragma once

// Finds the slice of a large Python tree: the seed files, the files that they call into, and the files that import a
// name with a low dtype or a region. In a file that is only called into, only the called functions and classes lead to
// further files. The caller extracts the files of next() and passes their outlines to take(), until next() is empty.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "analyzer/cache/outline.hpp"
#include "analyzer/driver/python_scan.hpp"
#include "analyzer/facts/model.hpp"
#include "analyzer/region/by_symbol.hpp"

namespace mp::lint {

// Safe to call from any thread.
Outline outline_of(const Unit&, std::string_view module, const Seeds&);

class PythonReach {
public:
    // Adds a file. Files are numbered in the order of these calls, from 0.
    void add(std::string_view module, bool is_seed, bool is_relevant, std::vector<std::uint64_t> imports);
    // Stores the outline of a file that next() returned.
    void take(std::size_t file, const Outline&);
    // The files of the slice that no earlier call returned.
    std::vector<std::size_t> next();

private:
    // A dotted name. `text` points into the symbol table.
    struct Name {
        std::string_view text;
        Name* above = nullptr;       // "a.b" of "a.b.C"
        std::size_t file = kNoFile;  // the file, if the name is a module
        std::string_view alias;      // the re-exported name: "pkg.a.B" for "pkg.B"
        bool demanded = false;
        bool reached = false;
        std::vector<Symbol> calls;  // for a top-level function or class; empty once it is reached
    };

    struct File {
        bool relevant = false;  // its text may produce facts
        bool needed = false;
        bool whole = false;  // the calls of all its functions are followed, not only of those that are called
        bool imports_low = false;  // imports a low dtype or a region, which its context managers may open
        std::string_view module;
        std::vector<std::uint64_t> imports;  // sorted
        std::vector<const Name*> asked;      // names that other files use from this file
        std::vector<Symbol> stars;
        std::vector<Name*> parts;             // its top-level functions and classes
        std::vector<std::uint64_t> managers;  // hashes of context managers that open no region themselves
    };

    Name& name(Symbol);
    void need(std::size_t file);
    void make_whole(std::size_t file);
    void demand(Symbol);
    void reach(Name&);
    void follow_calls(std::size_t file, const std::vector<Outline::Part>& parts);
    bool is_below_a_root(Symbol called) const;
    void follow_imports();
    void export_name(std::uint64_t hash);
    void follow(const File& file, const Name& asked);
    void note_exports(std::size_t file, const std::vector<Outline::Export>& exports);

    static constexpr std::size_t kNoFile = static_cast<std::size_t>(-1);

    std::vector<File> files_;
    std::unordered_set<std::string_view>
        roots_;  // first parts of the names of modules: "pkg" of "pkg.sub.mod"
    std::deque<Name> all_names_;
    BySymbol<Name*> names_;
    std::vector<Symbol> calls_;  // calls of reached functions and classes that are not followed yet
    BySymbol<char> followed_;    // by the called name
    std::unordered_set<std::uint64_t> exported_;
    std::vector<std::uint64_t> fresh_exports_;
    std::vector<std::size_t> pending_;
};

}  // namespace mp::lint
