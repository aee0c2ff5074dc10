#pragma once
#include "mp_cutlass.h"
