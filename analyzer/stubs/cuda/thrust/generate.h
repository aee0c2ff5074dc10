#pragma once
#include "mp_thrust.h"
