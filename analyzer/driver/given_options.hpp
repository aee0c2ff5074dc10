#pragma once

// What the texts of a project turn on: scripts, configurations and documents, and the text of its code.

#include <cstdint>
#include <string_view>
#include <vector>

namespace mp::lint {

enum class TextKind : std::uint8_t { code, data };

// Scripts, configurations and documents: .sh, .yaml, .json, .toml, .md, Makefile ...
bool is_project_text(std::string_view path);

// Sorted hashes of the options that the text turns on: `--fp16` of a command, `fp16 = True` of code, `fp16: O1` of a
// configuration; and of "mixed_precision=fp16" for values that name a precision. What defines an option does not turn
// it on: parser.add_argument("--fp16").
std::vector<std::uint64_t> given_options(std::string_view text, TextKind);

}  // namespace mp::lint
