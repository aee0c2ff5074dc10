#pragma once

#include <torch/torch.h>

#include <string>
#include <utility>
#include <vector>

namespace sharded {

constexpr int kContext = 32;
constexpr int kWidth = 64;
constexpr int kHeads = 4;
constexpr int kLayers = 2;

// The text as token numbers, and the size of its alphabet.
std::pair<torch::Tensor, int64_t> load_text(const std::string& path);

// A linear layer in the dtype of its input. A CPU of this libtorch multiplies no fp16 matrices: there the
// product is made in fp32 and rounded, as a GPU does it.
torch::Tensor through(torch::nn::Linear& layer, const torch::Tensor& x);
torch::Tensor through(torch::nn::LayerNorm& layer, const torch::Tensor& x);

// The logits as half_head.cpp makes them.
torch::Tensor half_head(torch::nn::Linear& head, const torch::Tensor& x);

struct BlockImpl : torch::nn::Module {
    BlockImpl();
    torch::Tensor forward(torch::Tensor x, const torch::Tensor& mask);

    torch::nn::LayerNorm norm1{nullptr}, norm2{nullptr};
    torch::nn::Linear qkv{nullptr}, out{nullptr}, up{nullptr}, down{nullptr};
};
TORCH_MODULE(Block);

struct GptImpl : torch::nn::Module {
    explicit GptImpl(int64_t vocabulary);
    torch::Tensor forward(const torch::Tensor& tokens);

    torch::nn::Embedding tokens{nullptr}, positions{nullptr};
    std::vector<Block> blocks;
    torch::nn::LayerNorm norm{nullptr};
    torch::nn::Linear head{nullptr};
    torch::Tensor mask;
    bool narrow_head = false;  // the logits of half_head.cpp
};
TORCH_MODULE(Gpt);

}  // namespace sharded
