#include "options.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace zero1 {
namespace {

constexpr const char* kUsage =
    "usage: zero1_gpt [options]\n"
    "  --precision fp32|bf16|fp16   of weights, activations and gradients (bf16)\n"
    "  --steps N, --seed N, --lr X, --loss-scale X\n"
    "  --spawn N                    start N ranks; else RANK, WORLD_SIZE and --id-file (or ZERO1_ID_FILE)\n"
    "  --tf32                       fp32 products round their inputs to TF32\n"
    "  --save FILE                  rank 0 writes the weights at the end\n"
    "  --graph                      forward pass as a CUDA graph\n"
    "  --clock                      microseconds of a mean step on stderr, without the first quarter of the steps\n"
    "defects:\n"
    "  --overflow-at STEP LAYER     a matrix product of that layer overflows; --overflow-rank R (0)\n"
    "  --half-accumulator           sums in the 16-bit type\n"
    "  --split-k                    partial products are added in the output type\n"
    "  --no-master                  16-bit weights without an fp32 master\n"
    "  --average                    ncclAvg instead of ncclSum\n"
    "  --count-bytes                a collective's count is in bytes\n"
    "  --no-guard                   update also with gradients that are not finite\n";

[[noreturn]] void refuse(const char* what, const char* value) {
    std::fprintf(stderr, "zero1_gpt: %s%s\n%s", what, value, kUsage);
    std::exit(2);
}

int from_environment(const char* name, int otherwise) {
    const char* const value = std::getenv(name);
    return value ? std::atoi(value) : otherwise;
}

}  // namespace

Options parse(int argc, char** argv) {
    Options o;
    int at = 1;
    const auto next = [&]() -> const char* {
        if (at >= argc) refuse("a value is missing after ", argv[argc - 1]);
        return argv[at++];
    };
    while (at < argc) {
        const std::string flag = argv[at++];
        if (flag == "--precision") o.precision = next();
        else if (flag == "--steps") o.steps = std::atoi(next());
        else if (flag == "--seed") o.seed = std::atoi(next());
        else if (flag == "--lr") o.learning_rate = std::strtof(next(), nullptr);
        else if (flag == "--loss-scale") o.loss_scale = std::strtof(next(), nullptr);
        else if (flag == "--spawn") o.spawn = std::atoi(next());
        else if (flag == "--id-file") o.id_file = next();
        else if (flag == "--save") o.save = next();
        else if (flag == "--overflow-at") o.overflow_step = std::atoi(next()), o.overflow_layer = std::atoi(next());
        else if (flag == "--overflow-rank") o.overflow_rank = std::atoi(next());
        else if (flag == "--half-accumulator") o.half_accumulator = true;
        else if (flag == "--split-k") o.split_k = true;
        else if (flag == "--no-master") o.no_master = true;
        else if (flag == "--average") o.average = true;
        else if (flag == "--no-guard") o.no_guard = true;
        else if (flag == "--count-bytes") o.count_bytes = true;
        else if (flag == "--tf32") o.tf32 = true;
        else if (flag == "--graph") o.graph = true;
        else if (flag == "--clock") o.clock = true;
        else refuse("unknown option ", flag.c_str());
    }
    if (o.precision != "fp32" && o.precision != "bf16" && o.precision != "fp16")
        refuse("--precision: unknown value ", o.precision.c_str());
    o.started = std::getenv("RANK") != nullptr;
    o.rank = from_environment("RANK", 0);
    o.world = from_environment("WORLD_SIZE", 1);
    if (o.id_file.empty())
        if (const char* file = std::getenv("ZERO1_ID_FILE")) o.id_file = file;
    if (o.world > 1 && o.id_file.empty()) refuse("several ranks need ", "--id-file");
    return o;
}

}  // namespace zero1
