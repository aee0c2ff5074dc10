#pragma once
#include "mp_cuda.h"
