#pragma once

#include <cuda_runtime.h>
#include <nccl.h>
#include <torch/torch.h>

#include <vector>

// Averages gradients over all ranks, in place.
class Communicator {
public:
    Communicator();
    ~Communicator();
    Communicator(const Communicator&) = delete;
    Communicator& operator=(const Communicator&) = delete;

    void average_gradients(const std::vector<torch::Tensor>& parameters);

private:
    ncclComm_t comm_ = nullptr;
    cudaStream_t stream_ = nullptr;
};
