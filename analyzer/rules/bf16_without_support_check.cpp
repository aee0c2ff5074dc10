// MP604 bf16-without-support-check
//
// What   bf16 is chosen for a CUDA device without a check that the device has it, or after a bare
//        `torch.cuda.is_bf16_supported()`.
// Why    Devices before compute capability 8.0 emulate bf16: newer torch answers True for a T4, and
//        the training runs many times slower than in fp16 without saying so.
// Fix    Ask `torch.cuda.is_bf16_supported(including_emulation=False)`, or for capability 8.0.
// Silent A check of the compute capability beside it, in the file or in what it calls; a dtype that
//        is not constant: it comes from a configuration; files that use Transformer Engine;
//        devices other than CUDA; torch before 2.3 (--torch, or an exact version in the requirements),
//        which did not count emulation; files that use unsloth, which replaces the question by one that does
//        not; tests. In Python a note unless the answer of
//        is_bf16_supported() decides between two ways to go on, and for the second such question of a file;
//        where the file loads its model in bf16 or with flash attention in any case; and where the texts of a
//        whole project name no device without bf16 (T4, V100, Colab).
// Tests  testdata/lint/MP604.md, tests/analyzer/rules/bf16_without_support_check_test.cpp

#include <algorithm>
#include <array>
#include <unordered_set>
#include <vector>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/autocast_calls.hpp"
#include "analyzer/analyses/python_code.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/trials.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

constexpr TorchVersion kEmulationCounts{2, 3};

// Questions about the device that a program decides by.
constexpr std::array<std::string_view, 8> kChecks{
    "get_device_capability", "get_device_properties",      "getCurrentDeviceProperties",
    "getDeviceProperties",   "cudaGetDeviceProperties",    "cudaDeviceGetAttribute",
    "is_bf16_supported",     "is_torch_bf16_gpu_available"};

bool asks_for_support(std::string_view name) {
    return name == "torch.cuda.is_bf16_supported" || name == "torch.cuda.amp.is_bf16_supported";
}

bool asks_for_capability(const Function& f) {
    return std::ranges::any_of(f.calls, [](const Call& c) {
        const std::string_view name = leaf(c.name.str());
        return name == "get_device_capability" || name == "get_device_properties";
    });
}

bool is_bare(const Call& call) {
    return call.args.empty() || (!argument(call, 0, "including_emulation") && !has_unpacked(call)) ||
           is_true(argument(call, 0, "including_emulation"));
}

bool may_open_region(std::string_view name) {
    const std::string_view function = leaf(name);
    return function == "autocast" || function == "set_autocast_gpu_dtype" || function == "set_autocast_dtype";
}

// The call opens a region, and its arguments are constants: bf16 and CUDA.
bool opens_bf16(const Call& call) {
    if (const auto autocast = autocast_call(call)) {
        return autocast->device == "cuda" && autocast->dtype && !is_disabled(*autocast) &&
               region_dtype(*autocast) == DType::bf16;
    }
    const std::string_view name = leaf(call.name.str());
    if (name != "set_autocast_gpu_dtype" && name != "set_autocast_dtype") return false;
    if (!is_within(call.name.str(), "at") || call.args.empty()) return false;
    if (name == "set_autocast_dtype" && !mentions(call.args[0].constant.str(), "cuda")) return false;
    const Operand& dtype = call.args.back();
    return dtype.dtype == DType::bf16 || mentions(dtype.constant.str(), "BFloat16");
}

// The import of unsloth makes torch.cuda.is_bf16_supported() leave emulation out.
bool uses_unsloth(const Program& program, Symbol file) {
    return has_call(program, file, [](const Call& call) { return is_within(call.name.str(), "unsloth"); });
}

// A question about the device, or Transformer Engine, which runs on no device without bf16.
bool settles_support(std::string_view name) {
    return any_of(leaf(name), kChecks) || is_within(name, "transformer_engine");
}

// A region that is bf16 on CUDA.
struct Region {
    const Function* function = nullptr;
    const Call* call = nullptr;
};

// Files in which the support is settled: directly or, of those with a region, in a function that they
// call.
std::unordered_set<Symbol> checking_files(const Program& program, const std::vector<Region>& regions) {
    std::unordered_set<Symbol> direct, asked;
    for_each_call(program, settles_support,
                  [&](const Function& f, const Call&) { direct.insert(f.span.file); });
    for (const Region& region : regions) asked.insert(region.function->span.file);
    std::unordered_set<Symbol> out = direct;
    for (const Function* f : program.functions()) {
        if (!asked.contains(f->span.file)) continue;
        for (const Call& c : f->calls) {
            const Function* callee = c.callee.empty() ? nullptr : program.definition(c.callee);
            if (callee && direct.contains(callee->span.file)) out.insert(f->span.file);
        }
    }
    return out;
}

// `if not torch.cuda.is_bf16_supported(): raise`: no other precision is there to choose.
bool only_refuses(const Function& f, const Call& question) {
    if (question.block >= f.flow.size()) return false;
    return std::ranges::any_of(f.flow[question.block].to, [&](const Edge& edge) {
        const Block& next = f.flow[edge.to];
        const auto is_here = [&](const Operand& value) { return value.span.line == next.span.line; };
        return next.leaves && next.span.known() && std::ranges::none_of(f.returned, is_here);
    });
}

// support["bf16"] = is_bf16_supported(), print(...): a table of what the device can do, which decides nothing.
bool is_only_told(const Function& f, const Call& question) {
    constexpr std::array<std::string_view, 7> kTell{"print", "info",  "debug", "warning",
                                                    "log",   "write", "append"};
    return std::ranges::any_of(f.calls, [&](const Call& call) {
        const std::string_view name = leaf(call.name.str());
        if (call.args.empty() || call_of(f, call.args.back()) != &question) return false;
        return any_of(name, kTell) || (name == "__setitem__" && !call.args[1].constant.empty());
    });
}

