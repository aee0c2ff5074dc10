#pragma once

// Translates nvcc's options into clang's.

#include <string>
#include <vector>

#include "analyzer/clang/command_line.hpp"

namespace mp::lint {

// `arguments`: without the compiler, response files expanded. Drops options for other stages (ptxas,
// linker), unpacks options for the host compiler, and adds numerics flags and architectures to the notes.
std::vector<std::string> nvcc_to_clang(const std::vector<std::string>& arguments, CommandNotes&);

// Adds every sm_N and compute_N in an architecture option of nvcc or clang
// ("arch=compute_80,code=[sm_80]").
void note_architectures(const std::string& value, CommandNotes&);

// The architecture to parse for: the highest named one that clang 19 supports (up to sm_90a), sm_90 when
// all are newer, sm_80 when none is named.
std::string choose_architecture(const std::vector<std::string>& named);

}  // namespace mp::lint
