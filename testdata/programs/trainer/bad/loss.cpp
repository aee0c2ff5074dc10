#include "loss.h"

torch::Tensor training_loss(const torch::Tensor& logits, const torch::Tensor& tokens,
                            const torch::Tensor& gates, const torch::Tensor& target) {
    auto next = torch::nn::functional::cross_entropy(logits.flatten(0, 1), tokens.flatten());
    auto gate = torch::binary_cross_entropy(gates, target);  // plant: MP103 raises under CUDA autocast; train.cpp calls this in a region
    return next + 0.01 * gate;
}

torch::Tensor scaled_logits(const torch::Tensor& hidden, const torch::Tensor& head) {
    auto logits = torch::matmul(hidden, head);
    return logits / torch::var(logits);  // plant: MP102 var is on no CUDA autocast list: in fp16 it overflows from values of 256 on
}
