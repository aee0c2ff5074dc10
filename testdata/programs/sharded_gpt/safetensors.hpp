#pragma once

#include <torch/torch.h>

#include <map>
#include <string>
#include <vector>

namespace sharded {

using NamedTensors = std::map<std::string, torch::Tensor>;

// Tensors as F32 and "losses" as F64, little-endian. Throws std::runtime_error when the file cannot be written.
void write_safetensors(const std::string& path, const NamedTensors&, const std::vector<double>& losses);

}  // namespace sharded
