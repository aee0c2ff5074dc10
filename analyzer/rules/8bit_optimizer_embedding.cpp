// MP504 8bit-optimizer-embedding
//
// What   An 8-bit optimizer updates the embedding of a model like every other weight.
// Why    The gradient of an embedding is sparse and its rows differ by orders of magnitude: quantised
//        in blocks, the moments of rare rows are lost, and training from scratch becomes unstable.
// Fix    bitsandbytes.nn.StableEmbedding, or register_module_override(..., {"optim_bits": 32}).
// Silent Models without an embedding; programs that make either of the two; models that are loaded
//        pretrained: fine-tuning is known to work. Off by default.
// Tests  testdata/lint/MP504.md, tests/analyzer/rules/8bit_optimizer_embedding_test.cpp

#include <array>
#include <unordered_set>
#include <vector>

#include "analyzer/analyses/support.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

bool is_8bit_optimizer(std::string_view name) {
    const bool known = name.starts_with("bitsandbytes.optim.") || name.starts_with("torchao.");
    return known && leaf(name).ends_with("8bit");
}

bool is_remedy(std::string_view name) {
    const std::string_view last = leaf(name);
    return last == "StableEmbedding" || last == "register_module_override" || last == "override_config";
}

bool is_either(std::string_view name) { return is_8bit_optimizer(name) || is_remedy(name); }

bool makes_embedding(const Call& call) {
    const std::string_view name = call.name.str();
    return name == "torch.nn.Embedding" || name == "torch.nn.EmbeddingBag";
}

// An embedding made in the file of the optimizer, or in what its functions call, or in the classes
// whose objects they make.
const Call* embedding_near(const Program& program, Symbol file) {
    std::vector<const Function*> pending;
    std::unordered_set<const Function*> seen;
    for (const Function* f : program.functions())
        if (f->span.file == file && seen.insert(f).second) pending.push_back(f);
    for (std::size_t i = 0; i < pending.size(); ++i) {
        for (const Call& call : pending[i]->calls) {
            if (makes_embedding(call)) return &call;
            const Function* callee = call.callee.empty() ? nullptr : program.definition(call.callee);
            if (callee && seen.insert(callee).second) pending.push_back(callee);
        }
    }
    return nullptr;
}

void check(const RuleContext& context, Findings& out) {
    if (context.inference) return;
    std::vector<std::pair<const Function*, const Call*>> optimizers;
    bool remedied = false;
    for_each_call(context.program, is_either, [&](const Function& f, const Call& call) {
        if (is_remedy(call.name.str()))
            remedied = true;
        else
            optimizers.emplace_back(&f, &call);
    });
    if (remedied) return;
    for (const auto& [f, call] : optimizers) {
        const Call* embedding = embedding_near(context.program, f->span.file);
        if (!embedding) continue;
        emit(context, *f,
             {.rule = "MP504",
              .severity = Severity::note,
              .span = call->span,
              .message = std::string(leaf(call->name.str())) +
                         " keeps 8-bit moments for the embedding too, whose rare rows lose theirs",
              .fix = "use bitsandbytes.nn.StableEmbedding, or keep 32 bits for the embedding with "
                     "register_module_override",
              .notes = {{embedding->span, "the embedding"}},
              .function = {}},
             out);
    }
}

// ... and the remedies, wherever the program makes one.
constexpr std::array<std::string_view, 4> kOwnTriggers{"8bit", "StableEmbedding", "register_module_override",
                                                       "override_config"};

}  // namespace

extern constinit const Rule k8bitOptimizerEmbedding{.id = "MP504",
                                                        .name = "8bit-optimizer-embedding",
                                                        .severity = Severity::note,
                                                        .on_by_default = false,
                                                        .confirmed_by = "",
                                                        .triggers = {kOwnTriggers},
                                                        .check = check};

}  // namespace mp::lint
