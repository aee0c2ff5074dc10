#include "safetensors.hpp"

#include <cstdint>
#include <fstream>
#include <stdexcept>

namespace sharded {
namespace {

// One entry of the header; `end` moves on by the bytes of the tensor.
std::string entry(const std::string& name, const char* dtype, at::IntArrayRef shape, std::size_t bytes,
                  std::size_t& end) {
    std::string dimensions;
    for (const int64_t d : shape) dimensions += (dimensions.empty() ? "" : ",") + std::to_string(d);
    const std::string from = std::to_string(end), to = std::to_string(end + bytes);
    end += bytes;
    return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":[" + dimensions + "],\"data_offsets\":[" + from +
           "," + to + "]}";
}

}  // namespace

void write_safetensors(const std::string& path, const NamedTensors& tensors, const std::vector<double>& losses) {
    std::size_t end = 0;
    const int64_t count = static_cast<int64_t>(losses.size());
    std::string header = "{" + entry("losses", "F64", {count}, losses.size() * sizeof(double), end);
    std::vector<torch::Tensor> dense;
    for (const auto& [name, tensor] : tensors) {
        dense.push_back(tensor.detach().to(torch::kFloat).contiguous());
        header += "," + entry(name, "F32", tensor.sizes(), dense.back().numel() * sizeof(float), end);
    }
    header += "}";
    header.append((8 - header.size() % 8) % 8, ' ');

    std::ofstream file(path, std::ios::binary);
    const std::uint64_t size = header.size();
    file.write(reinterpret_cast<const char*>(&size), sizeof size);
    file << header;
    const auto put = [&file](const void* data, std::size_t bytes) {
        file.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
    };
    put(losses.data(), losses.size() * sizeof(double));
    for (const torch::Tensor& t : dense) put(t.data_ptr(), t.numel() * sizeof(float));
    if (!file) throw std::runtime_error("cannot write " + path);
}

}  // namespace sharded
