#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kernels/base/result.hpp"
#include "runtime/launch/target.hpp"
#include "runtime/launch/variables.hpp"

namespace mp::launch {

// A libtorch on this machine.
struct Torch {
    std::string library;  // libtorch_cpu.so; symbolic links are not resolved
    std::string root;     // contains include/ATen: site-packages/torch, or /usr; empty: headers are not
                          // installed
    std::string id;       // adapter_id(library)
    std::string version;  // "2.11.0+cu130"; empty: unknown
};

// The torch that `python` would import, found without importing it, in its own environment (user site,
// PYTHONPATH, virtual environment), but never in the working directory. Nothing: there is no torch. An
// Error: the interpreter did not answer.
Result<std::optional<Torch>> torch_of_python(const std::string& python, const Variables&);

// The libtorch_cpu.so that ld.so would map for an ELF program, found with the program's own loader. The
// program is not run. Nothing: it is not linked with torch.
std::optional<Torch> torch_of_program(const std::string& program, const Variables&);

// The torch in `directory`: site-packages/torch, an unpacked libtorch, or a prefix like /usr.
Result<Torch> torch_at(const std::string& directory);

// The torch of the program in a command line, found by the two functions above. An Error only when an
// interpreter did not answer.
Result<std::optional<Torch>> torch_of_command(const std::vector<std::string>& command, const Variables&);

// The path in a line of ld.so's list, "\tlibtorch_cpu.so.1.13 => /usr/lib/... (0x7f...)"; empty for other
// lines.
std::string torch_in_list_line(std::string_view line);
// '2.11.0+cu130' in a torch/version.py; empty: none.
std::string version_in(std::string_view version_py);

}  // namespace mp::launch
