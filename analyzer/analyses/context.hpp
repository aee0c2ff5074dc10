#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "analyzer/analyses/finding.hpp"
#include "analyzer/analyses/shared.hpp"
#include "kernels/numerics/policy.hpp"
#include "kernels/numerics/torch_policies.hpp"

namespace mp::lint {

class Classes;
class HalfModels;
class NativeCode;
class Protocol;
class Refusals;
class SumVariants;
class TensorAnswers;
enum class CodeKind : std::uint8_t;
struct ConstantUse;
struct Engine;

// Which GPUs the texts of a whole project name.
enum class Devices : std::uint8_t { not_read, none, with_bf16, older };

// What is known of the project besides the facts.
struct Project {
    bool is_whole = false;    // the run has all of its files
    bool is_package = false;  // others can install it, and call what nothing here calls
    // By a file that has no facts or evaluates strings.
    std::function<bool(std::string_view name)> is_imported_unread{};
    // Some text of a whole project turns the option on, or gives it the value of "option=fp16"; empty: not known.
    std::function<bool(std::string_view option)> is_given{};
    Devices devices = Devices::not_read;
    TorchVersion transformers{};  // that its requirements ask for
};

// The inputs of a rule: the linked program and the policies. Rules read no source text, no clock and no
// files.
struct RuleContext {
    const Program& program;
    const Policies& policies;   // of the torch version in use; rules call policy()
    bool inference = false;     // profile: no training, so master weights and scalers are not expected
    TorchVersion torch{};       // in use; not known: the newest
    std::string_view device{};  // --device, for a program that names no device; empty: not given
    DType assume{};           // --assume: of tensors that code outside the sources passes; unknown: not given
    std::string_view root{};  // of the project: where its tests and benchmarks are looked for; empty: "/"
    Project project{};

    // Results of protocol_of(), refusals_of(), engines_of(), constant_uses(), classes_of(), half_models_of(),
    // half_evidence(), wide_sum_variant() and code_kind(), computed once per run, and what all TensorDTypes have found.
    Shared<Protocol> protocol{};
    Shared<Refusals> refusals{};
    Shared<std::vector<Engine>> engines{};
    Shared<std::vector<ConstantUse>> constants{};
    Shared<Classes> classes{};
    Shared<HalfModels> half_models{};
    Shared<NativeCode> native_code{};
    Shared<SumVariants> sum_variants{};
    Shared<TensorAnswers> tensor_answers{};
    Memo<Symbol, CodeKind> code_kinds{};

    // The op list of a device ("cuda", "cpu", "xpu", "mps", "hpu", "xla") or of another kind of region
    // ("hmp", "apex"); nullptr when none is known.
    const Policy* policy(std::string_view device_name) const { return policies.of(device_name); }
    // Whether the torch in use is older than this one. The newest is older than none.
    bool older_than(TorchVersion version) const { return torch.known() && torch < version; }
};

}  // namespace mp::lint
