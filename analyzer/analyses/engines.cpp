#include "analyzer/analyses/engines.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <tuple>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/trials.hpp"

namespace mp::lint {
namespace {

// The library a dotted name comes from: "torch" of "torch.distributed.fsdp".
std::string_view root(const Call& call) {
    const std::string_view name = call.name.str();
    return name.substr(0, name.find('.'));
}

bool is_from(const Call& call, std::initializer_list<std::string_view> roots) {
    return std::ranges::find(roots, root(call)) != roots.end();
}

Engine engine(EngineKind kind, const Function& f, const Call& call) {
    Engine made;
    made.kind = kind;
    made.function = &f;
    made.call = &call;
    made.at = call.span;
    return made;
}

// Reads `precision=`; `absent` is the library's default.
void set_precision(Engine& made, const Operand* precision, DType absent) {
    if (!precision) {
        made.dtype = absent;
        return;
    }
    const Precision is = precision_named(spelled(*precision));
    made.dtype = is.dtype;
    made.weights = is.weights;
    made.autocasts = !is.weights && is.dtype != DType::fp32;
    made.scales = made.autocasts;
}

std::optional<Engine> lightning_engine(const Function& f, const Call& call) {
    if (!is_from(call, {"lightning", "pytorch_lightning", "lightning_fabric"})) return std::nullopt;
    const bool is_trainer = leaf(call.name.str()) == "Trainer";
    if (!is_trainer && leaf(call.name.str()) != "Fabric") return std::nullopt;
    Engine made = engine(is_trainer ? EngineKind::lightning : EngineKind::fabric, f, call);
    const DType absent = has_unpacked(call) ? DType::unknown : DType::fp32;
    set_precision(made, keyword_argument(call, "precision"), absent);
    return made;
}

std::optional<Engine> accelerate_engine(const Function& f, const Call& call) {
    if (!is_from(call, {"accelerate"}) || leaf(call.name.str()) != "Accelerator") return std::nullopt;
    Engine made = engine(EngineKind::accelerate, f, call);
    // Without the argument the launcher's configuration decides.
    set_precision(made, keyword_argument(call, "mixed_precision"), DType::unknown);
    made.autocasts = made.scales = made.dtype != DType::fp32;
    made.weights = false;
    return made;
}

std::optional<Engine> trainer_arguments(const Function& f, const Call& call) {
    if (!is_from(call, {"transformers", "trl"}) || !leaf(call.name.str()).ends_with("TrainingArguments"))
        return std::nullopt;
    Engine made = engine(EngineKind::hf_trainer, f, call);
    const Operand* fp16 = keyword_argument(call, "fp16");
    const Operand* bf16 = keyword_argument(call, "bf16");
    const auto is_off = [](const Operand* value) { return !value || is_false(value); };
    if (is_true(fp16))
        made.dtype = DType::fp16;
    else if (is_true(bf16))
        made.dtype = DType::bf16;
    else if (is_off(fp16) && is_off(bf16) && !has_unpacked(call))
        made.dtype = DType::fp32;
    made.autocasts = made.scales = made.dtype != DType::fp32;
    return made;
}

std::optional<Engine> fsdp_policy(const Function& f, const Call& call) {
    const bool is_first = leaf(call.name.str()) == "MixedPrecision";
    if (!is_from(call, {"torch", "fairscale"}) ||
        (!is_first && leaf(call.name.str()) != "MixedPrecisionPolicy"))
        return std::nullopt;
    Engine made = engine(is_first ? EngineKind::fsdp1 : EngineKind::fsdp2, f, call);
    const auto dtype_of = [&](std::size_t position, std::string_view name, DType absent) {
        const Operand* value = argument(call, position, name);
        if (!value) return has_unpacked(call) ? DType::unknown : absent;
        return value->constant.str() == "None" ? absent : value->dtype;
    };
    made.dtype = dtype_of(0, "param_dtype", DType::fp32);
    made.reduce = dtype_of(1, "reduce_dtype", made.dtype);
    if (is_first) made.buffer = dtype_of(2, "buffer_dtype", DType::fp32);
    made.weights = true;  // gathered in dtype, whatever the shards are kept in
    return made;
}

std::optional<Engine> apex_engine(const Function& f, const Call& call) {
    if (!is_from(call, {"apex"}) || leaf(call.name.str()) != "initialize") return std::nullopt;
    Engine made = engine(EngineKind::apex, f, call);
    const Operand* level = argument(call, 2, "opt_level");
    const std::string_view name = level ? spelled(*level) : "O1";
    made.dtype = name == "O0" ? DType::fp32 : name.starts_with('O') ? DType::fp16 : DType::unknown;
    made.weights = name == "O2" || name == "O3";
    return made;
}

std::optional<Engine> hmp_engine(const Function& f, const Call& call) {
    if (leaf(call.name.str()) != "convert" || !mentions(call.name.str(), "hmp.convert") ||
        !is_from(call, {"habana_frameworks", "hmp"}))
        return std::nullopt;
    Engine made = engine(EngineKind::hmp, f, call);
    made.dtype = DType::bf16;
    return made;
}

// The names that all of the makers ask for.
bool may_make_engine(std::string_view name) {
    constexpr std::array<std::string_view, 7> kNames{
        "Trainer",    "Fabric", "Accelerator", "MixedPrecision", "MixedPrecisionPolicy",
        "initialize", "convert"};
    const std::string_view last = name.substr(name.rfind('.') + 1);
    return last.ends_with("TrainingArguments") || any_of(last, kNames);
}

constexpr std::array kMakers{lightning_engine, accelerate_engine, trainer_arguments,
                             fsdp_policy,      apex_engine,       hmp_engine};

// Whether a call that wraps a module takes an FSDP policy, and which.
const Operand* policy_argument(const Call& call) {
    if (!is_from(call, {"torch", "fairscale", "lightning"})) return nullptr;
    if (const Operand* policy = keyword_argument(call, "mixed_precision")) return policy;
    return keyword_argument(call, "mp_policy");
}

void mark_used(const Program& program, std::vector<Engine>& engines) {
    const auto is_policy_engine = [](const Engine& made) {
        return made.kind == EngineKind::fsdp1 || made.kind == EngineKind::fsdp2;
    };
    if (std::ranges::none_of(engines, is_policy_engine)) return;
    bool open = false;  // some module gets a policy that is not followed
    std::vector<const Call*> used;
    std::vector<Symbol> named;  // of another file: policies.bf16
    for (const Function* f : program.functions()) {
        for (const Call& call : f->calls) {
            const Operand* policy = policy_argument(call);
            if (!policy || policy->constant.str() == "None") continue;
            const Call* made = call_of(*f, *policy);
            const bool is_policy = made && made->kind == CallKind::constructor;
            if (is_policy)
                used.push_back(made);
            else if (!policy->refers.empty())
                named.push_back(policy->refers);
            else
                open = true;
        }
    }
    for (Engine& made : engines) {
        if (!is_policy_engine(made)) continue;
        const std::string_view name = leaf(made.call->result.name.str());
        const auto is_it = [&](Symbol other) { return leaf(other.str()) == name; };
        const bool given =
            std::ranges::find(used, made.call) != used.end() || std::ranges::any_of(named, is_it);
        // The facts tell which objects of a module its code names.
        const bool spare = !name.empty() && is_statements(*made.function) && !is_handed_on(program, is_it);
        made.used = given ? Switch::on : open && !spare ? Switch::unknown : Switch::off;
        if (only_runs(*made.function)) made.used = Switch::off;
    }
}

// DeepSpeed's keys: in a file, or in a dictionary of a function.
void add_deepspeed(const Function& f, std::vector<Engine>& engines) {
    constexpr std::array<std::pair<std::string_view, DType>, 2> kKeys{
        {{"fp16.enabled", DType::fp16}, {"bf16.enabled", DType::bf16}}};
    for (const Setting& setting : f.settings) {
        const auto* key =
            std::ranges::find(kKeys, setting.key.str(), &std::pair<std::string_view, DType>::first);
        if (key == kKeys.end() || is_false(&setting.value)) continue;
        Engine made;
        made.kind = EngineKind::deepspeed;
        made.function = &f;
        made.at = setting.span;
        made.dtype = is_true(&setting.value) ? key->second : DType::unknown;
        made.weights = true;
        made.scales = key->second == DType::fp16;
        engines.push_back(made);
    }
}

// deepspeed.initialize without a configuration in sight: an engine of unknown dtype.
Engine initialized(const Function& f, const Call& call) {
    Engine made = engine(EngineKind::deepspeed, f, call);
    made.weights = made.scales = true;
    return made;
}

constexpr std::array<std::string_view, 1> kInitialize{"deepspeed.initialize"};

}  // namespace

bool only_runs(const Function& f) {
    const auto calls = [&](std::string_view name) {
        return std::ranges::any_of(f.calls, [&](const Call& call) { return leaf(call.name.str()) == name; });
    };
    return calls("eval") && !calls("train") && !calls("backward");
}

namespace {

std::unordered_set<const Function*> with_callers(const Program& program, const Function& f) {
    return closure({&f}, [&](const Function& at, const auto& add) {
        for (const Call* call : program.callers(at.usr)) add(program.owner(*call));
    });
}

bool any_trains(const Program& program, const std::unordered_set<const Function*>& starts) {
    constexpr std::array<std::string_view, 4> kTrains{"backward", "fit", "train", "training_step"};
    const auto trains = [&](const Call& call) {
        const bool sets_mode = !call.args.empty() && call.args[0].shape == Shape::module;  // net.train(False)
        return any_of(leaf(call.name.str()), kTrains) && !sets_mode;
    };
    return std::ranges::any_of(functions_run_by(program, starts),
                               [&](const Function* at) { return std::ranges::any_of(at->calls, trains); });
}

}  // namespace

bool is_run_in_training(const Program& program, const Function& f) {
    return any_trains(program, with_callers(program, f));
}

bool only_serves_inference(const Program& program, const Function& f) {
    const auto callers = with_callers(program, f);
    return callers.size() > 1 && !any_trains(program, callers);
}

std::string_view name_of(EngineKind kind) {
    switch (kind) {
        case EngineKind::deepspeed:
            return "DeepSpeed";
        case EngineKind::fsdp1:
            return "FSDP";
        case EngineKind::fsdp2:
            return "FSDP2";
        case EngineKind::accelerate:
            return "Accelerate";
        case EngineKind::lightning:
            return "Lightning";
        case EngineKind::fabric:
            return "Lightning Fabric";
        case EngineKind::hf_trainer:
            return "the Hugging Face Trainer";
        case EngineKind::apex:
            return "apex amp";
        case EngineKind::hmp:
            return "HMP";
    }
    return "";
}

std::vector<Engine> engines_of(const Program& program) {
    std::vector<Engine> engines;
    for (const Function* f : program.functions())
        if (f->kind == FunctionKind::python) add_deepspeed(*f, engines);
    for_each_call(program, may_make_engine, [&](const Function& f, const Call& call) {
        if (f.kind != FunctionKind::python) return;
        for (const auto make : kMakers)
            if (auto made = make(f, call)) engines.push_back(*made);
    });
    std::ranges::sort(engines, {}, [](const Engine& made) {
        const SourceSpan& in = made.function->span;
        return std::tuple(in.file.str(), in.line, in.column, made.at.line, made.at.column);
    });
    for_each_call(program, name_in(kInitialize), [&](const Function& f, const Call& call) {
        if (!find_engine(engines, EngineKind::deepspeed)) engines.push_back(initialized(f, call));
    });
    mark_used(program, engines);
    return engines;
}

const std::vector<Engine>& engines_of(const RuleContext& context) {
    return context.engines.get(
        [&] { return std::make_shared<const std::vector<Engine>>(engines_of(context.program)); });
}

const Engine* find_engine(const std::vector<Engine>& engines, EngineKind kind) {
    const auto found = std::ranges::find(engines, kind, &Engine::kind);
    return found == engines.end() ? nullptr : &*found;
}

bool is_hf_trainer(std::string_view class_name) {
    return (class_name.starts_with("transformers.") || class_name.starts_with("trl.")) &&
           leaf(class_name).ends_with("Trainer");
}

bool only_predicts(const Function& f, const Call& trainer) {
    const Symbol name = trainer.result.name;
    if (name.empty() || name.str().find('.') != std::string_view::npos) return false;
    bool predicts = false;
    for (const Call& call : f.calls)
        for (const Operand& value : call.args) {
            if (value.name != name) continue;
            const std::string_view method = leaf(call.name.str());
            const bool asks = call.kind == CallKind::method && &value == &call.args.front() &&
                              !mentions(method, "train") && !mentions(method, "search");
            if (!asks) return false;  // it trains, or another function may
            predicts = predicts || method == "predict" || method == "evaluate";
        }
    const auto is_it = [&](const Operand& value) { return value.name == name; };
    return predicts && std::ranges::none_of(f.returned, is_it);
}

namespace {

bool is_settings(std::string_view name) {
    return name.ends_with("TrainingArguments") || name.ends_with("Config");
}

bool is_given(const Call& call, std::string_view name) {
    const Operand* value = keyword_argument(call, name);
    return value && value->constant.str() != "None" && value->constant.str() != "''" && !is_false(value);
}

// `training_args` of `model_args, training_args = parser.parse_args_into_dataclasses()`, on one branch or on several.
const Call* parsed_settings(const Function& f, const Operand& settings) {
    for (const Call& call : f.calls) {
        const Item item = call.result.name == settings.name ? item_of(call) : Item{};
        const Call* const held = item.held ? call_of(f, *item.held) : nullptr;
        if (held && held->name.str().starts_with("transformers.HfArgumentParser.")) return held;
    }
    return nullptr;
}

}  // namespace

std::optional<PlainTrainer> plain_trainer(const Function& f, const Call& call) {
    const bool is_own = !is_hf_trainer(call.name.str());  // its positions are its own
    const Operand* model = is_own ? keyword_argument(call, "model") : argument(call, 0, "model");
    const Operand* settings = is_own ? keyword_argument(call, "args") : argument(call, 1, "args");
    if (!model || !settings || has_unpacked(call) || only_predicts(f, call)) return std::nullopt;
    if (is_given(call, "peft_config") || is_given(call, "optimizers")) return std::nullopt;
    if (const Call* parsed = parsed_settings(f, *settings)) return PlainTrainer{model, parsed, true};
    const Call* made = call_of(f, *settings);
    if (!made || !is_settings(leaf(made->name.str())) || has_unpacked(*made)) return std::nullopt;
    if (is_given(*made, "deepspeed") || is_given(*made, "fsdp")) return std::nullopt;
    return PlainTrainer{model, made};
}

bool asks_for_fp16(const Function& f, const Call& arguments) {
    const Operand* const asked = keyword_argument(arguments, "fp16");
    const Call* const found = asked ? call_of(f, *asked) : nullptr;
    return is_true(asked) || (found && found->name.str() == "torch.cuda.is_available");
}

Precision precision_named(std::string_view spelling) {
    if (spelling == "16" || spelling == "16-mixed" || spelling == "fp16") return {.dtype = DType::fp16};
    if (spelling == "bf16" || spelling == "bf16-mixed") return {.dtype = DType::bf16};
    if (spelling == "16-true") return {.dtype = DType::fp16, .weights = true};
    if (spelling == "bf16-true") return {.dtype = DType::bf16, .weights = true};
    const bool is_full = spelling == "32" || spelling == "32-true" || spelling == "64" ||
                         spelling == "64-true" || spelling == "no" || spelling == "None";
    return {.dtype = is_full ? DType::fp32 : DType::unknown};
}

}  // namespace mp::lint
