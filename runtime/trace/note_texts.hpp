#pragma once

#include <string>
#include <string_view>

// Texts of notes, or their beginnings, that one room records and others read.

namespace mp::trace {

// The text of an end that takes the one before it back: a worker of a pool has begun another task.
inline constexpr const char* kInTask = "in a task";

// The text of an end by a status of the process other than 0; empty for 0. Whoever waits for it sees its low byte.
inline constexpr std::string_view kExitStatus = "exit status ";
inline std::string end_by(int status) {
    const int seen = status & 0xff;
    return seen == 0 ? std::string() : std::string(kExitStatus) + std::to_string(seen);
}

// A kernel of which only the name was seen, and how often it ran.
inline constexpr const char* kSeenByName = "kernel seen by its name only: ";
// The text for a CUDA graph that ran.
inline constexpr const char* kGraph = "a CUDA graph";
// The number of the step follows, from which on another optimizer counts: of another training of the process, or the
// first one again.
inline constexpr std::string_view kNewTraining = "a new optimizer counts the steps from step ";
inline constexpr std::string_view kCountsAgain = "an optimizer that came back counts the steps from step ";
// The last steps of the program were not counted; the number of the step follows that they are part of.
inline constexpr std::string_view kPartOfAStep = "steps of another optimizer are part of step ";
// Products with a 16-bit result whose sums cuBLAS may split, and add the parts in 16 bits.
inline constexpr const char* kLooseSums = "products that leave it to cuBLAS whether it adds in 16 bits";

}  // namespace mp::trace
