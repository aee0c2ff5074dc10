#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "kernels/base/result.hpp"
#include "kernels/numerics/rank_step.hpp"

namespace mp::trace {

// Looks a variable up; null when unset. std::getenv fits.
using Environment = std::function<const char*(const char*)>;

// The identity of a process in its job, from the variables of torchrun, srun, Open MPI and MPICH. The first
// launcher that matches is used; torchrun precedes srun, because torchrun is started under srun.
struct Identity {
    std::string launcher;  // empty: none of the table
    Rank rank;
    std::int32_t local_rank = -1;
    std::int32_t world_size = -1;
    std::int32_t restart = 0;
    std::string job;  // job or run id, empty: none
    std::string host;
    std::int64_t pid = 0;
};

Identity identity_of_process(const Environment&);

// Expands %p pid, %h host, %r global rank, %l local rank, %s world size, %j job, %c restart count, %t start
// time (yyyymmdd-hhmmss, UTC), %q{VAR}, %%. An unknown key or an unset VAR is an error; an unknown rank is
// "x". Values are reduced to [A-Za-z0-9._-], so that the path stays inside the chosen directory.
Result<std::string> expand_pattern(std::string_view pattern, const Identity&, const Environment&,
                                   std::int64_t unix_seconds);

// "r0.c0.<host>.p1234.mpt": unique in a run directory; a name that exists gets ".2" before ".mpt" and so on.
std::string recording_name(const Identity&);

}  // namespace mp::trace
