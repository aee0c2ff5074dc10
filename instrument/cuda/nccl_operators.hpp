#pragma once

#include <optional>

namespace mp::raw {

// By what an operator that the program made with ncclRedOpCreatePreMulSum() multiplies what this rank of `comm` sends.
// None: it is not known. Safe from any thread.
std::optional<double> factor_of_operator(const void* comm, int op) noexcept;

}  // namespace mp::raw
