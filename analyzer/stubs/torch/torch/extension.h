#pragma once
#include "mp_torch.h"
#include "../pybind11/pybind11.h"
namespace py = pybind11;
