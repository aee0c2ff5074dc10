// A small GPT trained with sharded fp32 masters, a 16-bit working copy, fp16 gradients on the wire and a dynamic
// loss scale: torch without Python.
//
//     sharded_gpt --spawn 2 --precision bf16 --inject-overflow 7
//     mpirun -np 2 sharded_gpt --store /tmp/rendezvous
#include <sys/wait.h>
#include <unistd.h>

#include <torch/csrc/distributed/c10d/FileStore.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "model.hpp"
#include "options.hpp"
#include "safetensors.hpp"
#include "sharded_adam.hpp"

namespace sharded {
namespace {

struct Batch {
    torch::Tensor inputs, targets;
};

Batch next_batch(const torch::Tensor& text, torch::Generator& generator) {
    const torch::Tensor starts = torch::randint(text.numel() - kContext, {4}, generator, torch::kLong);
    std::vector<torch::Tensor> inputs, targets;
    for (int64_t i = 0; i < 4; ++i) {
        const int64_t start = starts[i].item<int64_t>();
        inputs.push_back(text.narrow(0, start, kContext));
        targets.push_back(text.narrow(0, start + 1, kContext));
    }
    return {torch::stack(inputs), torch::stack(targets)};
}

torch::ScalarType working_dtype(const Options& o) {
    return o.precision == "bf16" ? torch::kBFloat16 : o.precision == "fp16" ? torch::kHalf : torch::kFloat;
}

// Doubles after ten good steps, halves after an overflow.
struct LossScale {
    double value;
    int good = 0;

    void update(bool taken) {
        good = taken ? good + 1 : 0;
        if (!taken) value /= 2;
        if (good == 10) value *= 2, good = 0;
    }
};

void save(const Options& o, Gpt& model, const ShardedAdam& adam, const std::vector<double>& losses) {
    NamedTensors tensors{
        {"master", adam.master()}, {"master.exp_avg", adam.mean()}, {"master.exp_avg_sq", adam.square()}};
    for (const auto& p : model->named_parameters()) {
        tensors[p.key()] = p.value();
        tensors["grad/" + p.key()] = p.value().grad();
    }
    write_safetensors(with_rank(o.save, o.rank), tensors, losses);
}

void train(const Options& o) {
    torch::set_num_threads(1);
    torch::manual_seed(o.seed);
    const bool low = o.precision != "fp32";
    const auto [text, vocabulary] = load_text(o.text);
    auto store = c10::make_intrusive<c10d::FileStore>(o.store, o.world);
    auto gloo = c10d::ProcessGroupGloo::Options::create();
    gloo->devices.push_back(c10d::ProcessGroupGloo::createDefaultDevice());
    const ShardedAdam::Group group = c10::make_intrusive<c10d::ProcessGroupGloo>(store, o.rank, o.world, gloo);

    Gpt model(vocabulary);
    ShardedAdam adam(model->parameters(), group, low ? torch::kHalf : torch::kFloat);
    model->to(working_dtype(o));
    LossScale scale{low ? o.scale : 1.0};
    torch::Generator generator = torch::make_generator<torch::CPUGeneratorImpl>(1000 * o.seed + o.rank);
    std::vector<double> losses;
    for (int step = 0; step < o.steps; ++step) {
        model->zero_grad();
        model->narrow_head = low && o.half_head >= 0 && step >= o.half_head;
        const Batch batch = next_batch(text, generator);
        const torch::Tensor logits = model->forward(batch.inputs).to(torch::kFloat);
        const torch::Tensor loss = torch::nn::functional::cross_entropy(logits.flatten(0, 1), batch.targets.flatten());
        loss.backward(torch::tensor(scale.value, torch::kFloat));
        const bool inject = low && o.rank == 0 && step == o.inject_overflow;
        const double used = scale.value;
        const bool taken = adam.step(2e-3, used, inject, o.skips.count(step) != 0);
        if (low) scale.update(taken);
        losses.push_back(loss.item<float>());
        if (o.rank == 0)
            std::printf("step %d loss %.9g %a scale %g%s\n", step, losses.back(), losses.back(), used,
                        taken ? "" : " skipped");
    }
    std::fflush(stdout);
    if (!o.save.empty()) save(o, model, adam, losses);
    std::vector<torch::Tensor> last{torch::zeros(1)};
    group->allreduce(last)->wait();  // so that no rank closes connections that another rank still needs
}

// Starts the ranks as processes of their own and waits for them; the first failure is the exit status.
int spawn(const Options& o, char** argv) {
    std::vector<pid_t> children;
    for (int rank = 0; rank < o.spawn; ++rank) {
        const pid_t child = fork();
        if (child == 0) {
            setenv("RANK", std::to_string(rank).c_str(), 1);
            setenv("WORLD_SIZE", std::to_string(o.spawn).c_str(), 1);
            setenv("LOCAL_RANK", std::to_string(rank).c_str(), 1);
            setenv("SHARDED_GPT_STORE", o.store.c_str(), 1);
            execv("/proc/self/exe", argv);
            _exit(127);
        }
        children.push_back(child);
    }
    int failure = 0;
    for (const pid_t child : children) {
        int status = 0;
        waitpid(child, &status, 0);
        if (failure == 0 && status != 0) failure = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    unlink(o.store.c_str());
    return failure;
}

}  // namespace
}  // namespace sharded

int main(int argc, char** argv) {
    try {
        const sharded::Options options = sharded::parse(argc, argv);
        if (options.spawn > 0 && !options.started) return sharded::spawn(options, argv);
        sharded::train(options);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "sharded_gpt: %s\n", e.what());
        return 1;
    }
}
