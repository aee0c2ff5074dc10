#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/result.hpp"
#include "runtime/trace/reader.hpp"
#include "runtime/trace/records.hpp"

// Invented recordings for tests and benchmarks: a stack of linear layers "blocks.<i>.fc", trained with an
// fp32 twin. Values are those of a healthy run (introduced error about one floor, total error growing with
// the square root of the depth), except for the planted ones. The same plan gives the same bytes.

namespace mp::trace::fakes {

struct Plan {
    int ranks = 2;
    int layers = 4;
    int steps = 8;
    std::uint64_t seed = 1;
    Mode mode = Mode::trajectory;  // watch: no twin in it
    DType dtype = DType::bf16;     // of activations and gradients
    bool loss_scale = false;       // a GradScaler; on by itself where a step is skipped
    double first_scale = 65536;    // halved by every skipped step
    int sample_every = 2;          // steps on which LOC, stagnation and hashes are measured; 0: never

    // An op whose finite inputs give infinities, from where on everything of the step is non-finite. With a
    // loss scale all ranks skip the step. `op` is "aten::addmm" (forward) or "aten::mm" (backward).
    struct Overflow {
        int layer = 0;
        std::string op = "aten::addmm";
        int step = 0;
        int rank = 0;
    };
    std::optional<Overflow> overflow = std::nullopt;
    std::vector<int> skipped = {};  // gradients overflow by the loss scale: every rank skips
    struct Disagreement {
        int step = 0;
        int rank = 0;
    };
    std::optional<Disagreement> disagreement =
        std::nullopt;            // this rank alone skips; from here on its hashes differ
    int stagnating = -1;         // layer whose 16-bit weight no longer moves
    bool low_reduction = false;  // gradients are reduced in `dtype` with an error of 12 floors
    bool absorbing_sum = false;  // a running sum in the loss swallows half of its addends
    int off_policy = -1;         // layer whose parameters and op are fp16 in a bf16 run, bf16 in an fp16 run
    std::vector<int> missing = {};  // ranks that left no file
    int truncated = -1;             // rank whose file is cut in the middle; by write() only
    bool killed = false;            // no orderly end
};

std::string layer_name(int layer);
Recording recording_of(const Plan&, int rank);
Run run_of(const Plan&);
// Into an existing directory, through the recorder.
Status write(const Plan&, const std::string& directory);

}  // namespace mp::trace::fakes
