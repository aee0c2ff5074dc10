#pragma once

#include <string>
#include <string_view>

namespace mp::raw {

// What a kernel reads and writes, as far as its demangled name shows: "reads bf16; writes bf16, fp32". A pointer to
// const is read, another one written. Empty: the name has no pointers to numbers, as that of an extern "C" kernel.
std::string pointers_of(std::string_view demangled);

}  // namespace mp::raw
