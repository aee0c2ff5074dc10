// A program that names its layers, its loss and its steps by mptrace.h: two steps, the second one skipped.
#include <torch/torch.h>

#include "instrument/preload/mptrace.h"

int main() {
    torch::manual_seed(0);
    torch::set_num_threads(1);
    torch::Tensor up = torch::randn({16, 16}, torch::requires_grad());
    torch::Tensor down = torch::randn({16, 4}, torch::requires_grad());
    for (int step = 0; step < 2; ++step) {
        const torch::Tensor x = torch::randn({64, 16}).to(torch::kBFloat16);
        if (mptrace_layer_push) mptrace_layer_push("mlp.up");
        torch::Tensor y = torch::matmul(x, up.to(torch::kBFloat16));
        if (mptrace_layer_pop) mptrace_layer_pop();
        if (mptrace_layer_push) mptrace_layer_push("mlp.down");
        y = torch::matmul(y.relu(), down.to(torch::kBFloat16));
        if (mptrace_layer_pop) mptrace_layer_pop();
        const torch::Tensor loss = y.to(torch::kFloat).square().mean();
        if (mptrace_loss) mptrace_loss(&loss);
        (loss * 1024).backward();
        if (step == 0) {
            const torch::NoGradGuard no_grad;
            for (torch::Tensor* w : {&up, &down}) w->sub_(w->grad(), 1e-3 / 1024);
        }
        for (torch::Tensor* w : {&up, &down}) w->mutable_grad().reset();
        if (mptrace_step) mptrace_step(step == 1, 1024);
        std::printf("%a\n", loss.item<double>());
    }
}
