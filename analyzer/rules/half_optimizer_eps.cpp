// MP303 half-optimizer-eps
//
// What   Adam, RMSprop or another optimizer that divides by `sqrt(v) + eps` works on fp16 parameters
//        with an eps that is 0 in fp16; the default 1e-8 is.
// Why    v of a parameter without gradient is 0, so the step is 0 / 0: the weights become NaN.
// Fix    eps=1e-4, or fp32 parameters.
// Silent An optimizer that nothing reads; fp32 and bf16 parameters, and those that become fp32 after the cast; an eps
//        that fp16 holds; fused=True, which computes in fp32; optimizers with fp32 copies of their own (apex,
//        bitsandbytes, DeepSpeed); programs that shard with FSDP, whose param_dtype is not that of the shards; in C++
//        options that come from elsewhere.
// Tests  testdata/lint/MP303.md, tests/analyzer/rules/half_optimizer_eps_test.cpp

#include <algorithm>
#include <array>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/engines.hpp"
#include "analyzer/analyses/module_dtypes.hpp"
#include "analyzer/analyses/module_operands.hpp"
#include "analyzer/analyses/numbers.hpp"
#include "analyzer/analyses/protocol_events.hpp"
#include "analyzer/analyses/python_code.hpp"
#include "analyzer/analyses/scaler_refusals.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/tensor_dtypes.hpp"
#include "analyzer/analyses/trials.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

// Optimizers of torch.optim that divide by eps, where they take it, and its default.
struct Optimizer {
    std::string_view name;
    std::size_t position = 0;
    double standard = 0;
};
constexpr std::array<Optimizer, 8> kOptimizers{{{"Adam", 3, 1e-8},
                                                {"AdamW", 3, 1e-8},
                                                {"NAdam", 3, 1e-8},
                                                {"RAdam", 3, 1e-8},
                                                {"Adamax", 3, 1e-8},
                                                {"RMSprop", 3, 1e-8},
                                                {"Adagrad", 5, 1e-10},
                                                {"SparseAdam", 3, 1e-8}}};

// The optimizer of this name in `scope`, the library's.
const Optimizer* optimizer_named(std::string_view name, std::string_view scope) {
    if (!is_within(name, scope)) return nullptr;
    const auto found = std::ranges::find(kOptimizers, leaf(name), &Optimizer::name);
    return found == kOptimizers.end() ? nullptr : &*found;
}

const Optimizer* optimizer_of(const Call& call) { return optimizer_named(call.name.str(), "torch.optim"); }

// ---- C++: torch::optim::Adam(net->parameters(), torch::optim::AdamOptions(1e-3).eps(1e-4))

// The optimizer that the call makes, also through std::make_unique and std::make_shared.
const Optimizer* cpp_optimizer_of(const Call& call) {
    std::string_view made;
    if (call.kind == CallKind::constructor)
        made = owner_of(call.name.str());
    else if (is_within(call.name.str(), "std") && !call.template_args.empty())
        made = call.template_args[0].text.str();
    return optimizer_named(made, "torch::optim");
}

// The names of both.
bool may_make_optimizer(std::string_view name) {
    return optimizer_named(name, "torch.optim") || is_within(name, "std") ||
           optimizer_named(owner_of(name), "torch::optim");
}

// The constructor of the options, through the calls that set one and give them back.
const Call* options_of(const Function& f, const Operand& value) {
    const Call* call = call_of(f, value);
    for (int depth = 0; call && call->kind == CallKind::method && depth < 16; ++depth)
        call = call->args.empty() ? nullptr : call_of(f, call->args[0]);
    const bool makes =
        call && call->kind == CallKind::constructor && leaf(call->name.str()).ends_with("Options");
    return makes ? call : nullptr;
}

// The eps of these options; nothing when it is not constant or they are not made here.
std::optional<double> eps_of(const Function& f, const Operand* options, const Optimizer& optimizer) {
    if (!options) return optimizer.standard;
    const Call* made = options_of(f, *options);
    if (!made) {  // a learning rate, or options that are made of one and nothing else
        const bool rate =
            !call_of(f, *options) && (is_float(options->dtype) || number_of(*options).has_value());
        return rate ? std::optional(optimizer.standard) : std::nullopt;
    }
    std::optional<double> eps = optimizer.standard;
    for (const Call& call : f.calls)
        if (leaf(call.name.str()) == "eps" && call.args.size() == 2 && options_of(f, call.args[0]) == made)
            eps = number_of(call.args[1]);
    return eps;
}

// The last cast of the whole module before this call: net->to(torch::kHalf).
const Call* module_cast_before(const Function& f, const Call& parameters) {
    const Call* cast = nullptr;
    for (const Call& call : f.calls) {
        if (&call == &parameters) break;
        if (call.name.str() != "torch::nn::Module::to" || call.args.empty()) continue;
        const bool casts = std::ranges::any_of(
            call.args, [](const Operand& o) { return o.shape == Shape::other && is_float(o.dtype); });
        if (casts && key_of(call.args[0]) == key_of(parameters.args[0])) cast = &call;
    }
    return cast;
}

class Judge {
public:
    Judge(const RuleContext& context, Findings& out)
        : context_(context), modules_(context), engines_(engines_of(context)), out_(out) {}

