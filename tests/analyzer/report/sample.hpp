#pragma once

#include <utility>

#include "analyzer/report/report.hpp"

namespace mp::lint::sample {

inline SourceSpan span(const char* file, std::uint32_t line, std::uint32_t column, std::uint32_t end_column) {
    return {.file = Symbol(file), .line = line, .column = column, .end_line = line, .end_column = end_column};
}

inline Finding finding(SourceSpan at, Severity severity = Severity::error) {
    return {.rule = "MP405",
            .severity = severity,
            .span = at,
            .message = "variance is held in fp16",
            .fix = "keep it in float",
            .notes = {{.span = span("/p/model.cu", 2, 3, 8), .text = "in layer_norm<__half>, instantiated"}},
            .function = Symbol("layer_norm<__half>")};
}

// One error in /p/norm.cu:2 with a note in /p/model.cu:2, one unit without problems.
inline Report report() {
    Report r;
    r.working_directory = "/p";
    r.project_root = "/p";
    r.tool_version = "0.1.0";
    r.files = 2;
    r.seconds = 0.4;
    r.rules = {{"MP405", "half-norm-stats", Severity::error, "# MP405 half-norm-stats\n\nWhy.\n"}};
    r.sources.add("/p/norm.cu", "int a;\n    const T rstd = hrsqrt(T(var));\nint b;\n");
    r.findings = {finding(span("/p/norm.cu", 2, 20, 26))};
    UnitResult unit;
    unit.path = "/p/norm.cu";
    unit.coverage.functions = 3;
    r.units = {unit};
    return r;
}

}  // namespace mp::lint::sample
