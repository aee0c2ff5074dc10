#pragma once
#include "../../cuda/mp_cuda.h"
