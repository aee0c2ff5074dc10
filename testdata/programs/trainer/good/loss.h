#pragma once

#include <torch/torch.h>

// Cross entropy of the next token plus a gate penalty that keeps `gates` (logits) near `target`.
torch::Tensor training_loss(const torch::Tensor& logits, const torch::Tensor& tokens,
                            const torch::Tensor& gates, const torch::Tensor& target);

// Spread of the logits, logged beside the loss.
torch::Tensor scaled_logits(const torch::Tensor& hidden, const torch::Tensor& head);
