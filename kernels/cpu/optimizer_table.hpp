#pragma once

#include "kernels/cpu/optimizer.hpp"

// The steps that one instruction set provides.

namespace mp::cpu {

template <class Settings>
struct OptimizerTable {
    using Run = void (*)(const Settings&, const OptimizerRange&, const OptimizerPass&, optim::StepCounts&);
    // [copy: none, fp16, bf16][master, master and stochastic, no master, no master and stochastic]; null: cannot be
    struct Row {
        Run of[3][4];
    };
    Row rows[3];  // gradients in fp32, fp16, bf16
};

struct OptimizerKernels {
    const char* name;
    OptimizerTable<optim::AdamW> adamw;
    OptimizerTable<optim::Sgd> sgd;
};

}  // namespace mp::cpu
