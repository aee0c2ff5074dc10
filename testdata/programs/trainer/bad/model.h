#pragma once

#include <torch/torch.h>

struct ModelConfig {
    int64_t vocabulary = 256;
    int64_t width = 64;
    int64_t layers = 2;
    int64_t context = 64;
};

class BlockImpl : public torch::nn::Module {
public:
    explicit BlockImpl(int64_t width);
    torch::Tensor forward(const torch::Tensor& x);

private:
    torch::nn::LayerNorm norm_{nullptr};
    torch::nn::Linear qkv_{nullptr};
    torch::nn::Linear out_{nullptr};
    torch::nn::Linear up_{nullptr};
    torch::nn::Linear down_{nullptr};
};
TORCH_MODULE(Block);

class ModelImpl : public torch::nn::Module {
public:
    explicit ModelImpl(const ModelConfig& config);
    torch::Tensor forward(const torch::Tensor& tokens);

private:
    torch::nn::Embedding embedding_{nullptr};
    torch::nn::Sequential blocks_{nullptr};
    torch::nn::Linear head_{nullptr};
};
TORCH_MODULE(Model);
