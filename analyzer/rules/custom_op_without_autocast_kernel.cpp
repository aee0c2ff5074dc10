// MP115 custom-op-without-autocast-kernel
//
// What   A custom op of several tensors is called inside a region and has no autocast rule: one of
//        Python (torch.library.custom_op), or one of C++ (TORCH_LIBRARY with a kernel of its own).
// Why    Autocast passes an op it does not know through: the op gets fp32 and half inputs side by
//        side, as the ops before it left them.
// Fix    torch.library.register_autocast("ns::op", "cuda", dtype); in C++ TORCH_LIBRARY_IMPL(ns,
//        AutocastCUDA, m) with a function that casts (at::autocast::cached_cast) and calls the op.
// Silent Ops of one tensor, index tensors not counted; ops with an autocast rule; ops never called
//        in a region; bodies that cast their inputs; calls that give every tensor the same dtype;
//        C++ ops made of other ops, which autocast sees one by one.
// Tests  testdata/lint/MP115.md, tests/analyzer/rules/custom_op_without_autocast_kernel_test.cpp

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/regions.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/tensor_dtypes.hpp"
#include "analyzer/region/bindings.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

// "ns::op" of the decorator torch.library.custom_op('ns::op', ...); empty for other functions.
std::string custom_op(const Function& f) {
    constexpr std::string_view kDecorator = "torch.library.custom_op('";
    for (const Symbol annotation : f.annotations) {
        std::string_view text = annotation.str();
        if (!text.starts_with(kDecorator)) continue;
        text.remove_prefix(kDecorator.size());
        return std::string(text.substr(0, text.find('\'')));
    }
    return {};
}

// C++: index.data_ptr<int64_t>() shows that the tensor holds integers.
bool reads_integers(const Function& f, std::int32_t param) {
    return std::ranges::any_of(f.calls, [&](const Call& call) {
        return is_integer(call.result.dtype) && call.result.shape == Shape::pointer && !call.args.empty() &&
               call.args[0].param == param;
    });
}

bool takes_tensors(const Function& f) {
    int tensors = 0;
    for (std::size_t i = 0; i < f.params.size(); ++i)
        if (f.params[i].shape == Shape::tensor && !reads_integers(f, static_cast<std::int32_t>(i))) ++tensors;
    return tensors >= 2;
}

bool casts(const Function& f) {
    constexpr std::array<std::string_view, 6> kCasts{"float", "to",       "type_as",
                                                     "half",  "bfloat16", "cached_cast"};
    return std::ranges::any_of(f.calls,
                               [&](const Call& call) { return any_of(leaf(call.name.str()), kCasts); });
}

// What the program registers for its ops: those with an autocast rule, by any name Python has for
// them, and the kernels of those of C++.
struct Registered {
    std::unordered_set<std::string> autocast;
    std::unordered_map<std::string, std::vector<std::string_view>> keys;  // by "ns::op"
};

constexpr std::array<std::string_view, 3> kLastParts{"register_autocast", "impl", "def"};
bool may_register(std::string_view name) {
    const std::string_view function = leaf(name);
    return function == "register_autocast" || function == "impl" || name == "torch::Library::def";
}

void register_python(const Call& call, Registered& known) {
    const std::string_view name = leaf(call.name.str());
    if (call.args.empty()) return;
    const Operand& op = call.args[0];
    const bool autocasts = name == "register_autocast" ||
                           (name == "impl" && std::ranges::any_of(call.args, [](const Operand& argument) {
                                return spelled(argument).starts_with("Autocast");
                            }));
    if (autocasts) known.autocast.emplace(op.constant.empty() ? leaf(op.name.str()) : spelled(op));
}

Registered registered(const RuleContext& context) {
    Registered known;
    const NameQuestion question = last_part_in(kLastParts, may_register);
    for_each_call(context.program, question, [&](const Function& f, const Call& call) {
        if (f.kind == FunctionKind::python) return register_python(call, known);
        const auto op = registered_op(f, call);
        if (!op || op->key.empty()) return;
        const std::string name = std::string(op->space) + "::" + std::string(op->name);
        if (op->key.starts_with("Autocast")) known.autocast.insert(name);
        known.keys[name].push_back(op->key);
    });
    return known;
}

struct Use {
    const Function* function = nullptr;
    const Call* call = nullptr;
    const Context* region = nullptr;
};

// A call of the op in an enabled region, by its function or through torch.ops.
Use use_in_region(const RuleContext& context, const Function& f, const std::string& op) {
    const auto in_region = [&](const Function& caller, const Call& call) -> Use {
        return {&caller, &call, context.program.enabled_context(caller, call)};
    };
    for (const Call* call : context.program.callers(f.usr))
        if (const Function* caller = context.program.owner(*call))
            if (const Use use = in_region(*caller, *call); use.region) return use;
    std::string path = "torch.ops." + op;
    if (const std::size_t colons = path.find("::"); colons != std::string::npos) path.replace(colons, 2, ".");
    Use found;
    for_each_call(
        context.program, [&](std::string_view name) { return name == path; },
        [&](const Function& caller, const Call& call) {
            if (!found.region) found = in_region(caller, call);
        });
    return found.region ? found : Use{};
}

