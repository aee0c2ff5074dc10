// Everything, for headers whose own content is nowhere else.
#pragma once

#include "torch/mp_torch.h"
#include "ATen/AccumulateType.h"
#include "ATen/OpMathType.h"
#if defined(__CUDA__) || __has_include(<cuda_runtime.h>)
#include "ATen/cuda/mp_cuda.h"
#endif
