#pragma once
#include <c10/mp_c10.h>