void report(const RuleContext& context, const Function& at, const std::string& op, const Context& region,
            bool lacks_half, Findings& out) {
    const bool python = at.kind == FunctionKind::python;
    std::string message = "custom op " + op + " has no autocast rule and runs inside " + describe(region) +
                          ": its inputs keep whatever dtypes they have";
    if (lacks_half) message += ", and its kernel has no instance for the half input of this call";
    emit(context, at,
         {.rule = "MP115",
          .severity = lacks_half ? Severity::warning : Severity::note,
          .span = at.span,
          .message = std::move(message),
          .fix = python ? "call torch.library.register_autocast for it"
                        : "register a function for its Autocast key that casts the inputs with "
                          "at::autocast::cached_cast and calls the op again",
          .notes = notes_of(region),
          .function = {}},
         out);
}

void check_python(const RuleContext& context, const Registered& known, Findings& out) {
    for (const Function* f : context.program.functions()) {
        const std::string op = custom_op(*f);
        if (op.empty() || !takes_tensors(*f) || casts(*f)) continue;
        if (known.autocast.contains(op) || known.autocast.contains(std::string(leaf(f->name.str()))))
            continue;
        const Use use = use_in_region(context, *f, op);
        if (use.region) report(context, *f, op, *use.region, false, out);
    }
}

// ---- ops of C++

constexpr std::string_view kOps = "torch.ops.";
bool may_use_op(std::string_view name) { return name.starts_with(kOps); }

// "ns::op" of torch.ops.ns.op(...), also of one overload of it; empty for other calls.
std::string op_of_use(const Call& call) {
    std::string_view path = call.name.str();
    path.remove_prefix(kOps.size());
    const std::size_t dot = path.find('.');
    if (dot == std::string_view::npos) return {};
    const std::string_view name = path.substr(dot + 1);
    return std::string(path.substr(0, dot)) + "::" + std::string(name.substr(0, name.find('.')));
}

// A kernel of this device, not a function that only calls other ops.
bool has_kernel(const Registered& known, const std::string& op, std::string_view device) {
    const auto found = known.keys.find(op);
    if (found == known.keys.end()) return false;
    const bool cuda = device.empty() || device == "cuda";
    const std::string_view key = cuda ? "CUDA" : device == "cpu" ? "CPU" : device == "xpu" ? "XPU" : "";
    return std::ranges::find(found->second, key) != found->second.end();
}

// The dtypes of the tensors that a call gets.
struct Inputs {
    bool all_equal = true;  // and known
    bool some_half = false;
};
Inputs inputs_of(TensorDTypes& dtypes, const Function& f, const Call& call, const Function& op) {
    Inputs is;
    DType first = DType::unknown;
    for (std::size_t i = 0; i < call.args.size() && i < op.params.size(); ++i) {
        if (op.params[i].shape != Shape::tensor || reads_integers(op, static_cast<std::int32_t>(i))) continue;
        const DType dtype = dtypes.of(f, call.args[i]).dtype;
        if (first == DType::unknown) first = dtype;
        is.all_equal = is.all_equal && dtype != DType::unknown && dtype == first;
        is.some_half = is.some_half || is_half(dtype);
    }
    return is;
}

// The body chooses among fp32 and fp64 only: AT_DISPATCH_FLOATING_TYPES, without _AND_HALF or _AND.
bool dispatches_without_half(const RuleContext& context, const Function& f, int depth = 3) {
    constexpr std::array<std::string_view, 3> kNarrow{"AT_DISPATCH_FLOATING_TYPES", "AT_DISPATCH_ALL_TYPES",
                                                      "AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES"};
    return std::ranges::any_of(f.calls, [&](const Call& call) {
        if (any_of(call.macro.str(), kNarrow)) return true;
        const Function* callee = depth > 0 ? context.program.definition(call.callee) : nullptr;
        return callee && callee != &f && dispatches_without_half(context, *callee, depth - 1);
    });
}

void check_cpp(const RuleContext& context, const Registered& known, Findings& out) {
    if (known.keys.empty()) return;
    TensorDTypes dtypes(context);
    std::unordered_set<std::string> reported;
    for_each_call(context.program, may_use_op, [&](const Function& f, const Call& call) {
        const std::string op = op_of_use(call);
        if (op.empty() || known.autocast.contains(op) || reported.contains(op)) return;
        const Function* kernel = context.program.definition(call.callee);
        if (!kernel || kernel->kind == FunctionKind::python) return;
        if (!takes_tensors(*kernel) || casts(*kernel)) return;
        const Context* region = context.program.enabled_context(f, call);
        if (!region || !has_kernel(known, op, region->device.str())) return;
        const Inputs inputs = inputs_of(dtypes, f, call, *kernel);
        if (inputs.all_equal) return;
        reported.insert(op);
        report(context, *kernel, op, *region, inputs.some_half && dispatches_without_half(context, *kernel),
               out);
    });
}

void check(const RuleContext& context, Findings& out) {
    const Registered known = registered(context);
    check_python(context, known, out);
    check_cpp(context, known, out);
}

// The op may be called by its name, through torch.ops: no call leads to its definition.
constexpr std::array<std::string_view, 1> kOwnTriggers{"custom_op"};

}  // namespace

extern constinit const Rule kCustomOpWithoutAutocastKernel{.id = "MP115",
                                                           .name = "custom-op-without-autocast-kernel",
                                                           .severity = Severity::warning,
                                                           .on_by_default = true,
                                                           .confirmed_by = "MPT060",
                                                           .triggers = {kRegions, kEngines, kOwnTriggers},
                                                           .check = check};

}  // namespace mp::lint
