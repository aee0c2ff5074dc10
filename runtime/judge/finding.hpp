#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/numerics/phase.hpp"
#include "kernels/numerics/rank_step.hpp"

namespace mp::trace {

enum class Severity : std::uint8_t { note, warning, error };
std::string_view name_of(Severity);

// What the figure of a finding rests on: every value, some of them, or what is known of the call alone.
enum class Basis : std::uint8_t { unknown, exact, sampled, inferred };
std::string_view name_of(Basis);

// Something wrong with the numerics of a run. Ids are those of the gate's rules and never reused.
struct Finding {
    std::string rule;  // "MPT001"
    std::string name;  // "nonfinite-value"
    Severity severity = Severity::warning;
    std::string layer;  // "blocks.2.fc2"; empty: the run as a whole
    std::string op;     // "aten::addmm"
    Phase phase = Phase::unknown;
    Rank rank;                     // unknown: all, or not about one
    int device = -1;               // of a process that uses several; -1: not about one
    Step step;                     // first seen; unknown: not about one
    std::string source;            // "train.py:88"; empty: unknown
    std::string message;           // one sentence: what happened, with its figures
    std::string advice;            // one sentence: what to change
    double value = 0;              // the judged figure ...
    double limit = 0;              // ... and its limit
    std::string unit;              // "phi", "share", "steps", ""
    Basis basis = Basis::unknown;  // set only for programs without torch
    double importance = 0;  // sorts findings: share of the divergence explained, or how much training is lost
    std::vector<std::string> confirmed_by;      // mp-lint findings at the same place: "MP401 train.py:88"
    std::vector<std::string> more_layers = {};  // with the same finding; `layer` is the worst
};

}  // namespace mp::trace
