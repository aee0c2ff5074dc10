#include "model.hpp"

#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>

namespace sharded {
namespace {

torch::Tensor wide(const torch::Tensor& x) { return x.scalar_type() == torch::kHalf ? x.to(torch::kFloat) : x; }

torch::Tensor product(const torch::Tensor& a, const torch::Tensor& b) {
    return torch::matmul(wide(a), wide(b)).to(a.scalar_type());
}

torch::nn::Linear linear(int64_t in, int64_t out, bool bias = true) {
    return torch::nn::Linear(torch::nn::LinearOptions(in, out).bias(bias));
}

torch::nn::LayerNorm layer_norm() { return torch::nn::LayerNorm(torch::nn::LayerNormOptions({kWidth})); }

}  // namespace

std::pair<torch::Tensor, int64_t> load_text(const std::string& path) {
    std::ifstream file(path);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    if (text.size() <= kContext) throw std::runtime_error("no text in " + path);
    const std::set<char> alphabet(text.begin(), text.end());
    std::map<char, int64_t> number;
    for (const char c : alphabet) number.emplace(c, static_cast<int64_t>(number.size()));
    std::vector<int64_t> tokens;
    for (const char c : text) tokens.push_back(number[c]);
    return {torch::tensor(tokens), static_cast<int64_t>(alphabet.size())};
}

torch::Tensor through(torch::nn::Linear& layer, const torch::Tensor& x) {
    const torch::Tensor bias = layer->bias.defined() ? wide(layer->bias) : layer->bias;
    return torch::linear(wide(x), wide(layer->weight), bias).to(x.scalar_type());
}

torch::Tensor through(torch::nn::LayerNorm& layer, const torch::Tensor& x) {
    return torch::layer_norm(wide(x), {kWidth}, wide(layer->weight), wide(layer->bias)).to(x.scalar_type());
}

BlockImpl::BlockImpl() {
    norm1 = register_module("norm1", layer_norm());
    norm2 = register_module("norm2", layer_norm());
    qkv = register_module("qkv", linear(kWidth, 3 * kWidth));
    out = register_module("out", linear(kWidth, kWidth));
    up = register_module("up", linear(kWidth, 4 * kWidth));
    down = register_module("down", linear(4 * kWidth, kWidth));
}

torch::Tensor BlockImpl::forward(torch::Tensor x, const torch::Tensor& mask) {
    const int64_t batch = x.size(0), time = x.size(1);
    const torch::Tensor heads = through(qkv, through(norm1, x)).view({batch, time, 3, kHeads, -1});
    const std::vector<torch::Tensor> parts = heads.permute({2, 0, 3, 1, 4}).unbind(0);
    const torch::Tensor scores = product(parts[0], parts[1].transpose(-2, -1)) / std::sqrt(double(kWidth) / kHeads);
    const torch::Tensor hidden = scores.masked_fill(mask, -std::numeric_limits<double>::infinity());
    const torch::Tensor weights = torch::softmax(wide(hidden), -1).to(x.scalar_type());
    const torch::Tensor mixed = product(weights, parts[2]).transpose(1, 2).reshape({batch, time, kWidth});
    x = x + through(out, mixed);
    return x + through(down, torch::gelu(wide(through(up, through(norm2, x)))).to(x.scalar_type()));
}

GptImpl::GptImpl(int64_t vocabulary) : mask(torch::ones({kContext, kContext}).triu(1).to(torch::kBool)) {
    tokens = register_module("tokens", torch::nn::Embedding(vocabulary, kWidth));
    positions = register_module("positions", torch::nn::Embedding(kContext, kWidth));
    for (int i = 0; i < kLayers; ++i) blocks.push_back(register_module("block" + std::to_string(i), Block()));
    norm = register_module("norm", layer_norm());
    head = register_module("head", linear(kWidth, vocabulary, false));
}

torch::Tensor GptImpl::forward(const torch::Tensor& batch) {
    torch::Tensor x = tokens->forward(batch) + positions->forward(torch::arange(batch.size(1)));
    for (Block& block : blocks) x = block->forward(x, mask);
    const torch::Tensor features = through(norm, x);
    return narrow_head ? half_head(head, features) : through(head, features);
}

}  // namespace sharded
