#pragma once

#include <string>
#include <vector>

#include "instrument/torch/compat.hpp"

namespace mp::twin {

struct NamedTensor {
    std::string name;
    at::Tensor tensor;  // contiguous, on the CPU, fp32 or fp64
};

// Writes a safetensors file: 8 bytes of header length, a JSON header, the values. The file appears completely
// or not at all. Returns an error text, or "". Format: github.com/huggingface/safetensors, README.
std::string write_safetensors(const std::string& path, std::vector<NamedTensor>);

}  // namespace mp::twin
