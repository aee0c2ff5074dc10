#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/base/result.hpp"
#include "runtime/trace/options.hpp"

namespace mp::launch {

// The values of mp-trace's options. Each names the text it could not read; the caller names the option.

// "watch", "local", "step", "trajectory".
Result<trace::Mode> parse_mode(std::string_view);
std::string_view name_of(trace::Mode);

// "A:B:N": steps A, A+N, ... below B. Parts left out are 0, no end, and 1; "A" alone is that one step.
Result<trace::StepRange> parse_steps(std::string_view);
// What parse_steps reads back as the same range; empty for "every step".
std::string text_of(const trace::StepRange&);

// "0,8-15".
Result<std::vector<trace::RankRange>> parse_ranks(std::string_view);

// Bytes: a whole number and an optional K, M, G or T (powers of 1024). At least 64 KiB, below which not one
// step of a real model fits.
Result<std::uint64_t> parse_size(std::string_view);

}  // namespace mp::launch
