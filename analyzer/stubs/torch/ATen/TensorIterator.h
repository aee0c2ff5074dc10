#pragma once
#include <ATen/mp_tensor.h>
