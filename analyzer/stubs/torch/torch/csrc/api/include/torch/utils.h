#pragma once
#include <torch/mp_torch.h>
