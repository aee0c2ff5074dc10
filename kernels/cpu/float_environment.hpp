#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace mp::cpu {

// The program under test may flush subnormals (torch.set_flush_denormal), use another rounding mode or
// trap. Measuring runs with the defaults and restores the program's mode and its exception flags
// afterwards.
class FloatEnvironment {
public:
#if defined(__x86_64__)
    // Writing the register costs more than measuring a small tensor, so it is written only when it differs.
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
    static constexpr unsigned kFlags = 0x3F;       // raised exceptions
    static constexpr unsigned kDefaults = 0x1F80;  // all exceptions masked, round to nearest, no flushing
    unsigned saved_;
#endif
};

}  // namespace mp::cpu
