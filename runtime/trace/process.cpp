#include "runtime/trace/process.hpp"

#include <unistd.h>

#include <chrono>

#include "kernels/base/version.hpp"

namespace mp::trace {

std::string executable() {
    char path[4096];
    const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
    return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : std::string();
}

ProcessRecord describe_process(const Identity& identity) {
    using namespace std::chrono;
    ProcessRecord process;
    process.rank = identity.rank;
    process.local_rank = identity.local_rank;
    process.world_size = identity.world_size;
    process.restart = identity.restart;
    process.pid = identity.pid;
    process.started_unix_ns = duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
    process.host = identity.host;
    process.job = identity.job;
    process.launcher = identity.launcher;
    process.adapter = "mp-trace " + std::string(kVersion);
    return process;
}

}  // namespace mp::trace
