#pragma once

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/torch.h>

#include <vector>

namespace sharded {

// Adam over one rank's part of all parameters laid end to end. The fp32 masters and moments exist once, spread
// over the ranks; every rank holds a whole working copy in the dtype of the model, refreshed after each step.
class ShardedAdam {
public:
    using Group = c10::intrusive_ptr<c10d::ProcessGroup>;

    ShardedAdam(std::vector<torch::Tensor> parameters, Group group, torch::ScalarType wire);

    // Sums the gradients of all ranks in the wire dtype, then moves the masters, unless a rank saw an overflow
    // or `skip` is set. True: the step was taken. `scale` is what the loss was multiplied with.
    bool step(double rate, double scale, bool inject_overflow, bool skip);

    const torch::Tensor& master() const { return master_; }
    const torch::Tensor& mean() const { return mean_; }
    const torch::Tensor& square() const { return square_; }

private:
    torch::Tensor shard_of(const torch::Tensor& flat) const;
    void refresh_working_copy();

    std::vector<torch::Tensor> parameters_;
    Group group_;
    torch::ScalarType wire_;
    int64_t elements_ = 0;    // of all parameters
    int64_t shard_ = 0;       // of one rank, the last one padded
    int64_t steps_ = 0;
    torch::Tensor master_, mean_, square_;
};

}  // namespace sharded
