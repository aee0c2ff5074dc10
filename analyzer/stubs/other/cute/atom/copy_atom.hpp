#pragma once
#include "../mp_cute.h"
