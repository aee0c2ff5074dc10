#pragma once

#include "analyzer/facts/model.hpp"
#include "clang/AST/Decl.h"

namespace mp::lint::walk {

// Types whose template arguments fix a computation (wmma, cub, CUTLASS, CuTe), as the type of a variable or
// under an alias; and aliases that libraries read by name (ElementAccumulator).
void add_type_use(const clang::VarDecl&, Function& out);
void add_type_use(const clang::TypedefNameDecl&, Function& out);
// The same for declarations outside functions, and for constants that choose how a library computes (static
// const cublasComputeType_t compute = CUBLAS_COMPUTE_16F, as traits do).
void add_outside_use(const clang::Decl&, Function& out);

}  // namespace mp::lint::walk
