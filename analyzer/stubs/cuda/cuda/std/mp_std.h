// The device standard library, by the host's.
#pragma once
#include "../../cuda_runtime.h"
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>
#include <complex>
#include <atomic>
#include <initializer_list>
namespace cuda {
namespace std {
using namespace ::std;
}  // namespace std
template <class T = void> struct maximum { template <class A, class B> MP_HD A operator()(A, B) const; };
template <class T = void> struct minimum { template <class A, class B> MP_HD A operator()(A, B) const; };
}  // namespace cuda
