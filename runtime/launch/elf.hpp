#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/base/result.hpp"

namespace mp::launch {

// The headers of an ELF file. All reads are bounded: a hostile file leads to an Error or missing values,
// but not to a crash or a large allocation.
struct ElfFacts {
    int bits = 0;  // 32 or 64
    bool little_endian = true;
    std::uint16_t machine = 0;  // e_machine
    std::string interpreter;    // PT_INTERP; empty: static, or a shared library
    std::string build_id;       // lower-case hex of NT_GNU_BUILD_ID; empty: none
};

// An Error when the file cannot be read or is not an ELF file. For a 32-bit or foreign-endian file only the
// first three fields are set.
Result<ElfFacts> read_elf(const std::string& path);

// The names of the translation units that the linker put into a file, without their folders ("train.cu"), each once and
// in order. nvcc's names of its intermediate files become that of the source. Empty: the file was stripped, or cannot
// be read. Units of libraries that are linked statically are among them.
std::vector<std::string> unit_names(const std::string& path);

// Identifies the build of a libtorch_cpu.so: the first 16 hex digits of its GNU build id, or "size-<bytes>"
// when it has none. The preload computes the same ID from the library in memory.
Result<std::string> adapter_id(const std::string& libtorch_cpu);

}  // namespace mp::launch
