// MP121 fsdp-casts-positions
//
// What   FSDP2 shards the layers of a model with a 16-bit MixedPrecisionPolicy that casts the inputs of each
//        layer, and the model gives its layers fp32 positions or the sines and cosines of them.
// Why    cast_forward_inputs is True by default: each layer gets the positions in bf16. bf16 has 8 bits, so
//        positions from 257 on are not exact, and rotary embeddings turn by wrong angles.
// Fix    MixedPrecisionPolicy(..., cast_forward_inputs=False), or compute positions inside the layer.
// Silent cast_forward_inputs=False; policies of fp32; only the whole model is sharded; arguments that are
//        not known to be fp32 positions.
// Tests  testdata/lint/MP121.md, tests/analyzer/rules/fsdp_casts_positions_test.cpp

#include <algorithm>
#include <array>
#include <vector>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/engines.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/tensor_dtypes.hpp"
#include "analyzer/region/calls.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

constexpr std::array<std::string_view, 1> kShards{"fully_shard"};

// fully_shard(layer, mp_policy=policy) in a loop over layers
bool shards_layers(const Program& program) {
    bool found = false;
    for_each_call(program, last_part_in(kShards), [&](const Function&, const Call& call) {
        found = found || (call.loop_depth > 0 && keyword_argument(call, "mp_policy"));
    });
    return found;
}

bool casts_inputs(const Engine& engine) {
    if (engine.kind != EngineKind::fsdp2 || !is_low_precision(engine.dtype) || !engine.call) return false;
    return !has_unpacked(*engine.call) && !is_false(argument(*engine.call, 3, "cast_forward_inputs"));
}

bool is_position(const Call& call) {
    constexpr std::array<std::string_view, 4> kOps{"cos", "sin", "outer", "arange"};
    return any_of(call.op.name(), kOps) || leaf(call.name.str()) == "arange";
}

// `layer(x, cos, sin)` in a loop of a module's method, with positions in fp32.
struct PositionsAt {
    const Function* function = nullptr;
    const Operand* positions = nullptr;
};

constexpr std::array<std::string_view, 2> kLastParts{"__call__", "forward"};
bool calls_layer(std::string_view name) { return name.ends_with(".__call__") || name.ends_with(".forward"); }

std::vector<PositionsAt> passed_positions(const RuleContext& context) {
    std::vector<PositionsAt> found;
    TensorDTypes dtypes(context);
    const NameQuestion question = last_part_in(kLastParts, calls_layer);
    for_each_call(context.program, question, [&](const Function& f, const Call& call) {
        if (!is_python(f) || call.kind != CallKind::method || call.loop_depth == 0 || f.parent_class.empty())
            return;
        if (call.op.known()) return;
        for (std::size_t i = 2; i < call.args.size(); ++i) {
            const Operand& argument = call.args[i];
            if (!origin(f, argument, is_position) || dtypes.of(f, argument).dtype != DType::fp32) continue;
            found.push_back({.function = &f, .positions = &argument});
            return;
        }
    });
    return found;
}

void check(const RuleContext& context, Findings& out) {
    const std::vector<Engine>& engines = engines_of(context);
    if (std::ranges::none_of(engines, casts_inputs) || !shards_layers(context.program)) return;
    const std::vector<PositionsAt> positions = passed_positions(context);
    if (positions.empty()) return;
    for (const Engine& engine : engines) {
        if (!casts_inputs(engine) || engine.used == Switch::off) continue;
        emit(context, *engine.function,
             {.rule = "MP121",
              .severity = Severity::warning,
              .span = engine.at,
              .message = "this policy casts what each sharded layer is given to " +
                         std::string(label(engine.dtype)) + ", also fp32 positions",
              .fix = "add cast_forward_inputs=False, or compute positions inside the layer",
              .notes = {{positions.front().positions->span, "a layer is given positions in fp32 here"}},
              .function = {}},
             out);
    }
}

}  // namespace

extern constinit const Rule kFsdpCastsPositions{.id = "MP121",
                                                .name = "fsdp-casts-positions",
                                                .severity = Severity::warning,
                                                .on_by_default = true,
                                                .confirmed_by = "",
                                                .triggers = {kLowDtypes, kEngines},
                                                .check = check};

}  // namespace mp::lint
