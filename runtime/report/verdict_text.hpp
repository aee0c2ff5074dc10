#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/fold/run_model.hpp"
#include "runtime/judge/judge.hpp"

namespace mp::trace {

// The verdict strip, the first cause, the other findings, the loss scale with the skipped steps, and the checked
// statements. Safe on a terminal; lines end in a newline.
std::string verdict_text(const RunModel&, const Judgement&);

// Parts that the summary at the end of a run uses too.
inline constexpr std::size_t kWhole = 560;  // longer than a finding; only a hostile name is cut
bool is_about_a_kernel(const Finding&);  // what kernels of torch cost stands apart from what the program does
// "loss 2.31, fp32 twin 2.3: it is the fp32 loss (+0.13 % over the last 25 steps)"; empty without a loss.
std::string loss_text(const RunModel&, const Judgement&);
// What a mode without a twin leaves open: ", no twin (--mode trajectory compares with fp32)"; empty with one.
std::string no_twin_text(const RunModel&);
// Why the steps are not those of one optimizer alone; empty if they are.
std::string steps_note(const RunModel&);
// The steps of each cause, the cause of the first skipped step first.
std::vector<std::pair<SkipCause, std::vector<std::int64_t>>> skips_by_cause(const Judgement&);
std::string phi_text(double);                        // "8.0 φ"; below 0: "not measured"
std::string ranges_text(std::vector<std::int64_t>);  // "17, 34-36"; at most 8 ranges, then "..."
std::string whose_text(Rank, int device);            // "  rank 1  device 0"; empty: not about one
std::string where_text(const Finding&);              // "blocks.2.fc2  aten::addmm  forward  step 17  rank 1"
std::string shown_short(std::string_view, std::size_t length = 160);  // shown(), cut in its middle

}  // namespace mp::trace
