// The training loop: one rank of a data-parallel run under CUDA autocast with dynamic loss scaling.
#include "all_reduce.h"
#include "amp.h"
#include "loss.h"
#include "model.h"

namespace {

struct Batch {
    torch::Tensor tokens;
    torch::Tensor gates;
    torch::Tensor target;
};

Batch next_batch(const ModelConfig& config) {
    const auto tokens = torch::randint(config.vocabulary, {8, config.context});
    return {tokens, torch::rand({8}), torch::rand({8})};
}

// Validation under autocast, with early stopping.
double validate(Model& model, const ModelConfig& config, int batches, double stop_above) {
    torch::NoGradGuard no_grad;
    double total = 0;
    const AmpGuard amp(at::kHalf);
    for (int i = 0; i < batches; ++i) {
        const Batch batch = next_batch(config);
        const auto logits = model->forward(batch.tokens);
        total += torch::nn::functional::cross_entropy(logits.flatten(0, 1), batch.tokens.flatten()).item<double>();
        if (total > stop_above) return total;
    }
    return total / batches;
}

torch::Tensor forward_and_loss(Model& model, const Batch& batch) {
    const AmpGuard amp(at::kHalf);
    const auto logits = model->forward(batch.tokens);
    const auto scaled = scaled_logits(logits, logits.transpose(-2, -1));
    return training_loss(logits, batch.tokens, batch.gates, batch.target) + 1e-3 * scaled.mean();
}

}  // namespace

int main() {
    const ModelConfig config;
    Model model(config);
    model->to(torch::kCUDA);
    torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(3e-4));
    GradScaler scaler;
    Communicator communicator;
    for (int step = 0; step < 100; ++step) {
        const Batch batch = next_batch(config);
        const auto loss = forward_and_loss(model, batch);
        optimizer.zero_grad();
        scaler.scale(loss).backward();
        communicator.average_gradients(model->parameters());
        scaler.unscale_(model->parameters());
        torch::nn::utils::clip_grad_norm_(model->parameters(), 1.0);
        scaler.step(optimizer);
        scaler.update();
        if (step % 20 == 0) validate(model, config, 4, 1e4);
    }
    return 0;
}
