#pragma once

// CUDA's place of a thread: threadIdx, blockIdx, blockDim, gridDim.

#include "clang/AST/Expr.h"
#include "llvm/ADT/StringRef.h"

namespace mp::lint {

// "x" of `threadIdx.x`, where `object` is "threadIdx"; empty for other expressions.
llvm::StringRef coordinate_of(const clang::Expr*, llvm::StringRef object);
// threadIdx.x, blockIdx.y: differs from thread to thread or from block to block.
bool is_position(const clang::Expr*);

}  // namespace mp::lint
