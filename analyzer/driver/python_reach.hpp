#pragma once

// Which files of a large tree need a tree at all: those that speak of precision themselves, what
// these call, and what imports from them something that brings in a low dtype or a region. Of a file
// that is only called, what is called there leads on, and nothing else. Asked again after each round
// of extraction, until nothing is missing.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analyzer/facts/model.hpp"
#include "analyzer/region/by_symbol.hpp"

namespace mp::lint {

class PythonReach {
public:
    // Files are added in order; their index is their number.
    void add(std::string_view module, bool wanted, bool relevant, std::vector<std::uint64_t> imports);
    // The facts of a file that was asked for.
    void take(std::size_t file, const Unit& unit);
    // Files that are needed and were not given out yet.
    std::vector<std::size_t> next();
    // Hashes of names that bring in a low dtype or a region, sorted: a file that imports one is needed.
    std::vector<std::uint64_t> low_names() const;

private:
    // A dotted name, and what is known of it. Its text is a symbol's, or begins one, and lives as long.
    struct Name {
        std::string_view text;
        Name* above = nullptr;       // "a.b" of "a.b.C"
        std::size_t file = kNoFile;  // of the module it names
        std::string_view alias;      // what it stands for: "pkg.a.B" of "pkg.B"
        bool demanded = false;
        bool reached = false;
        std::vector<Symbol> calls;   // of a top-level function or class, until it is reached
    };

    struct File {
        bool relevant = false;  // a tree would show anything at all
        bool needed = false;
        bool whole = false;  // every function of it leads on, not only those that are called
        bool imports_low = false;  // ... or a region: its context managers may open that
        std::string_view module;
        std::vector<std::uint64_t> imports;    // sorted
        std::vector<const Name*> asked;        // names that others expect in it
        std::vector<std::string_view> stars;   // modules of which it re-exports everything
        std::vector<Name*> parts;              // its top-level functions and classes
        std::vector<std::uint64_t> managers;   // context managers that open no region of their own
    };

    Name& name(std::string_view text);
    bool leads_on(Symbol);
    void need(std::size_t file);
    void make_whole(std::size_t file);
    void demand(std::string_view text);
    void reach(Name&);
    void note_aliases(std::size_t file, const Unit& unit);
    void follow_calls(std::size_t file, const Unit& unit);
    void follow_imports();
    void export_name(std::uint64_t hash);
    void follow(const File& file, const Name& asked);
    void note_exports(std::size_t file, const Unit& unit);

    static constexpr std::size_t kNoFile = static_cast<std::size_t>(-1);
    enum class Lead : std::uint8_t { unasked, nowhere, on };

    std::vector<File> files_;
    std::unordered_map<std::string_view, Name> names_;
    std::vector<Symbol> calls_;  // of what is reached, not yet followed
    BySymbol<Lead> leads_;       // by what is called
    std::unordered_set<std::uint64_t> exported_;
    std::vector<std::uint64_t> fresh_exports_;
    std::vector<std::size_t> pending_;
};

}  // namespace mp::lint
