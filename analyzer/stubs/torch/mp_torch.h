// Everything the torch stubs know; each of PyTorch's header names forwards here.
#pragma once

#include "mp_torch_cuda.h"
#include "mp_torch_library.h"
#include "mp_torch_nn.h"
