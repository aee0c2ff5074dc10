#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace mp::cpu {

// The program under test may flush subnormals (torch.set_flush_denormal), round otherwise or trap: measuring
// runs with the defaults, and leaves the program's mode and its exception flags as they were.
class FloatEnvironment {
public:
#if defined(__x86_64__)
    // Writing the register costs more than a small tensor, so it is written only where it differs.
    FloatEnvironment() noexcept : saved_(_mm_getcsr()) {
        if ((saved_ & ~kFlags) != kDefaults) _mm_setcsr(kDefaults);
    }
    ~FloatEnvironment() {
        if (_mm_getcsr() != saved_) _mm_setcsr(saved_);
    }
#else
    FloatEnvironment() noexcept = default;
    ~FloatEnvironment() = default;
#endif
    FloatEnvironment(const FloatEnvironment&) = delete;
    FloatEnvironment& operator=(const FloatEnvironment&) = delete;

private:
#if defined(__x86_64__)
    static constexpr unsigned kFlags = 0x3F;       // exceptions that have happened
    static constexpr unsigned kDefaults = 0x1F80;  // all exceptions masked, to nearest, no flushing
    unsigned saved_;
#endif
};

}  // namespace mp::cpu
