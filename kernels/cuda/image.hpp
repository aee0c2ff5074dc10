#pragma once

namespace mp::cuda {

// The kernels for all supported devices, as nvcc's fatbin. A build without nvcc has none.
bool has_image() noexcept;
const void* image() noexcept;

}  // namespace mp::cuda
