#pragma once

// Which files of a large tree need a tree at all: those that speak of precision themselves, what
// these call, and what imports from them something that brings in a low dtype or a region. Of a file
// that is only called, what is called there leads on, and nothing else. Asked again after each round
// of extraction, until nothing is missing.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analyzer/facts/model.hpp"

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
    struct File {
        bool relevant = false;  // a tree would show anything at all
        bool needed = false;
        bool whole = false;  // every function of it leads on, not only those that are called
        bool imports_low = false;  // ... or a region: its context managers may open that
        std::vector<std::uint64_t> imports;  // sorted
        std::vector<std::string> asked;      // names that others expect in it
        std::vector<std::string> stars;      // modules of which it re-exports everything
        std::vector<std::string> parts;      // its top-level functions and classes
        std::vector<std::uint64_t> managers;  // context managers that open no region of their own
    };

    void need(std::size_t file);
    void make_whole(std::size_t file);
    void demand(std::string name);
    void reach(const std::string& part);
    void follow_calls(std::size_t file, const Unit& unit);
    void follow_imports();
    void export_name(std::uint64_t hash);
    void follow(File& file, const std::string& name);
    void note_exports(std::size_t file, const Unit& unit);

    std::vector<File> files_;
    std::unordered_map<std::string, std::size_t> modules_;
    std::unordered_map<std::string, std::string> aliases_;  // "pkg.B": "pkg.a.B"
    std::unordered_set<std::string> demanded_;
    // Top-level functions and classes by qualified name: what they call, until they are reached.
    std::unordered_map<std::string, std::vector<Symbol>> waiting_;
    std::unordered_set<std::string> reached_;
    std::vector<Symbol> calls_;  // of what is reached, not yet followed
    std::unordered_set<Symbol> called_;  // demanded already, without making a string of it
    std::unordered_set<std::uint64_t> exported_;
    std::vector<std::uint64_t> fresh_exports_;
    std::vector<std::size_t> pending_;
    std::vector<std::string> module_of_;
};

}  // namespace mp::lint
