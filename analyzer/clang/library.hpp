#pragma once

// The arithmetic meaning of calls of CUDA and the C++ standard library. Only functions in headers, or
// without a body, are looked up; the bodies of user functions are read instead.

#include <cstdint>
#include <optional>

#include "clang/AST/Decl.h"
#include "clang/AST/Expr.h"

namespace mp::lint {

enum class Arithmetic : std::uint8_t {
    none,
    add,
    subtract,
    multiply,
    divide,
    negate,
    fma,
    max,
    min,
    clamp,
    sqrt,
    rsqrt,
    square,
    lerp,
    select,   // c ? a : b
    shuffle,  // the argument's value in another lane
    reduce,   // the sum of the argument over a block, warp or group
};

struct LibraryCall {
    Arithmetic kind = Arithmetic::none;
    unsigned first = 0;  // index of the first operand: shuffles have a mask before it
};

LibraryCall library_call(const clang::FunctionDecl&, const clang::CallExpr&);

// A library function that writes values into memory: cub::BlockStore, memcpy, __stcs. The indices of the
// pointer and of the values among the arguments.
struct LibraryStore {
    unsigned target = 0;
    unsigned source = 0;
};
std::optional<LibraryStore> library_store(const clang::FunctionDecl&, const clang::CallExpr&);

// make_float2, make_half2 ...: a vector of its arguments.
bool is_vector_of(const clang::FunctionDecl&);

// __float2half, __half22float2, __low2float ...: the result is the same value in another format or shape.
bool is_conversion(const clang::FunctionDecl&);

// Functions that reinterpret bits as a number (__uint_as_float, std::bit_cast), or draw random numbers
// (curand, Philox).
bool is_bit_cast(const clang::FunctionDecl&);
bool is_random(const clang::FunctionDecl&);

// Declared in a system header, a reserved name, or without a body.
bool is_library(const clang::FunctionDecl&);

}  // namespace mp::lint
