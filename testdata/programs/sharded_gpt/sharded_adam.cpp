#include "sharded_adam.hpp"

#include <torch/csrc/distributed/c10d/Ops.hpp>

#include <cmath>
#include <limits>

namespace sharded {
namespace {

constexpr double kBeta1 = 0.9, kBeta2 = 0.99, kEpsilon = 1e-8;

torch::Tensor flatten(const std::vector<torch::Tensor>& tensors, torch::ScalarType dtype) {
    std::vector<torch::Tensor> flat;
    for (const torch::Tensor& t : tensors) flat.push_back(t.reshape(-1).to(dtype));
    return torch::cat(flat);
}

}  // namespace

ShardedAdam::ShardedAdam(std::vector<torch::Tensor> parameters, Group group, torch::ScalarType wire)
    : parameters_(std::move(parameters)), group_(std::move(group)), wire_(wire) {
    const torch::NoGradGuard no_grad;
    for (const torch::Tensor& p : parameters_) elements_ += p.numel();
    shard_ = (elements_ + group_->getSize() - 1) / group_->getSize();
    master_ = shard_of(flatten(parameters_, torch::kFloat)).clone();
    mean_ = torch::zeros_like(master_);
    square_ = torch::zeros_like(master_);
}

torch::Tensor ShardedAdam::shard_of(const torch::Tensor& flat) const {
    const torch::Tensor padded = torch::constant_pad_nd(flat, {0, shard_ * group_->getSize() - elements_});
    return padded.narrow(0, shard_ * group_->getRank(), shard_);
}

bool ShardedAdam::step(double rate, double scale, bool inject_overflow, bool skip) {
    const torch::NoGradGuard no_grad;
    std::vector<torch::Tensor> gradients;
    for (const torch::Tensor& p : parameters_) gradients.push_back(p.grad());
    torch::Tensor flat = flatten(gradients, wire_);
    if (inject_overflow) flat.narrow(0, 0, 1).fill_(std::numeric_limits<float>::infinity());
    std::vector<torch::Tensor> wire{flat};
    c10d::ops::allreduce(group_, wire)->wait();
    torch::Tensor gradient = shard_of(flat).to(torch::kFloat);
    for (const torch::Tensor& p : parameters_) p.grad().mul_(1.0 / scale);  // for whoever looks at them
    gradient = gradient.mul(1.0 / scale).div(static_cast<double>(group_->getSize()));

    // Gloo has summed on every rank alike, but each rank looks at its own shard only.
    std::vector<torch::Tensor> overflow{torch::isfinite(gradient).all().logical_not().to(torch::kFloat)};
    c10d::AllreduceOptions maximum;
    maximum.reduceOp = c10d::ReduceOp::MAX;
    c10d::ops::allreduce(group_, overflow, maximum)->wait();
    if (overflow[0].item<float>() > 0 || skip) return false;

    steps_ += 1;
    mean_.mul_(kBeta1).add_(gradient, 1 - kBeta1);
    square_.mul_(kBeta2).addcmul_(gradient, gradient, 1 - kBeta2);
    const double bias1 = 1 - std::pow(kBeta1, static_cast<double>(steps_));
    const double bias2 = std::sqrt(1 - std::pow(kBeta2, static_cast<double>(steps_)));
    master_.addcdiv_(mean_, square_.sqrt().div_(bias2).add_(kEpsilon), -rate / bias1);
    refresh_working_copy();
    return true;
}

// The masters travel in fp32, because this gloo knows no bf16.
void ShardedAdam::refresh_working_copy() {
    std::vector<torch::Tensor> mine{master_};
    std::vector<std::vector<torch::Tensor>> all(1);
    for (int i = 0; i < group_->getSize(); ++i) all[0].push_back(torch::empty_like(master_));
    c10d::ops::allgather(group_, all, mine)->wait();
    const torch::Tensor flat = torch::cat(all[0]);
    int64_t offset = 0;
    for (torch::Tensor& p : parameters_) {
        p.copy_(flat.narrow(0, offset, p.numel()).view_as(p));
        offset += p.numel();
    }
}

}  // namespace sharded
