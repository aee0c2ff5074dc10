#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace mp::trace {

// "communicator 9f3c": a part of the number that all of its ranks know, and that each run has anew.
inline std::string communicator_text(std::uint64_t number) {
    char digits[8];
    std::snprintf(digits, sizeof digits, "%04x", static_cast<unsigned>(number >> 24 & 0xffff));
    return std::string("communicator ") + digits;
}

}  // namespace mp::trace
