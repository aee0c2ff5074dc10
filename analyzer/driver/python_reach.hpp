#pragma once

// Which files of a large tree need a tree at all: those that speak of precision themselves, what these
// call, and what imports from them something that brings in a low dtype or a region. Asked again after
// each round of extraction, until nothing is missing.

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

private:
    struct File {
        bool relevant = false;  // a tree would show anything at all
        bool needed = false;
        std::vector<std::uint64_t> imports;  // sorted
        std::vector<std::string> asked;      // names that others expect in it
        std::vector<std::string> stars;      // modules of which it re-exports everything
    };

    void need(std::size_t file);
    void demand(std::string name);
    void follow(File& file, const std::string& name);
    void note_exports(std::size_t file, const Unit& unit);

    std::vector<File> files_;
    std::unordered_map<std::string, std::size_t> modules_;
    std::unordered_map<std::string, std::string> aliases_;  // "pkg.B": "pkg.a.B"
    std::unordered_set<std::string> demanded_;
    std::unordered_set<Symbol> called_;  // demanded already, without making a string of it
    std::unordered_set<std::uint64_t> exported_;
    std::vector<std::uint64_t> fresh_exports_;
    std::vector<std::size_t> pending_;
    std::vector<std::string> module_of_;
};

}  // namespace mp::lint
