#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/report/report.hpp"

namespace mp::lint {

// GitHub's primaryLocationLineHash of every line: a rolling hash (base 37, 64 bits) over the first
// 100 UTF-16 units from the start of the line, blanks left out, as hexadecimal, ":n" counting
// repeats. Computing it ourselves keeps alerts stable when the file is not at hand for the upload.
std::vector<std::string> line_hashes(std::string_view text);

// What Fingerprints gives the first of equal findings.
std::string fingerprint_of(const Report&, const Finding&);

// The finding wherever its file is: over rule, the function's own name, and the text of the line
// without blanks. Recognises findings of a file that moved.
std::string code_hash(const Report&, const Finding&);

// mpLint/v1: survives edits elsewhere in the file and changes of blanks. Over rule, path below the
// project, enclosing function, the text of the line without blanks, and which of equal ones it is.
class Fingerprints {
public:
    explicit Fingerprints(const Report& report) : report_(report) {}
    // Findings must be asked in report order: the ordinal counts equal ones.
    std::string next(const Finding&);

private:
    const Report& report_;
    std::map<std::string, unsigned> seen_;
};

}  // namespace mp::lint
