// The defect of a careless port, from step --half-head on: the logits run under autocast and are cast to fp16 by hand.
#include <ATen/autocast_mode.h>

#include "model.hpp"

namespace sharded {
namespace {

constexpr double kTemperature = 1e-5;

torch::Tensor sharpened(const torch::Tensor& logits) {
    return (logits / kTemperature).to(torch::kHalf);
}

}  // namespace

torch::Tensor half_head(torch::nn::Linear& head, const torch::Tensor& x) {
    const bool before = at::autocast::is_cpu_enabled();
    at::autocast::set_cpu_enabled(true);
    const torch::Tensor logits = sharpened(through(head, x));
    at::autocast::clear_cache();
    at::autocast::set_cpu_enabled(before);
    return logits.to(torch::kFloat) * kTemperature;
}

}  // namespace sharded
