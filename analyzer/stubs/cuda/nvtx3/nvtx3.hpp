#pragma once
#include "nvToolsExt.h"
namespace nvtx3 {
struct scoped_range { explicit scoped_range(const char*); ~scoped_range(); };
}  // namespace nvtx3
