#pragma once

#include <cstdint>
#include <string>

// The communicators of NCCL that this process has joined, by numbers that all of their ranks know without asking each
// other: from the id with which they were made. A process joins a communicator once per rank that it has in it: several
// times where it drives several devices. Safe from any thread; nothing throws.

namespace mp::raw {

// A rank comes to the others of a communicator, whose `id` of `bytes` bytes is the same on all of them. Called before
// NCCL is: no collective of the communicator begins before all ranks of this process were noted. `device`: -1 where it
// is not known yet. Its number.
std::uint64_t join_communicator(const void* id, std::uint64_t bytes, int rank, int ranks,
                                int device = -1) noexcept;
// The same for a part of `parent`, which all of its ranks split in the same order; or kRemaining: for what remains of
// it without some ranks, which do not make that call.
inline constexpr int kRemaining = -2;
std::uint64_t join_part(const void* parent, int part) noexcept;
// NCCL's handle of a rank that has joined.
void note_communicator(const void* comm, std::uint64_t number) noexcept;
void forget_communicator(const void* comm) noexcept;

struct Numbered {
    std::uint64_t communicator = 0;  // 0: it is not known how it was made
    std::uint64_t call = 0;
};
// The next call of a rank. All ranks make the calls of all (`is_of_all`) in the same order, so those are counted. How
// often a rank sends to another one is its own affair.
Numbered next_call(const void* comm, int rank, int device, bool is_of_all) noexcept;

// The rank of this process in the first communicator that it joined. -1: it joined none, or several times.
struct OwnRank {
    int rank = -1;
    int ranks = 0;
};
OwnRank own_rank() noexcept;

// The ranks of the first communicator in this process, where they are several.
struct Members {
    int count = 0;
    std::string text;  // "rank 0 on device 0, rank 1 on device 1 of communicator 9f3c"
};
Members members() noexcept;

}  // namespace mp::raw
