#pragma once

#include "analyzer/facts/model.hpp"
#include "clang/AST/Decl.h"

namespace mp::lint::walk {

// Types whose template arguments fix a computation (wmma, cub, CUTLASS, CuTe), where a variable has
// one or an alias names one; and aliases that libraries read by name (ElementAccumulator).
void add_type_use(const clang::VarDecl&, Function& out);
void add_type_use(const clang::TypedefNameDecl&, Function& out);
// Declarations outside functions: the same aliases, and constants that choose how a library computes
// (static const cublasComputeType_t compute = CUBLAS_COMPUTE_16F, as traits do).
void add_outside_use(const clang::Decl&, Function& out);

}  // namespace mp::lint::walk