// def is_bf16_supported(): return cuda.is_available() and cuda.is_bf16_supported(): what only a test calls decides
// nothing. A package has callers elsewhere.
bool is_asked_by_tests_alone(const RuleContext& context, const Function& f, const Call& question) {
    const auto is_answer = [&](const Operand& value) {
        const SourceSpan& at = question.span;
        return value.span.line <= at.line && at.line <= std::max(value.span.line, value.span.end_line);
    };
    const auto callers = context.program.callers(f.usr);
    return std::ranges::any_of(f.returned, is_answer) && !callers.empty() &&
           std::ranges::all_of(callers, [&](const Call* call) {
               return code_kind(context, call->span.file) == CodeKind::test;
           });
}

// Runs on no device that emulates bf16: flash attention 2 and later need capability 8.0.
bool asks_for_flash_attention(const Call& call) {
    if (is_within(call.name.str(), "flash_attn") || is_true(keyword_argument(call, "use_flash_attention_2")))
        return true;
    return std::ranges::any_of(call.args, [](const Operand& value) {
        return value.keyword.str().ends_with("attn_implementation") &&
               spelled(value).starts_with("flash_attention_");
    });
}

// from_pretrained(name, torch_dtype=torch.bfloat16), BitsAndBytesConfig(bnb_4bit_compute_dtype=torch.bfloat16).
bool loads_in_bf16(const Function& f, const Call& call) {
    constexpr std::array<std::string_view, 2> kLoads{"from_pretrained", "BitsAndBytesConfig"};
    return any_of(leaf(call.name.str()), kLoads) && !is_behind_branch(f, call.block) &&
           std::ranges::any_of(call.args, [](const Operand& value) {
               return value.keyword.str().ends_with("dtype") && value.dtype == DType::bf16 && !value.assumed;
           });
}

// The texts of a whole project name a device without bf16: T4, V100, Colab. Where they are not read, it may be one.
bool may_run_on_older(const Project& project) {
    return project.devices == Devices::older || project.devices == Devices::not_read;
}

// The answer changes nothing: the file's model is bf16 in any case, or no device that emulates bf16 can run it.
bool is_settled_otherwise(const Program& program, Symbol file) {
    return std::ranges::any_of(functions_of(program, file), [](const Function* f) {
        return std::ranges::any_of(f->calls, [f](const Call& call) {
            return asks_for_flash_attention(call) || loads_in_bf16(*f, call);
        });
    });
}

void report(const RuleContext& context, const Function& f, const Call& call, Severity severity,
            std::string message, Findings& out) {
    Finding finding{.rule = "MP604",
                    .severity = severity,
                    .span = call.span,
                    .message = std::move(message),
                    .fix =
                        "ask torch.cuda.is_bf16_supported(including_emulation=False), or for "
                        "compute capability 8.0",
                    .notes = {},
                    .function = {}};
    emit(context, f, std::move(finding), out);
}

bool is_looked_at(std::string_view name) { return asks_for_support(name) || may_open_region(name); }

void check(const RuleContext& context, Findings& out) {
    if (!context.device.empty() && context.device != "cuda") return;
    std::vector<Region> regions;                  // the first of each file: the others are the same choice
    std::unordered_set<const Function*> decided;  // fp16=not supported(), bf16=supported(): one choice
    std::unordered_set<Symbol> told;              // files whose first choice is a warning
    for_each_call(context.program, is_looked_at, [&](const Function& f, const Call& call) {
        if (asks_for_support(call.name.str())) {
            if (!is_bare(call) || asks_for_capability(f) || context.older_than(kEmulationCounts) ||
                code_kind(context, f.span.file) == CodeKind::test ||
                uses_unsloth(context.program, f.span.file))
                return;
            const bool decides = !call.unused && !only_refuses(f, call) && !is_only_told(f, call) &&
                                 !is_asked_by_tests_alone(context, f, call);
            if (decides && !decided.insert(&f).second) return;
            const bool warns = decides && told.insert(f.span.file).second &&
                               may_run_on_older(context.project) &&
                               !is_settled_otherwise(context.program, f.span.file);
            report(context, f, call, warns ? Severity::warning : Severity::note,
                   "is_bf16_supported() is True for devices that only emulate bf16, slowly", out);
        } else if (opens_bf16(call) && code_kind(context, f.span.file) != CodeKind::test) {
            if (regions.empty() || regions.back().function->span.file != f.span.file)
                regions.push_back({&f, &call});
        }
    });
    if (regions.empty()) return;
    const std::unordered_set<Symbol> checking = checking_files(context.program, regions);
    for (const Region& region : regions) {
        if (checking.contains(region.function->span.file)) continue;
        report(context, *region.function, *region.call,
               is_python(*region.function) ? Severity::note : Severity::warning,
               "bf16 is chosen for CUDA without asking whether the device has it; before compute "
               "capability 8.0 it is emulated",
               out);
    }
}

constexpr std::array<std::string_view, 1> kOwnTriggers{"device_capability"};

}  // namespace

extern constinit const Rule kBf16WithoutSupportCheck{
    .id = "MP604",
    .name = "bf16-without-support-check",
    .severity = Severity::warning,
    .on_by_default = true,
    .confirmed_by = "",
    .triggers = {kLowDtypes, kRegions, kEngines, kOwnTriggers},
    .check = check};

}  // namespace mp::lint
