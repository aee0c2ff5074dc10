#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace mp::cuda {

// A kernel of kernels/cuda whose body is compiled for the host. It takes one argument, its list, and runs all blocks.
struct HostKernel {
    std::string name;
    std::size_t bytes;  // of the list
    void (*run)(const void* list);
};

// Null: there is no such kernel.
const HostKernel* host_kernel(std::string_view name);

}  // namespace mp::cuda
