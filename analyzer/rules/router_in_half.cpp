// MP309 router-in-half
//
// What   In a layer the k largest of a gate's scores select experts, and the gate's product or its softmax is in
//        fp16 or bf16.
// Why    bf16 keeps 8 bits: scores that differ by less than 0.4 % are equal, and which of equal ones wins
//        depends on the kernel. Another kernel, batch or precision then selects other experts for the same token.
// Fix    Compute the gate in fp32: F.linear(x.float(), weight.float()), softmax(dtype=torch.float32).
// Silent Scores in fp32 from their product on; dtypes that are not known; sampling of tokens, which indexes
//        the logits first. A program that trains nothing, and a script that only runs
//        its own copy of a model: a note.
// Tests  testdata/lint/MP309.md, tests/analyzer/rules/router_in_half_test.cpp

#include <array>
#include <unordered_set>

#include "analyzer/analyses/model_casts.hpp"
#include "analyzer/analyses/module_dtypes.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/trials.hpp"
#include "analyzer/region/calls.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

constexpr int kFarthest = 12;

bool selects(std::string_view op) { return op == "topk"; }

// Ops through which scores go to their selection.
bool passes_scores(const Call& call) {
    constexpr std::array<std::string_view, 9> kOps{"softmax", "sigmoid", "add",      "div", "mul",
                                                   "view",    "reshape", "softplus", "sqrt"};
    constexpr std::array<std::string_view, 6> kCasts{"to", "float", "half", "bfloat16", "type", "contiguous"};
    return any_of(call.op.name(), kOps) || any_of(leaf(call.name.str()), kCasts);
}

// values, _ = torch.topk(scores, k): the values alone, which rounding hardly changes.
bool drops_indices(const Call& call) { return call.result.name.str().ends_with(", _"); }

// The gate: a linear layer of the object.
bool is_gate(const Call& call) {
    return call.op.name() == "linear" && !call.args.empty() &&
           (call.args.front().name.str().starts_with("self.") ||
            (call.args.size() > 1 && call.args[1].name.str().starts_with("self.")));
}

// In inference a choice between scores that rounding makes equal costs little.
bool shows_training(std::string_view name) {
    return leaf(name) == "backward" || name.starts_with("torch.optim.") || leaf(name).ends_with("Trainer");
}

class Judge {
public:
    Judge(const RuleContext& context, Findings& out)
        : context_(context), modules_(context), dtypes_(modules_.tensors()), out_(out) {
        for_each_call(context.program, shows_training,
                      [this](const Function& f, const Call&) { trains_.insert(f.span.file); });
    }

    void selection(const Function& f, const Call& call);

private:
    bool is_trained(Symbol file) const;
    // The layer is part of a module that the program casts: its product is as low as its weights.
    TensorDType of_cast_model(const Function& f) { return half_models_of(context_).dtype_of(f); }

    const RuleContext& context_;
    ModuleDTypes modules_;
    TensorDTypes& dtypes_;
    std::unordered_set<Symbol> trains_;  // files
    Findings& out_;
};

// A script without training, which no other file runs, has its own copy of the layer to generate with.
bool Judge::is_trained(Symbol file) const {
    if (trains_.contains(file)) return true;
    return !trains_.empty() && (is_run_elsewhere(context_, file) || !is_script(context_.program, file));
}

void Judge::selection(const Function& f, const Call& call) {
    if (!is_python(f) || f.parent_class.empty() || call.args.empty() || drops_indices(call)) return;
    const Call* low = nullptr;
    bool wide = false;
    TensorDType found;
    const Operand* value = &call.args.front();
    const Call* made = call_of(f, *value);
    for (int step = 0; made && step < kFarthest; ++step) {
        TensorDType dtype = dtypes_.of(f, *value);
        wide = wide || is_wide(dtype.dtype) || is_wide(made->result.dtype);
        if (is_low_precision(dtype.dtype)) low = made, found = std::move(dtype);
        if (is_gate(*made) || !passes_scores(*made) || made->args.empty()) break;
        value = &made->args.front();
        made = call_of(f, *value);
    }
    if (!made || !is_gate(*made)) return;
    if (!low && !wide && !context_.program.enabled_context(f, *made)) {
        found = of_cast_model(f);
        if (is_low_precision(found.dtype)) low = made;
    }
    if (!low) return;
    found.chain.insert(found.chain.begin(),
                       {low->span, "the scores are " + std::string(label(found.dtype)) + " here"});
    emit(context_, f,
         {.rule = "MP309",
          .severity = is_trained(f.span.file) ? Severity::warning : Severity::note,
          .span = call.span,
          .message = "top-k selects by scores in " + std::string(label(found.dtype)) +
                     ": scores that rounding makes equal select by chance",
          .fix = "compute the gate and its softmax in fp32, outside of autocast",
          .notes = std::move(found.chain),
          .function = {}},
         out_);
}

void check(const RuleContext& context, Findings& out) {
    Judge judge(context, out);
    for_each_op(context.program, selects,
                [&](const Function& f, const Call& call) { judge.selection(f, call); });
}

}  // namespace

extern constinit const Rule kRouterInHalf{.id = "MP309",
                                          .name = "router-in-half",
                                          .severity = Severity::warning,
                                          .on_by_default = true,
                                          .confirmed_by = "",
                                          .triggers = {kLowDtypes, kRegions, kEngines},
                                          .check = check};

}  // namespace mp::lint
