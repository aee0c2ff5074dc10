#pragma once

// nvcc's own options in clang's spelling.

#include <string>
#include <vector>

#include "analyzer/clang/command_line.hpp"

namespace mp::lint {

// `arguments` without the compiler, response files expanded. Options for other stages (ptxas, linker)
// go; options for the host compiler come out; numerics flags and architectures go to the notes.
std::vector<std::string> nvcc_to_clang(const std::vector<std::string>& arguments, CommandNotes&);

// Adds every sm_N and compute_N of an nvcc or clang architecture value ("arch=compute_80,code=[sm_80]").
void note_architectures(const std::string& value, CommandNotes&);

// The architecture to parse for: the highest one named that clang 19 knows (up to sm_90a), sm_90 when
// all are newer, sm_80 when none is named.
std::string choose_architecture(const std::vector<std::string>& named);

}  // namespace mp::lint