    void look_at(const Function& f, const Call& call) {
        const Optimizer* optimizer = optimizer_of(call);
        if (!optimizer || is_true(keyword_argument(call, "fused"))) return;
        const Operand* eps = argument(call, optimizer->position, "eps");
        if (!eps && has_unpacked(call)) return;
        const auto value = eps ? number_of(*eps) : std::optional(optimizer->standard);
        if (!value || rounded(DType::fp16, *value) != 0) return;
        const Operand* params = argument(call, 0, "params");
        if (!params || sharded() || are_of_adapters(f, *params)) return;
        // Nothing steps it, or the scaler refuses to (MP207).
        if (is_unread(context_.program, f, call) || refusals_of(context_).has(call)) return;
        TensorDType is = parameters(f, *params);
        if (is.dtype == DType::unknown) is = from_engine(f);
        if (is.dtype == DType::fp16) ask_modules(f, *params, is);
        if (is.dtype != DType::fp16) return;
        report(f, call, *optimizer, eps, *value, std::move(is));
    }

    void look_at_cpp(const Function& f, const Call& call) {
        const Optimizer* optimizer = cpp_optimizer_of(call);
        if (!optimizer || call.args.empty()) return;
        const Call* parameters = call_of(f, call.args[0]);
        if (!parameters || leaf(parameters->name.str()) != "parameters" || parameters->args.empty()) return;
        const Call* cast = module_cast_before(f, *parameters);
        if (!cast || cast->result.dtype != DType::fp16) return;
        const Operand* options = call.args.size() > 1 ? &call.args[1] : nullptr;
        const auto value = eps_of(f, options, *optimizer);
        if (!value || rounded(DType::fp16, *value) != 0) return;
        const bool certain = cast->block == 0 || cast->block == call.block;
        report(f, call, *optimizer, nullptr, *value,
               {.dtype = DType::fp16,
                .proven = certain,
                .chain = {{cast->span, "the parameters become fp16 here"}}},
               *value != optimizer->standard);
    }

private:
    // What happened to the module between its cast and this call: for p in m.parameters(): p.data = p.data.float()
    void ask_modules(const Function& f, const Operand& params, TensorDType& is) {
        for (const auto& [function, module, at] : modules_in(context_, f, params)) {
            const ModuleDType found = modules_.of_module(*function, *module, *at);
            if (!found.known()) continue;
            is.proven = is.proven && found.proven;
            if (found.dtype != DType::fp16) is.dtype = found.dtype;
        }
    }

    // The parameters of a model, also in the groups of a list: [{"params": m.parameters()}].
    TensorDType parameters(const Function& f, const Operand& value) {
        TensorDType found;
        derives_from(f, value, [&](const Operand& one) {
            const Call* call = call_of(f, one);
            const bool display = call && call->kind == CallKind::constructor &&
                                 (call->name.str() == "list" || call->name.str() == "dict");
            const bool is_values = one.shape == Shape::parameters || one.shape == Shape::tensor ||
                                   one.shape == Shape::module;  // no dtype out of a table of options
            if (!display && is_values) found = modules_.tensors().of(f, one);
            return found.dtype != DType::unknown;
        });
        return found;
    }

    // FSDP computes in param_dtype, but the optimizer gets the shards, in the dtype the module had.
    bool sharded() const {
        return find_engine(engines_, EngineKind::fsdp1) || find_engine(engines_, EngineKind::fsdp2);
    }

    // Lightning's "16-true" casts the weights before configure_optimizers sees them.
    TensorDType from_engine(const Function& f) const {
        if (leaf(f.name.str()) != "configure_optimizers") return {};
        for (const Engine& engine : engines_)
            if (engine.kind == EngineKind::lightning && engine.weights)
                return {.dtype = engine.dtype,
                        .proven = engines_.size() == 1,
                        .chain = {{engine.at, "the trainer casts the weights here"}}};
        return {};
    }

    void report(const Function& f, const Call& call, const Optimizer& optimizer, const Operand* eps,
                double value, TensorDType is, bool given = false) {
        std::vector<Edit> edits;
        if (eps && eps->span.known()) edits.push_back({eps->span, rewritten(*eps, "1e-4")});
        emit(context_, f,
             {.rule = "MP303",
              .severity = is.proven ? Severity::error : Severity::warning,
              .span = call.span,
              .message = std::string(optimizer.name) + " on fp16 parameters with " +
                         (eps || given ? "eps " : "the default eps ") + shown(value, 3) +
                         ", which is 0 in fp16: a parameter without gradient becomes 0 / 0 = nan",
              .fix = is_python(f) ? "use eps=1e-4, or keep the parameters in fp32"
                                  : "use options with .eps(1e-4), or keep the parameters in fp32",
              .notes = std::move(is.chain),
              .function = {},
              .edits = std::move(edits)},
             out_);
    }

    const RuleContext& context_;
    ModuleDTypes modules_;
    const std::vector<Engine>& engines_;
    Findings& out_;
};

void check(const RuleContext& context, Findings& out) {
    if (context.inference) return;
    Judge judge(context, out);
    for_each_call(context.program, may_make_optimizer, [&](const Function& f, const Call& call) {
        if (is_python(f))
            judge.look_at(f, call);
        else
            judge.look_at_cpp(f, call);
    });
}

}  // namespace

extern constinit const Rule kHalfOptimizerEps{.id = "MP303",
                                              .name = "half-optimizer-eps",
                                              .severity = Severity::error,
                                              .on_by_default = true,
                                              .confirmed_by = "MPT040",
                                              .triggers = {kLowDtypes, kRegions, kEngines},
                                              .check = check};

}  // namespace mp::lint
