#include "tests/fakes/cuda/calls.hpp"

#include <cstdlib>
#include <mutex>

namespace mp::fake {
namespace {

std::mutex g_mutex;
std::string& last() {
    static auto* const text = new std::string;
    return *text;
}

}  // namespace

void remember(const std::string& call) {
    const std::lock_guard lock(g_mutex);
    last() = call;
}

std::string last_call() {
    const std::lock_guard lock(g_mutex);
    return last();
}

bool only_remembers() {
    static const bool only = std::getenv("MP_FAKE_CUDA_CALLS") != nullptr;
    return only;
}

}  // namespace mp::fake
