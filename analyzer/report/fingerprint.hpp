#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/report/report.hpp"

namespace mp::lint {

// GitHub's primaryLocationLineHash of every line: a rolling hash (base 37, 64 bits) over the first 100
// UTF-16 units from the start of the line, without blanks, in hexadecimal; ":n" counts repeats. It is
// computed here so that alerts stay stable when the file is not available during the upload.
std::vector<std::string> line_hashes(std::string_view text);

// XXH3-128 in hexadecimal.
std::string hashed(std::string_view text);

// The fingerprint that Fingerprints returns for the first of equal findings.
std::string fingerprint_of(const Report&, const Finding&);

// A hash that does not depend on the file: over rule, the function's own name, and the text of the line
// without blanks. Recognises findings of a moved file.
std::string code_hash(const Report&, const Finding&);

// mpLint/v1: does not change with edits elsewhere in the file or changes of blanks. A hash over rule, path
// below the project, enclosing function, the text of the line without blanks, and the ordinal among equal
// findings.
class Fingerprints {
public:
    explicit Fingerprints(const Report& report) : report_(report) {}
    // Call this in report order, because the ordinal counts equal findings.
    std::string next(const Finding&);

private:
    const Report& report_;
    std::map<std::string, unsigned> seen_;
};

}  // namespace mp::lint
