#pragma once

// Which calls of a function run before which, on some way or on every way through it.

#include <cstddef>
#include <cstdint>

#include "analyzer/facts/model.hpp"

namespace mp::lint {

// Where control is after the last call of a function.
constexpr auto kNowhere = static_cast<std::uint32_t>(kNone);

// The block of the call with this index; kNowhere after the last call.
std::uint32_t block_before(const Function&, std::size_t call);

// Whether control reaches the block only where the condition has this value.
bool runs_only_if(const Function&, std::uint32_t block, Symbol condition, bool value);

bool can_run_before(const Function&, std::uint32_t block, std::uint32_t at);
// On every way to `at`, or out of the function.
bool always_runs_before(const Function&, std::uint32_t block, std::uint32_t at);

}  // namespace mp::lint
