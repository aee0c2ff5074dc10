#pragma once

#include <cstdint>
#include <string>

#include "kernels/base/result.hpp"

namespace mp::launch {

// What the headers of an ELF file say. Read with bounds: a hostile file gives an Error or less, no crash
// and no large allocation.
struct ElfFacts {
    int bits = 0;  // 32 or 64
    bool little_endian = true;
    std::uint16_t machine = 0;  // e_machine
    std::string interpreter;    // PT_INTERP; empty: static, or a shared library
    std::string build_id;       // lower-case hex of NT_GNU_BUILD_ID; empty: none
};

// An Error when the file cannot be read or is no ELF file. Of a 32-bit or foreign-endian file only the
// first three fields are known.
Result<ElfFacts> read_elf(const std::string& path);

// Names the build of a libtorch_cpu.so: the first 16 hex digits of its GNU build id, "size-<bytes>" when it
// has none. The preload computes the same from the library in memory.
Result<std::string> adapter_id(const std::string& libtorch_cpu);

}  // namespace mp::launch
