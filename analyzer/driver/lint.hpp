#pragma once

#include <string>
#include <vector>

#include "analyzer/driver/front_ends.hpp"
#include "analyzer/driver/options.hpp"
#include "analyzer/report/report.hpp"

namespace mp::lint {

// The whole run. An Error is for the user to fix (exit 2): no such file, nothing to analyse, an
// unknown torch version. Failed units are listed in the report and are not errors.
Result<Report> run_lint(const LintOptions& options, const FrontEnds& parts);

// Facts of the inputs, without rules.
Result<std::vector<Unit>> run_facts(const LintOptions& options, const FrontEnds& parts);

// The clang command lines that would be used, one per pass, quoted for a shell; lines that begin
// with '#' explain.
Result<std::string> show_command(const LintOptions& options, const FrontEnds& parts);

// 2: nothing could be analysed, or `strict` and not everything was. 1: errors or warnings. Else 0.
int exit_code(const Report& report, bool strict);

}  // namespace mp::lint
