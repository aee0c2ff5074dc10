#pragma once

#include <string>
#include <utility>
#include <vector>

#include "kernels/base/result.hpp"
#include "runtime/gate/gate.hpp"

namespace mp::trace {

// `mp-trace report`, without the command line.
struct ReportRequest {
    std::string directory;
    bool text = false;              // also set when neither html nor json is requested
    std::string html, json;         // a file; "-": standard output; empty: not requested
    std::string noise;              // the same training with --twin-noise; empty: none
    std::vector<std::string> lint;  // reports of mp-lint, whose findings confirm those of the run
    std::vector<std::string> policies;
};

struct ReportRun {
    std::vector<std::pair<std::string, std::string>> texts;  // file (empty: standard output), content
    std::vector<Error> warnings;                             // recordings that are not readable
};

// The files and policies of the options. Their errors belong to the command line, not to the run.
struct ReportInputs {
    std::vector<LintFinding> lint;
};
Result<ReportInputs> read_inputs(const ReportRequest&);

// Fails when the directory or a recording in it is missing.
Result<ReportRun> run_report(const ReportRequest&, const ReportInputs&);

// `mp-trace summary`: run_summary() of a directory.
Result<std::string> summary_of(const std::string& directory);

}  // namespace mp::trace
