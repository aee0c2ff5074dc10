#include "instrument/torch/test_hooks.hpp"

#include <cstdlib>

namespace mp::twin {

bool rule_disabled(std::string_view rule) noexcept {
    static const char* const disabled = std::getenv("MP_TRACE_TEST_DISABLE_RULE");
    return disabled && rule == disabled;
}

int late_steps() noexcept {
    const char* const steps = std::getenv("MP_TRACE_TEST_LATE");
    return steps ? std::atoi(steps) : 0;
}

bool fake_device() noexcept { return std::getenv("MP_TRACE_TEST_DEVICE") != nullptr; }

std::FILE* op_log() noexcept {
    static const char* const path = std::getenv("MP_TRACE_TEST_OPLOG");
    static std::FILE* const file = path ? std::fopen(path, "w") : nullptr;
    return file;
}

}  // namespace mp::twin
