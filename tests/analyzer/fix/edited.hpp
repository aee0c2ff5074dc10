#pragma once

#include <string>
#include <utility>
#include <vector>

#include "analyzer/report/report.hpp"

namespace mp::lint::edited {

struct At {
    std::uint32_t line = 1;
    std::uint32_t column = 1;
    std::uint32_t end_line = 1;
    std::uint32_t end_column = 1;
};

inline Edit edit(const std::string& file, const At& at, std::string text) {
    return {.at = {.file = Symbol(file),
                   .line = at.line,
                   .column = at.column,
                   .end_line = at.end_line,
                   .end_column = at.end_column},
            .text = std::move(text)};
}

// A finding where its first edit is.
inline Finding finding(std::vector<Edit> edits, bool safe = true) {
    Finding f{.rule = "MP101", .span = edits[0].at, .message = "m", .fix = {}, .notes = {}, .function = {}};
    f.edits = std::move(edits);
    f.safe_edits = safe;
    return f;
}

inline Report report(std::vector<std::pair<std::string, std::string>> files, Findings findings) {
    Report r;
    r.working_directory = "/p";
    r.project_root = "/p";
    for (auto& [path, text] : files) {
        UnitResult unit;
        unit.path = path;
        r.units.push_back(unit);
        r.sources.add(path, std::move(text));
    }
    r.findings = std::move(findings);
    return r;
}

}  // namespace mp::lint::edited
