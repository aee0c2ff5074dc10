#pragma once
#include "mp_atomics.h"
