#pragma once

// The words by which a rule is triggered. In a large Python tree facts are extracted only from the files whose
// code contains a trigger of some rule, and from what these lead to (docs/ARCHITECTURE.md). A rule whose words
// are too few is therefore silent in large trees. Three kinds of words belong to a rule:
//  - what its findings start from: a low dtype, a region, an engine, a setting, an API. Code that such a file
//    calls is followed, so the op that is judged is not a trigger;
//  - what it looks for in the whole program, without a call that leads there;
//  - what silences it, where that may stand in a file that nothing leads to.

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace mp::lint {

// A piece of code, case-sensitive, at least two characters long. `#` is any digit; `<` and `>` are the beginning
// and the end of a name: "<half>" is in x.half() and not in rotate_half(x).
using TriggerWords = std::span<const std::string_view>;

class Triggers {
public:
    // None: only for rules that judge nothing yet. A test refuses it.
    constexpr Triggers() = default;

    template <typename... Groups>
    explicit(false) constexpr Triggers(const Groups&... groups)
        : groups_{TriggerWords(groups)...}, count_(sizeof...(groups)) {}

    // No Python file is needed for a finding.
    static constexpr Triggers cpp_only() {
        Triggers none;
        none.cpp_only_ = true;
        return none;
    }

    constexpr std::span<const TriggerWords> groups() const { return std::span(groups_).first(count_); }
    constexpr bool is_cpp_only() const { return cpp_only_; }

private:
    std::array<TriggerWords, 5> groups_{};
    std::size_t count_ = 0;
    bool cpp_only_ = false;
};

// What makes a tensor, a module or a cast low: dtypes by all their names (analyzer/python/library/library.txt), and
// what loads a file that can hold such a name (analyzer/python/library/data_calls.cpp).
inline constexpr std::array<std::string_view, 14> kLowDtypes{
    "<half>", "Half", "float16", "Float16",     "bf16",      "fp16",      "float8",
    "fp8",    "e4m3", "e5m2",    "set_default", "safe_load", "OmegaConf", "hydra.main"};

// What opens a region by itself, and the methods that a trainer runs in one
// (analyzer/region/python_regions.cpp, outer_regions.cpp).
inline constexpr std::array<std::string_view, 7> kRegions{
    "autocast",       "Autocast", ".amp", "training_step", "compute_loss", "loss_context_manager",
    "forward_context"};

// What sets up an engine that casts, scales or opens regions (analyzer/analyses/engines.cpp).
inline constexpr std::array<std::string_view, 14> kEngines{
    "precision", "Precision", "-mixed", "-true", " accelerate",    "Accelerator",    "lightning",
    " megatron", "apex",      " hmp",   ".hmp",  "deepspeed.init", "from deepspeed", "deepspeed as"};

// Loss scaling: a scaler by any name, and the backward passes and steps it belongs to.
inline constexpr std::array<std::string_view, 3> kLossScaling{"caler", "unscale", ".backward("};

// Names of configuration files and op lists, which are read when code names them
// (analyzer/python/config_files.cpp).
inline constexpr std::array<std::string_view, 7> kConfigurationFiles{
    "ds_config", "deepspeed_con", "deepspeed=", "--deepspeed", "gaudi", "Gaudi", "OPS_LIST"};

}  // namespace mp::lint
