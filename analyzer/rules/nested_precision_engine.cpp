// MP118 nested-precision-engine
//
// What   torch.autocast is opened by hand around or inside what a precision engine already casts
//        (DeepSpeed, FSDP, Accelerate, Lightning), in another dtype; or switched off around a module
//        whose weights the engine has cast.
// Why    The inner region wins: the engine scales for fp16 while the ops run in bf16, or the other
//        way round. An island of fp32 cannot work on weights that are half.
// Fix    Let the engine open the region, or give both the same dtype.
// Silent The same dtype; engines whose dtype is not known; autocast in other files than the
//        engine's, but for the hooks of a LightningModule.
// Tests  testdata/lint/MP118.md, tests/analyzer/rules/nested_precision_engine_test.cpp

#include <algorithm>
#include <array>

#include "analyzer/analyses/autocast_calls.hpp"
#include "analyzer/analyses/engines.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/region/calls.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

bool is_engine_dtype(const Engine& engine) {
    return engine.dtype == DType::fp16 || engine.dtype == DType::bf16;
}

bool is_lightning_module(const Function& f) {
    return std::ranges::any_of(f.bases, [](Symbol base) {
        return mentions(base.str(), "LightningModule") || mentions(base.str(), "LightningDataModule");
    });
}

// The engine has this function's modules: it is set up in the same file, or it is the one Trainer
// that runs the hooks of this LightningModule.
class Reach {
public:
    Reach(const RuleContext& context, const std::vector<Engine>& engines) : engines_(engines) {
        static constexpr std::array<std::string_view, 1> kSetsUp{"deepspeed.initialize"};
        for_each_call(context.program, name_in(kSetsUp),
                      [&](const Function&, const Call& call) { deepspeed_files_.push_back(call.span.file); });
    }

    bool covers(const Engine& engine, const Function& f) const {
        switch (engine.kind) {
            case EngineKind::lightning:
                return is_lightning_module(f) && is_only(engine);
            case EngineKind::deepspeed:
                return std::ranges::find(deepspeed_files_, f.span.file) != deepspeed_files_.end() &&
                       is_only(engine);
            case EngineKind::fsdp1:
            case EngineKind::fsdp2:
                return engine.used == Switch::on && engine.at.file == f.span.file && is_only(engine);
            case EngineKind::accelerate:
            case EngineKind::fabric:
                return engine.at.file == f.span.file;
            default:
                return false;
        }
    }

private:
    // False for several engines of a kind with different dtypes: it is not known which one has the module.
    bool is_only(const Engine& engine) const {
        return std::ranges::all_of(engines_, [&](const Engine& other) {
            return other.kind != engine.kind || other.dtype == engine.dtype;
        });
    }

    const std::vector<Engine>& engines_;
    std::vector<Symbol> deepspeed_files_;
};

bool runs_module(const Function& f, const Call& constructor) {
    const std::int32_t enter = enter_of(f, constructor);
    if (enter == kNone) return false;
    const auto calls = calls_inside(f, static_cast<std::size_t>(enter));
    return std::ranges::any_of(calls, [&](std::size_t index) {
        const Call& call = f.calls[index];
        const std::string_view name = leaf(call.name.str());
        return call.kind == CallKind::method && (name == "forward" || name == "__call__") &&
               !call.args.empty() && call.args[0].shape == Shape::module;
    });
}

std::string message_of(const Engine& engine, const AutocastCall& region, const Function& f,
                       const Call& call) {
    const std::string name(name_of(engine.kind));
    const std::string dtype(label(engine.dtype));
    if (is_disabled(region))
        return engine.weights && runs_module(f, call)
                   ? "autocast is disabled around a module whose weights " + name + " holds in " + dtype +
                         ": it cannot compute in fp32"
                   : "";
    const DType own = region_dtype(region);
    if (own != DType::fp16 && own != DType::bf16) return "";
    if (own != engine.dtype)
        return "autocast in " + std::string(label(own)) + " inside " + name + ", which computes in " + dtype;
    return "";
}

void check(const RuleContext& context, Findings& out) {
    const std::vector<Engine>& engines = engines_of(context);
    if (std::ranges::none_of(engines, is_engine_dtype)) return;
    const Reach reach(context, engines);
    static constexpr std::array<std::string_view, 1> kAutocast{"autocast"};
    for_each_call(context.program, last_part_in(kAutocast), [&](const Function& f, const Call& call) {
        const auto region = autocast_call(call);
        if (!region) return;
        for (const Engine& engine : engines) {
            if (!is_engine_dtype(engine) || !reach.covers(engine, f)) continue;
            std::string message = message_of(engine, *region, f, call);
            if (message.empty()) continue;
            emit(context, f,
                 {.rule = "MP118",
                  .severity = Severity::warning,
                  .span = call.span,
                  .message = std::move(message),
                  .fix = "let " + std::string(name_of(engine.kind)) +
                         " choose the precision, or give both the same dtype",
                  .notes = {{engine.at, std::string(name_of(engine.kind)) + " is set up here"}},
                  .function = {}},
                 out);
            return;
        }
    });
}

}  // namespace

extern constinit const Rule kNestedPrecisionEngine{.id = "MP118",
                                                   .name = "nested-precision-engine",
                                                   .severity = Severity::warning,
                                                   .on_by_default = true,
                                                   .confirmed_by = "MPT060",
                                                   .triggers = {kLowDtypes, kRegions, kEngines},
                                                   .check = check};

}  // namespace mp::lint
