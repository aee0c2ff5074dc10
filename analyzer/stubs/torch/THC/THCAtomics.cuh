#pragma once
#include "../ATen/cuda/mp_atomics.h"
