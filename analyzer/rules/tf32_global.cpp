// MP603 tf32-global
//
// What   TF32 is switched on for every fp32 matrix product of the process: `allow_tf32 = True`,
//        `set_float32_matmul_precision("high")`, NVIDIA_TF32_OVERRIDE, a cuBLAS math mode.
// Why    TF32 keeps 10 bits of mantissa. Training products survive that; inverses, decompositions,
//        solves and distances amplify it to errors of per cents, without a change of dtype that
//        anything would show.
// Fix    Switch it on around what may lose bits, or off around the solve; or solve in fp64.
// Silent Switches set to False; the switch of cuDNN convolutions, which is on by default; values that
//        are not constant. Without a sensitive operation that the same code reaches, and to which a
//        matrix product leads, a note.
// Tests  testdata/lint/MP603.md, tests/analyzer/rules/tf32_global_test.cpp

#include <algorithm>
#include <array>
#include <map>
#include <unordered_set>
#include <vector>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/tensor_dtypes.hpp"
#include "analyzer/region/calls.hpp"
#include "analyzer/rules/rule.hpp"
#include "kernels/numerics/op_traits.hpp"

namespace mp::lint {
namespace {

constexpr std::array<std::string_view, 3> kPrecisionSettings{"torch.backends.fp32_precision",
                                                             "torch.backends.cuda.fp32_precision",
                                                             "torch.backends.cuda.matmul.fp32_precision"};

bool switches_on(const Setting& s) {
    const std::string_view key = s.key.str();
    if (key == "torch.backends.cuda.matmul.allow_tf32") return is_true(&s.value);
    if (any_of(key, kPrecisionSettings)) return spelled(s.value) == "tf32";
    return (key == "os.environ.NVIDIA_TF32_OVERRIDE" ||
            key == "os.environ.TORCH_ALLOW_TF32_CUBLAS_OVERRIDE") &&
           spelled(s.value) == "1";
}

bool sets_precision(std::string_view name) {
    return leaf(name) == "set_float32_matmul_precision" || leaf(name) == "setFloat32MatmulPrecision";
}

bool allows_tf32(std::string_view name) { return leaf(name) == "setAllowTF32CuBLAS"; }

bool switches_on(const Call& call) {
    const std::string_view name = call.name.str();
    if (sets_precision(name)) {
        const Operand* precision = argument(call, 0, "precision");
        const std::string_view value = precision ? spelled(*precision) : "";
        return value == "high" || value == "medium";
    }
    if (allows_tf32(name)) return is_true(argument(call, 0, "allow"));
    for (const Operand& o : call.args) {
        const std::string_view constant = o.constant.str();
        if (constant == "CUBLAS_TF32_TENSOR_OP_MATH" || constant == "CUBLAS_COMPUTE_32F_FAST_TF32")
            return true;
    }
    return false;
}

bool switches_off(const Function& f) {
    for (const Setting& s : f.settings)
        if (s.key.str() == "torch.backends.cuda.matmul.allow_tf32" && is_false(&s.value)) return true;
    for (const Call& c : f.calls) {
        const std::string_view name = leaf(c.name.str());
        if (name == "setAllowTF32CuBLAS" && is_false(argument(c, 0, "allow"))) return true;
        const Operand* precision = argument(c, 0, "precision");
        if (name == "set_float32_matmul_precision" && precision && spelled(*precision) == "highest")
            return true;
    }
    return false;
}

struct Sensitive {
    const Function* function = nullptr;
    const Call* call = nullptr;
};

class Search {
public:
    explicit Search(const RuleContext& context) : context_(context), dtypes_(context) {}

    // The nearest sensitive operation in the file of the switch or in what its functions call.
    Sensitive from(Symbol file) {
        std::vector<const Function*> pending;
        std::unordered_set<const Function*> seen;
        for (const Function* f : context_.program.functions())
            if (f->span.file == file && seen.insert(f).second) pending.push_back(f);
        for (std::size_t i = 0; i < pending.size(); ++i) {
            const Function& f = *pending[i];
            if (switches_off(f) && !switches_on_here(f)) continue;
            for (const Call& call : f.calls) {
                if (is_sensitive(f, call)) return {&f, &call};
                const Function* callee = context_.program.definition(call.callee);
                if (callee && seen.insert(callee).second) pending.push_back(callee);
            }
        }
        return {};
    }

private:
    static bool switches_on_here(const Function& f) {
        for (const Setting& s : f.settings)
            if (switches_on(s)) return true;
        for (const Call& c : f.calls)
            if (switches_on(c)) return true;
        return false;
    }

