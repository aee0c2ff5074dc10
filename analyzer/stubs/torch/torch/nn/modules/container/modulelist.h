#pragma once
#include "../../../mp_torch.h"
