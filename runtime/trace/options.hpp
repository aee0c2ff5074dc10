#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/result.hpp"
#include "kernels/numerics/rank_step.hpp"
#include "runtime/trace/records.hpp"

namespace mp::trace {

// The environment variable that names the options file. Without it every injected library does nothing.
inline constexpr const char* kOptionsVariable = "MP_TRACE_OPTIONS";

// Which steps a twin or a measurement covers: first, first + every, ... below last.
struct StepRange {
    std::int64_t first = 0;
    std::int64_t last = std::numeric_limits<std::int64_t>::max();
    std::int64_t every = 1;

    bool contains(Step s) const {
        return s.value >= first && s.value < last && (s.value - first) % every == 0;
    }
};

struct RankRange {
    std::int32_t first = 0;
    std::int32_t last = 0;  // inclusive
};

// The options of the command line. They are passed to the traced processes in a flat file of `key=value` lines (one
// per field, same names; lists separated by ':'; '\\', newline and ':' in values escaped with '\\').
struct Options {
    std::string run_dir;  // absolute
    Mode mode = Mode::watch;
    StepRange steps;
    std::vector<RankRange>
        ranks;  // empty: all. In twin modes the other ranks run the twin without recording it
    std::uint64_t budget = 256u << 20;  // bytes on disk per process
    double overhead = 0;                // share of the time that measuring may take; 0: no limit
    std::vector<std::string> adapters;  // directories that hold libmptrace_torch_<id>.so
    std::string save_twin;              // pattern with % keys, or empty
    std::string save_real;
    bool eager = false;         // run torch.compile regions eagerly
    bool device_times = false;  // of kernels, in CUDA programs without torch
    bool free_ints = false;     // let the twin keep its own integer results
    bool twin_noise = false;    // change the twin's weights by one rounding after the first step
    std::string step_range;     // NVTX ranges that are steps, with '*' for the number; empty: the usual names
    bool quiet = false;
    std::string tool;  // the mp-trace that prints the summary at the end; empty: none is printed
};

std::string to_text(const Options&);
// Unknown keys are ignored (a newer launcher may write more); a malformed value is an error with its line.
Result<Options> options_from_text(std::string_view text);
Result<Options> read_options(const std::string& path);

}  // namespace mp::trace
