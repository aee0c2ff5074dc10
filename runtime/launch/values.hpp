#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/base/result.hpp"
#include "runtime/trace/options.hpp"

namespace mp::launch {

// Parsers for the values of mp-trace's options. An Error contains the text; the caller adds the option.

// "watch", "local", "step", "trajectory".
Result<trace::Mode> parse_mode(std::string_view);
std::string_view name_of(trace::Mode);

// "A:B:N": steps A, A+N, ... below B. Omitted parts are 0, no end, and 1; "A" alone is that one step.
Result<trace::StepRange> parse_steps(std::string_view);
// The inverse of parse_steps; empty for "every step".
std::string text_of(const trace::StepRange&);

// "0,8-15".
Result<std::vector<trace::RankRange>> parse_ranks(std::string_view);

// Bytes: an integer with an optional K, M, G or T (powers of 1024). At least 64 KiB, because less does not
// hold one step of a real model.
Result<std::uint64_t> parse_size(std::string_view);

// "3%" as 0.03. More than none, at most all.
Result<double> parse_share(std::string_view);

}  // namespace mp::launch
