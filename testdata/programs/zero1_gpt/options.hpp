#pragma once

#include <string>

namespace zero1 {

struct Options {
    std::string precision = "bf16";  // of weights, activations and gradients: fp32, bf16 or fp16
    int steps = 10;
    int seed = 1;
    float learning_rate = 1e-3f;
    float loss_scale = 1024;        // of the first step; fp16 only
    int overflow_step = -1;         // the defect of --overflow-at
    int overflow_layer = 0;
    int overflow_rank = 0;
    bool half_accumulator = false;  // sums of matrix products (fp16) and of bias gradients in the 16-bit type
    bool split_k = false;           // matrix products in four parts that are added in the output type
    bool no_master = false;         // 16-bit weights without an fp32 master
    bool average = false;           // ncclAvg where the others use ncclSum
    bool no_guard = false;          // update also with gradients that are not finite
    bool tf32 = false;              // fp32 products round their inputs to TF32
    bool count_bytes = false;       // the count of a collective in bytes
    bool graph = false;             // forward pass as a CUDA graph
    bool clock = false;             // tell how long a step takes
    int spawn = 0;                  // start this many ranks
    int rank = 0;
    int world = 1;
    std::string save;               // where rank 0 writes the weights at the end
    std::string id_file;            // through which rank 0 passes NCCL's id to the others
    bool started = false;           // a launcher or --spawn set the rank
};

// Prints what is wrong and ends the process with status 2.
Options parse(int argc, char** argv);

}  // namespace zero1
