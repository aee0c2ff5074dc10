#pragma once

#include <mp_torch_atomics.h>
