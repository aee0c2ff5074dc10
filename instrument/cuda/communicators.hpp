#pragma once

#include <cstdint>

namespace mp::raw {

// The communicators of NCCL that this process has made, by numbers that all of their ranks know without asking each
// other: from the id with which they were made. Safe from any thread.
struct Numbered {
    std::uint64_t communicator = 0;  // 0: it is not known how it was made
    std::uint64_t call = 0;
};

// `id`: of `bytes` bytes, the same on all ranks.
void note_communicator(const void* comm, const void* id, std::uint64_t bytes) noexcept;
// A part of `parent`, which all of its ranks split in the same order.
void note_split(const void* comm, const void* parent, int color) noexcept;
// The next collective of a communicator; all ranks call them in the same order.
Numbered next_call(const void* comm) noexcept;

}  // namespace mp::raw