    bool is_sensitive(const Function& f, const Call& call) {
        if (!traits_of(call.op).has(Trait::ill_conditioned) || call.args.empty()) return false;
        if (call.callee != Symbol() && context_.program.definition(call.callee)) return false;
        if (dtypes_.of(f, call.args[0]).dtype == DType::fp64) return false;  // TF32 is for fp32 products
        return !is_python(f) || call.op.name() == "cdist" ||
               std::ranges::any_of(call.args,
                                   [&](const Operand& o) { return comes_from_product(f, o, kFarthest); });
    }

    // The solvers themselves compute in fp32: what they amplify is the error of a product before.
    bool comes_from_product(const Function& f, const Operand& value, int left) const {
        bool found = false;
        derives_from(f, value, [&](const Operand& one) {
            const Call* call = call_of(f, one);
            const Function* callee = call ? context_.program.definition(call->callee) : nullptr;
            if (call && (traits_of(call->op).has(Trait::product) || call->op.name() == "einsum"))
                found = true;
            else if (callee && left > 0)
                found = std::ranges::any_of(callee->returned, [&](const Operand& returned) {
                    return comes_from_product(*callee, returned, left - 1);
                });
            else if (!call && one.param != kNone && left > 0)
                found = is_passed_product(f, one.param, left - 1);
            return found;
        });
        return found;
    }

    bool is_passed_product(const Function& f, std::int32_t param, int left) const {
        return std::ranges::any_of(context_.program.callers(f.usr), [&](const Call* call) {
            const Function* caller = context_.program.owner(*call);
            const Operand* given = caller ? argument_for(*call, f, param) : nullptr;
            return given && comes_from_product(*caller, *given, left);
        });
    }

    static constexpr int kFarthest = 2;  // callers and callees on the way

    const RuleContext& context_;
    TensorDTypes dtypes_;
};

// Where TF32 is switched on, by the place of the function in Program::functions().
std::multimap<std::uint32_t, SourceSpan> switches_of(const Program& program) {
    std::multimap<std::uint32_t, SourceSpan> found;
    const auto functions = program.functions();
    for (std::uint32_t i = 0; i < functions.size(); ++i) {
        for (const Setting& s : functions[i]->settings)
            if (switches_on(s)) found.emplace(i, s.span);
        if (is_python(*functions[i])) continue;
        // In C++ any call may be given the math mode.
        for (const Call& call : functions[i]->calls)
            if (switches_on(call)) found.emplace(i, call.span);
    }
    const auto may = [](std::string_view name) { return sets_precision(name) || allows_tf32(name); };
    for (const CallAt& at : program.calls().select(may, {})) {
        const Function& f = *functions[at.function];
        const Call& call = f.calls[at.call];
        if (is_python(f) && switches_on(call)) found.emplace(at.function, call.span);
    }
    return found;
}

void report(const RuleContext& context, const Function& f, const SourceSpan& span, const Sensitive& sensitive,
            Findings& out) {
    std::string message =
        "every fp32 matrix product of the process may run in TF32, with 10 bits of "
        "mantissa";
    std::vector<Note> notes;
    if (sensitive.call) {
        message += ", and " + std::string(sensitive.call->op.name()) + " amplifies such errors";
        notes.push_back({sensitive.call->span, "the operation that amplifies them"});
    }
    emit(context, f,
         {.rule = "MP603",
          .severity = sensitive.call ? Severity::warning : Severity::note,
          .span = span,
          .message = std::move(message),
          .fix = sensitive.call ? "switch TF32 off around it, or compute it in fp64"
                                : "switch it on only around products that may lose bits",
          .notes = std::move(notes),
          .function = {}},
         out);
}

void check(const RuleContext& context, Findings& out) {
    Search search(context);
    for (const auto& [function, at] : switches_of(context.program)) {
        const Function& f = *context.program.functions()[function];
        report(context, f, at, search.from(f.span.file), out);
    }
}

constexpr std::array<std::string_view, 3> kOwnTriggers{"tf32", "TF32", "precision"};

}  // namespace

extern constinit const Rule kTf32Global{.id = "MP603",
                                        .name = "tf32-global",
                                        .severity = Severity::warning,
                                        .on_by_default = true,
                                        .confirmed_by = "",
                                        .triggers = {kOwnTriggers},
                                        .check = check};

}  // namespace mp::lint
