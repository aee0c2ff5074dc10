#pragma once
#include "mp_cuda_enums.h"
