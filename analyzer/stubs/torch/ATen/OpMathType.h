// The type to compute in: float for halves, the type itself otherwise.
#pragma once
#include "mp_tensor.h"
namespace at {
template <class T> struct OpMathType { using type = T; };
template <> struct OpMathType<Half> { using type = float; };
template <> struct OpMathType<BFloat16> { using type = float; };
template <> struct OpMathType<Float8_e4m3fn> { using type = float; };
template <> struct OpMathType<Float8_e5m2> { using type = float; };
template <class T> using opmath_type = typename OpMathType<T>::type;
template <class T> using opmath_t = typename OpMathType<T>::type;
}  // namespace at
