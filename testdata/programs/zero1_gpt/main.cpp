// A small GPT in CUDA: cuBLASLt, ZeRO-1 over NCCL, NVTX ranges, no framework. One process per rank.
//
//     zero1_gpt --precision bf16 --steps 10 --spawn 2
//     RANK=0 WORLD_SIZE=2 zero1_gpt --id-file /tmp/id & RANK=1 WORLD_SIZE=2 zero1_gpt --id-file /tmp/id
//
// Losses are printed exactly, so that the outputs of two runs can be compared bit for bit.
#include "options.hpp"
#include "ranks.hpp"

namespace zero1 {
void train(const Options&);  // train.cu
}

int main(int argc, char** argv) {
    const zero1::Options options = zero1::parse(argc, argv);
    if (options.spawn > 0 && !options.started) return zero1::spawn(options, argv);
    zero1::train(options);
}
