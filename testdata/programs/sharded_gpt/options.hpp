#pragma once

#include <set>
#include <string>

namespace sharded {

struct Options {
    std::string precision = "bf16";  // of the working copy: bf16, fp16 or fp32
    int steps = 30;
    int half_head = -1;              // from this step on with the defect of half_head.cpp
    int seed = 1;
    int inject_overflow = -1;        // an infinite gradient on rank 0 in this step
    std::set<int> skips;             // steps without an update, for an fp32 run beside one that overflowed
    double scale = 1 << 20;          // loss scale of the first step
    int spawn = 0;                   // start this many ranks ourselves
    std::string text;                // default: the text of the Python programs, found at build time
    std::string store;               // file for the rendezvous
    std::string save;                // safetensors; %r is the rank
    int rank = 0;
    int world = 1;
    bool started = false;            // a launcher or --spawn has given us a rank
};

// Throws std::runtime_error with what is wrong.
Options parse(int argc, char** argv);

std::string with_rank(const std::string& pattern, int rank);

}  // namespace sharded
