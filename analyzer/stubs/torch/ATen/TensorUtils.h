#pragma once
#include "mp_tensor.h"
