#pragma once
#include "../mp_c10.h"
