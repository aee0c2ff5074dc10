#pragma once

#include <string>

namespace mp::twin {

// "train.py:88", the innermost Python frame of this thread outside torch and outside the shim. Empty without Python on
// this thread, or at its end. Takes the GIL, so callers hold no lock.
std::string innermost_user_frame();

}  // namespace mp::twin
