#pragma once

#include <cstdint>

namespace mp::cuda {

// How a call of the kernels ended.
enum class Status : std::uint8_t {
    ok,
    no_kernels,   // built without nvcc
    no_driver,    // no libcuda.so.1, or one that is too old
    no_context,   // the calling thread has no current CUDA context
    refused,      // the driver refused; Outcome::code is its CUresult
    unsupported,  // a dtype, a number of dimensions, or sizes that differ; nothing was launched
    capturing,    // the stream records a CUDA graph; nothing was launched
};

struct Outcome {
    Status status = Status::ok;
    int code = 0;  // CUresult where `refused`

    explicit operator bool() const { return status == Status::ok; }
};

// What a CUresult means.
inline Outcome outcome_of(int code) { return code == 0 ? Outcome{} : Outcome{Status::refused, code}; }

const char* name_of(Status) noexcept;

}  // namespace mp::cuda
