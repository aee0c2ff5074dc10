#pragma once
#include <ATen/cuda/mp_cuda.h>
