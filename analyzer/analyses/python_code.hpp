#pragma once

// Properties of code beside its calls: whether it is a test, and whether a branch has already tested the dtype.

#include <cstdint>
#include <string_view>

#include "analyzer/analyses/context.hpp"
#include "analyzer/analyses/finding.hpp"
#include "analyzer/facts/model.hpp"
#include "analyzer/region/calls.hpp"

namespace mp::lint {

// Tests compare precisions on purpose, benchmarks run without a training to protect, and a copy of another project
// (third_party/cutlass) is mended there. What is put away (archive/, deprecated/) is kept as it was.
enum class CodeKind : std::uint8_t { product, test, benchmark, vendored, retired };
CodeKind code_kind(std::string_view path);
// The same of a file of the program: directories above the project do not count, and a copy of a well-known library in
// a place where its own repository does not have it is known by its layout (model/llava/train/train.py). Each file is
// looked at once per run.
CodeKind code_kind(const RuleContext&, Symbol file);
// A note in all code but the product.
Severity severity_in(CodeKind, Severity);

bool is_header(std::string_view path);  // .h .hh .hpp .hxx .cuh

// The library whose copy this file of the program is; empty: not known to be one.
std::string_view copied_library(const RuleContext&, Symbol file);

// Its name says that it tries something out: a test, or code that measures (test_scan(), profile()).
CodeKind kind_by_name(const Function&);

// Torch calls it with tensors that have shapes and no elements, when it traces a custom op:
// @torch.library.register_fake, impl_abstract, a kernel for the key Meta.
bool describes_shapes(const Function&);

// The block runs only on one side of a branch that tests for a floating dtype or for a precision flag: `if
// x.dtype == torch.float16`, `if self.fp16`. The code in it was written for that side.
bool is_dtype_guarded(const Function&, std::uint32_t block);
// The same, without settings that are on where nothing else is given: def run(amp=True), cfg.get("amp", True).
bool is_left_to_setting(const Function&, std::uint32_t block);
// The comparison with a dtype that decides whether the block runs; nullptr when there is none.
const Call* dtype_test(const Function&, std::uint32_t block);
// The same of a branch that tests for CUDA: `if x.is_cuda`.
bool is_cuda_guarded(const Function&, std::uint32_t block);
// The block runs only where a test for CUDA failed: the `else` of `if device == "cuda"`.
bool is_without_cuda(const Function&, std::uint32_t block);
// The block runs only on one side of a branch, whatever that tests.
bool is_conditional(const Function&, std::uint32_t block);
// ... where a branch whose condition is not known counts, and the one of a loop.
bool is_behind_branch(const Function&, std::uint32_t block);

}  // namespace mp::lint
