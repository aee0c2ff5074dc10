#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/region/program.hpp"

namespace mp::lint {

enum class Severity : std::uint8_t { note, warning, error };

std::string_view name_of(Severity);  // "note", "warning", "error"

// One replacement of source text; an empty span of `at` (start == end) inserts.
struct Edit {
    SourceSpan at;
    std::string text;

    friend bool operator==(const Edit&, const Edit&) = default;
};

struct Finding {
    std::string_view rule;  // "MP401"; the id of a registered rule
    Severity severity = Severity::warning;
    SourceSpan span;
    std::string message;      // one sentence, lower case start, no full stop; names the dtype
    std::string fix;          // what to do, one line; may be empty
    std::vector<Note> notes;  // the call chain, the instantiation, the declaration that makes it true
    Symbol function;          // display name of the enclosing function
    // What `--fix` would do, all of it or nothing. Empty: no mechanical fix.
    std::vector<Edit> edits{};
    bool safe_edits = false;  // the edits fix the defect and keep the program's behaviour otherwise; false:
                              // they need --unsafe-fixes
};

using Findings = std::vector<Finding>;

}  // namespace mp::lint
