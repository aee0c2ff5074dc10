#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdio>
#include <vector>

// Numbers in device memory, of a program that prints what becomes of them. The memory is freed when the program ends.
template <class T>
class DeviceTensor {
public:
    explicit DeviceTensor(const std::vector<T>& values) : count_(values.size()) {
        cudaMalloc(reinterpret_cast<void**>(&data_), count_ * sizeof(T));
        cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice);
    }
    operator T*() const { return data_; }
    // A sum that depends on the place of each number.
    void print(const char* name) const {
        std::vector<T> values(count_);
        cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost);
        double sum = 0;
        for (std::size_t i = 0; i < count_; ++i)
            sum += static_cast<double>(static_cast<float>(values[i])) * static_cast<double>(i % 11 + 1);
        std::printf("%s %a\n", name, sum);
    }

private:
    T* data_ = nullptr;
    std::size_t count_;
};
