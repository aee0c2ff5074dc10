#include <atomic>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "instrument/cuda/process.hpp"

// MP_TRACE_TEST_FAIL=nccl:3 makes the third point of that source throw.
namespace mp::raw {

void fail_on_purpose(Source source) {
    static constexpr const char* kNames[kSources] = {"nvtx", "cublas", "nccl", "cupti", "activity"};
    static const char* const wanted = std::getenv("MP_TRACE_TEST_FAIL");
    static std::atomic<int> points[kSources];
    const char* const name = kNames[static_cast<int>(source)];
    const std::size_t length = std::strlen(name);
    if (!wanted || std::strncmp(wanted, name, length) != 0 || wanted[length] != ':') return;
    if (++points[static_cast<int>(source)] == std::atoi(wanted + length + 1))
        throw std::runtime_error("on purpose");
}

}  // namespace mp::raw
