#pragma once

#include <cuda.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/fakes/cuda/device.hpp"

// Inside of the fake libcuda.so.1: streams, events and graphs, for driver.cpp.
struct CUgraph_st {
    std::vector<mp::fake::Work> works;
};

struct CUstream_st {
    std::deque<mp::fake::Work> works;
    std::uint64_t submitted = 0, done = 0;
    std::uint32_t number = 0;
    int device = 0;
    bool blocking = true;  // waits for the legacy stream, which waits for it
    bool ended = false;
    std::unique_ptr<CUgraph_st> capture;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    std::thread::id capturer;
    bool invalid = false;  // the capture
};

struct CUevent_st {
    int device = 0;
    CUstream stream = nullptr;
    std::uint64_t until = 0;
    std::uint64_t time = 0;
};

namespace mp::fake {

inline constexpr int kCbidLaunchKernel = 307;  // CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel
inline constexpr int kCbidGraphLaunch = 514;   // CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch

// The parameters as CUPTI's subscriber sees them; generated_cuda_meta.h has them, but does not compile without others.
struct LaunchParameters {
    CUfunction function;
    unsigned grid[3], block[3], shared;
    CUstream stream;
    void **arguments, **extra;
};
struct GraphLaunchParameters {
    CUgraphExec graph;
    CUstream stream;
};

std::mutex& mutex();
// The stream behind a handle. Needs the mutex.
CUstream resolve(CUstream);
// Whether a capture forbids calls that are "potentially unsafe"; such a call makes the capture invalid.
bool forbidden_by_capture();

CUresult make_stream(CUstream*, bool blocking);
CUresult end_stream(CUstream);
CUresult wait_for(CUstream stream, CUstream other, std::uint64_t until);
bool has_passed(CUstream, std::uint64_t until);
void block_until(CUstream, std::uint64_t until);
CUresult wait_all();
// `id`: of the allocation, never used twice. `owner`: the device.
bool range_of(const void*, const char** base, std::size_t* bytes, std::uint64_t* id = nullptr,
              int* owner = nullptr);
CUresult add_pinned(void*, std::size_t bytes);
CUresult remove_pinned(void*);
CUstreamCaptureMode& capture_mode_of_thread();
bool is_of_current(CUstream);

// Tells CUPTI's subscriber of a call, from its begin to its end.
class Announced {
public:
    explicit Announced(const Call&);
    ~Announced();
    Announced(const Announced&) = delete;
    Announced& operator=(const Announced&) = delete;
    std::uint32_t correlation() const { return call_.correlation; }

private:
    void tell(bool enter);

    Call call_;
    Hook hook_;
    std::uint64_t data_ = 0;
};

}  // namespace mp::fake
