#pragma once

// A hash of the facts of a unit without their lines. Two versions of a unit with the same hash differ
// at most in line numbers: a comment, a docstring, a blank line was edited, or a constant that no fact
// contains. Findings then hold as they are, on other lines.

#include <cstdint>
#include <vector>

#include "analyzer/facts/model.hpp"

namespace mp::lint {

// The lines of one file to which facts of a unit refer, ascending.
struct FileLines {
    Symbol file;
    std::vector<std::uint32_t> lines;
};

struct Digest {
    // Spans and names of lambdas are hashed with the index of their line in `lines`. Coverage and
    // dependencies are not part of the hash, because no rule reads them.
    std::uint64_t hash = 0;
    std::vector<FileLines> lines;
};

Digest digest_of(Unit unit);

// True if the text contains the name of a Python lambda, which contains a line: "f.<lambda:12:4>".
bool names_lambda(std::string_view text);

}  // namespace mp::lint
