// The type to accumulate in: float for halves on every device, double for float on the CPU.
#pragma once

#include "mp_tensor.h"

namespace at {
template <class T, bool Cuda> struct AccumulateType { using type = T; };
template <bool Cuda> struct AccumulateType<Half, Cuda> { using type = float; };
template <bool Cuda> struct AccumulateType<BFloat16, Cuda> { using type = float; };
template <bool Cuda> struct AccumulateType<Float8_e4m3fn, Cuda> { using type = float; };
template <bool Cuda> struct AccumulateType<Float8_e5m2, Cuda> { using type = float; };
#if defined(__CUDA__)
template <bool Cuda> struct AccumulateType<__half, Cuda> { using type = float; };
#endif
template <> struct AccumulateType<float, false> { using type = double; };
template <bool Cuda> struct AccumulateType<int8_t, Cuda> { using type = int64_t; };
template <bool Cuda> struct AccumulateType<uint8_t, Cuda> { using type = int64_t; };
template <bool Cuda> struct AccumulateType<int16_t, Cuda> { using type = int64_t; };
template <bool Cuda> struct AccumulateType<int32_t, Cuda> { using type = int64_t; };
template <class T, bool Cuda> using acc_type = typename AccumulateType<T, Cuda>::type;
ScalarType toAccumulateType(ScalarType, bool);
}  // namespace at
