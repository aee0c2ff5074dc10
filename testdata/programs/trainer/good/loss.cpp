#include "loss.h"

torch::Tensor training_loss(const torch::Tensor& logits, const torch::Tensor& tokens,
                            const torch::Tensor& gates, const torch::Tensor& target) {
    auto next = torch::nn::functional::cross_entropy(logits.flatten(0, 1), tokens.flatten());
    auto gate = torch::binary_cross_entropy_with_logits(gates, target);
    return next + 0.01 * gate;
}

torch::Tensor scaled_logits(const torch::Tensor& hidden, const torch::Tensor& head) {
    auto logits = torch::matmul(hidden, head);
    auto wide = logits.to(torch::kFloat);
    return wide / torch::var(wide);
}
