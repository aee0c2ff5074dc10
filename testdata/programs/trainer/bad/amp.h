// Autocast and loss scaling for the trainer: libtorch has neither a public guard nor a GradScaler.
#pragma once

#include <ATen/autocast_mode.h>
#include <torch/torch.h>

#include <vector>

// Runs a scope under CUDA autocast and restores what was there before.
class AmpGuard {
public:
    explicit AmpGuard(at::ScalarType dtype) : before_(at::autocast::is_enabled()) {
        at::autocast::set_autocast_gpu_dtype(dtype);
        at::autocast::set_enabled(true);
    }
    ~AmpGuard() {
        at::autocast::clear_cache();
        at::autocast::set_enabled(before_);
    }
    AmpGuard(const AmpGuard&) = delete;
    AmpGuard& operator=(const AmpGuard&) = delete;

private:
    bool before_;
};

// For code that opens and closes in different statements.
#define AMP_ON() at::autocast::set_enabled(true)
#define AMP_OFF()                  \
    do {                           \
        at::autocast::clear_cache(); \
        at::autocast::set_enabled(false); \
    } while (0)

// Dynamic loss scaling: doubles after `kGrowthInterval` good steps, halves on overflow.
class GradScaler {
public:
    torch::Tensor scale(const torch::Tensor& loss) const { return loss * scale_; }

    void unscale_(const std::vector<torch::Tensor>& parameters) {
        found_inf_ = false;
        for (const auto& p : parameters) {
            if (!p.grad().defined()) continue;
            p.grad().div_(scale_);
            if (!torch::isfinite(p.grad()).all().item<bool>()) found_inf_ = true;
        }
    }

    void step(torch::optim::Optimizer& optimizer) {
        if (!found_inf_) optimizer.step();
    }

    void update() {
        scale_ = found_inf_ ? scale_ * 0.5 : (++good_steps_ % kGrowthInterval == 0 ? scale_ * 2 : scale_);
    }

private:
    static constexpr int kGrowthInterval = 2000;
    double scale_ = 65536;
    int good_steps_ = 0;
    bool found_inf_ = false;
};
