#pragma once

// Which files of a large tree need a tree at all: those that speak of precision themselves, what
// these call, and what imports from them something that brings in a low dtype or a region. Of a file
// that is only called, what is called there leads on, and nothing else. Asked again after each round
// of extraction, until nothing is missing.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "analyzer/driver/python_scan.hpp"
#include "analyzer/facts/model.hpp"
#include "analyzer/region/by_symbol.hpp"

namespace mp::lint {

// What the facts of a file say of where they lead. Made on any thread, while the facts are at hand.
struct Outline {
    // A top-level function or class, and what it calls and is derived from, each name once.
    struct Part {
        Symbol name;
        std::vector<Symbol> calls;
    };
    struct Alias {
        Symbol name;
        std::string_view stands_for;
    };
    // A function that callers get a low dtype from, or else a context manager: by the hash of its name.
    struct Export {
        std::uint64_t name = 0;
        bool low = false;
    };
    std::vector<Part> parts;
    std::vector<Alias> aliases;
    std::vector<std::string_view> stars;  // modules of which it re-exports everything
    std::vector<Export> exports;
};

Outline outline_of(const Unit&, std::string_view module, const Seeds&);

class PythonReach {
public:
    // Files are added in order; their index is their number.
    void add(std::string_view module, bool is_seed, bool is_relevant, std::vector<std::uint64_t> imports);
    // Of a file that was asked for.
    void take(std::size_t file, Outline);
    // Files that are needed and were not given out yet.
    std::vector<std::size_t> next();
    // Hashes of names that bring in a low dtype or a region, sorted: a file that imports one is needed.
    std::vector<std::uint64_t> low_names() const;

private:
    // A dotted name, and what is known of it. Its text is a symbol's.
    struct Name {
        std::string_view text;
        Name* above = nullptr;       // "a.b" of "a.b.C"
        std::size_t file = kNoFile;  // of the module it names
        std::string_view alias;      // what it stands for: "pkg.a.B" of "pkg.B"
        bool demanded = false;
        bool reached = false;
        std::vector<Symbol> calls;  // of a top-level function or class, until it is reached
    };

    struct File {
        bool relevant = false;  // a tree would show anything at all
        bool needed = false;
        bool whole = false;        // every function of it leads on, not only those that are called
        bool imports_low = false;  // ... or a region: its context managers may open that
        std::string_view module;
        std::vector<std::uint64_t> imports;  // sorted
        std::vector<const Name*> asked;      // names that others expect in it
        std::vector<std::string_view> stars;
        std::vector<Name*> parts;             // its top-level functions and classes
        std::vector<std::uint64_t> managers;  // context managers that open no region of their own
    };

    Name& name(Symbol);
    void need(std::size_t file);
    void make_whole(std::size_t file);
    void demand(Symbol);
    void reach(Name&);
    void follow_calls(std::size_t file, std::vector<Outline::Part> parts);
    void follow_imports();
    void export_name(std::uint64_t hash);
    void follow(const File& file, const Name& asked);
    void note_exports(std::size_t file, const std::vector<Outline::Export>& exports);

    static constexpr std::size_t kNoFile = static_cast<std::size_t>(-1);

    std::vector<File> files_;
    std::deque<Name> all_names_;
    BySymbol<Name*> names_;
    std::vector<Symbol> calls_;  // of what is reached, not yet followed
    BySymbol<char> followed_;    // by what is called
    std::unordered_set<std::uint64_t> exported_;
    std::vector<std::uint64_t> fresh_exports_;
    std::vector<std::size_t> pending_;
};

}  // namespace mp::lint
