#include "model.h"

#include <cmath>

BlockImpl::BlockImpl(int64_t width) {
    norm_ = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
    qkv_ = register_module("qkv", torch::nn::Linear(width, 3 * width));
    out_ = register_module("out", torch::nn::Linear(width, width));
    up_ = register_module("up", torch::nn::Linear(width, 4 * width));
    down_ = register_module("down", torch::nn::Linear(4 * width, width));
}

torch::Tensor BlockImpl::forward(const torch::Tensor& x) {
    const auto parts = qkv_->forward(norm_->forward(x)).chunk(3, -1);
    const double scale = 1.0 / std::sqrt(static_cast<double>(x.size(-1)));
    auto weights = torch::softmax(torch::matmul(parts[0], parts[1].transpose(-2, -1)) * scale, -1);
    auto y = x + out_->forward(torch::matmul(weights, parts[2]));
    return y + down_->forward(torch::gelu(up_->forward(norm_->forward(y))));
}

ModelImpl::ModelImpl(const ModelConfig& config) {
    embedding_ = register_module("embedding", torch::nn::Embedding(config.vocabulary, config.width));
    blocks_ = register_module("blocks", torch::nn::Sequential());
    for (int64_t i = 0; i < config.layers; ++i) blocks_->push_back(Block(config.width));
    head_ = register_module("head", torch::nn::Linear(config.width, config.vocabulary));
}

torch::Tensor ModelImpl::forward(const torch::Tensor& tokens) {
    auto x = embedding_->forward(tokens);
    x = blocks_->forward(x);
    return head_->forward(x);
}
