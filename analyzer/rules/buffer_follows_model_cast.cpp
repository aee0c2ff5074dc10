// MP503 buffer-follows-model-cast
//
// What   A table of frequencies or slopes, computed from positions by division, powers or exponentials,
//        is registered as a buffer of a module; or an FSDP policy casts the buffers of a model of transformers that
//        has such a table (Llama, Qwen, Mistral).
// Why    `.half()`, `.bfloat16()`, `.to(dtype)` and engines cast floating buffers with the parameters.
//        In bf16 the table has 8 bits: positions above 256 turn by wrong angles. Switching autocast
//        off does not bring the bits back.
// Fix    Compute the table in fp32 where it is used, or keep it as a plain attribute and move it to
//        the device there: a plain attribute follows neither `.half()` nor `.to(device)`.
// Silent Buffers of integers and masks; finished sines and cosines; modules that override `_apply`,
//        `to` or `half`, or that `_keep_in_fp32_modules` names; tables that are made again in the
//        method that uses them; buffers that are only asked for their dtype or device. A note where
//        no code of the program casts such a module, whose file takes no sine or cosine, as of angles,
//        and where a use widens it (`self.t.float()`).
// Tests  testdata/lint/MP503.md, tests/analyzer/rules/buffer_follows_model_cast_test.cpp

#include <algorithm>
#include <array>
#include <span>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/engines.hpp"
#include "analyzer/analyses/model_casts.hpp"
#include "analyzer/analyses/python_code.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/trials.hpp"
#include "analyzer/region/classes.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

constexpr std::array<std::string_view, 2> kPositions{"arange", "linspace"};
// Calls whose result is never an integer.
constexpr std::array<std::string_view, 7> kCurves{"exp",      "exp2",        "rsqrt",   "reciprocal",
                                                  "logspace", "true_divide", "linspace"};
constexpr std::array<std::string_view, 4> kOverrides{"_apply", "to", "half", "bfloat16"};

bool is_named(const Call& call, std::span<const std::string_view> names) {
    return any_of(call.op.name(), names) || any_of(leaf(call.name.str()), names);
}

bool is_true_division(const Call& call) {
    return call.op.name() == "div" && !keyword_argument(call, "rounding_mode");
}

// A product or power of integers is an integer, which has no bits behind the point to lose.
bool is_fraction(const Function& f, const Operand& value) {
    if (is_float(value.dtype)) return true;
    if (number_of(value)) return value.text.str().find('.') != std::string_view::npos;
    const Call* call = call_of(f, value);
    return call && (is_named(*call, kCurves) || is_true_division(*call));
}

bool is_curve(const Function& f, const Call& call) {
    constexpr std::array<std::string_view, 2> kProducts{"pow", "outer"};
    if (is_named(call, kCurves) || is_true_division(call)) return true;
    return is_named(call, kProducts) && std::ranges::any_of(call.args, [&](const Operand& input) {
               return derives_from(f, input, [&](const Operand& one) { return is_fraction(f, one); });
           });
}

bool is_position(const Call& call) { return any_of(leaf(call.name.str()), kPositions); }

// A sine keeps what its angle had: rounding it afterwards costs no more than any value in half.
bool is_wave(const Call& call) { return call.op.name() == "sin" || call.op.name() == "cos"; }

bool takes_waves(const Program& program, Symbol file) { return has_call(program, file, is_wave); }

bool is_rounded(const Call& call) {
    constexpr std::array<std::string_view, 5> kRoundings{"floor", "round", "ceil", "trunc", "floor_divide"};
    return is_named(call, kRoundings);
}

// Positions that went through a curve: what rounding to few bits destroys.
bool is_table(const Function& f, const Operand& value) {
    const Call* curve =
        origin(f, value, [&](const Call& c) { return is_rounded(c) || is_wave(c) || is_curve(f, c); });
    if (!curve || is_wave(*curve) || is_rounded(*curve)) return false;
    if (is_position(*curve)) return true;
    for (const Operand& input : curve->args)
        if (origin(f, input, is_position)) return true;
    return false;
}

// The function of the program that makes the table: self.compute_frequencies(), frequencies_of(dim).
const Function* maker_of_table(const Program& program, const Function& f, const Operand& value) {
    const Call* call = producer(f, value);
    const Function* callee = call ? program.definition(call->callee) : nullptr;
    const auto returns_table = [&](const Operand& returned) { return is_table(*callee, returned); };
    return callee && std::ranges::any_of(callee->returned, returns_table) ? callee : nullptr;
}

// Another method of the class makes the table again, where the buffer is no longer fp32.
bool makes_again(const Program& program, const Function& made_in, const Function& maker) {
    return std::ranges::any_of(program.callers(maker.usr), [&](const Call* call) {
        const Function* caller = program.owner(*call);
        return caller && caller != &made_in && caller->parent_class == made_in.parent_class;
    });
}

bool is_integer_or_low(const Operand& value) {
    return value.dtype != DType::unknown && !is_wide(value.dtype);
}

// What the methods of a class do with a buffer.
struct Uses {
    const Call* upcast = nullptr;
    bool remade = false;  // another method registers or assigns it
    bool read = false;
    bool asked = false;  // for its dtype or device
};

void add_call(Uses& uses, const Function& f, const Call& call, std::string_view attribute, bool makes) {
    if (!makes && call.result.name.str() == attribute) uses.remade = true;
    for (const Operand& value : call.args) {
        const std::string_view name = value.name.str();
        if (name == attribute) uses.read = true;
        if (name.starts_with(attribute) && (name.ends_with(".dtype") || name.ends_with(".device")))
            uses.asked = true;
    }
    const std::string_view name = leaf(call.name.str());
    const bool widens = name == "float" || name == "double" || (name == "to" && is_wide(call.result.dtype));
    if (widens && !makes && !call.args.empty() && moved_from(f, call.args[0]).name.str() == attribute)
        uses.upcast = &call;
}

class Modules {
public:
    explicit Modules(const RuleContext& context)
        : program_(context.program), classes_(classes_of(context)), half_(half_models_of(context)) {
        for_each_call(program_, name_in(kLists), [&](const Function&, const Call& call) {
            if (call.result.name.str().find("_keep_in_fp32") == std::string_view::npos) return;
            for (const Operand& name : call.args) kept_.emplace_back(leaf(spelled(name)));
        });
    }

    bool overrides_casts(Symbol name) const {
        return std::ranges::any_of(classes_.methods(name),
                                   [](const Function* f) { return any_of(leaf(f->name.str()), kOverrides); });
    }

    Uses uses(const Function& made_in, std::string_view attribute) const {
        Uses out;
        for (const Function* f : classes_.methods(made_in.parent_class)) {
            for (const Call& call : f->calls) add_call(out, *f, call, attribute, f == &made_in);
            for (const Operand& value : f->returned) out.read |= value.name.str() == attribute;
        }
        return out;
    }

    // `_keep_in_fp32_modules = ["rotary_emb"]`, which transformers and diffusers read: names of buffers, or of the
    // attributes that hold the module.
    bool keeps_fp32(const Function& made_in, std::string_view buffer) const {
        const auto is_kept = [&](std::string_view name) {
            return std::ranges::find(kept_, name) != kept_.end();
        };
        if (kept_.empty() || is_kept(buffer)) return !kept_.empty();
        bool found = false;
        for_each_call(
            program_, [&](std::string_view name) { return name == made_in.parent_class.str(); },
            [&](const Function&, const Call& call) {
                found = found || is_kept(leaf(call.result.name.str()));
            });
        return found;
    }

    std::vector<Note> cast_by_program(const Function& made_in) const { return half_.of(made_in); }

private:
    static constexpr std::array<std::string_view, 3> kLists{"list", "tuple", "set"};

    const Program& program_;
    const Classes& classes_;
    const HalfModels& half_;
    std::vector<std::string> kept_;
};

std::string attribute_of(const Operand& name) { return "self." + std::string(spelled(name)); }

void check_buffer(const RuleContext& context, const Modules& modules, const Function& f, const Call& call,
                  Findings& out) {
    const Operand* name = argument(call, 0, "name");
    const Operand* value = argument(call, 1, "tensor");
    if (!name || !value || spelled(*name).empty() || is_integer_or_low(*value)) return;
    if (!is_table(f, *value)) {
        const Function* maker = maker_of_table(context.program, f, *value);
        if (!maker || makes_again(context.program, f, *maker)) return;
    }
    if (modules.overrides_casts(f.parent_class)) return;
    const Uses uses = modules.uses(f, attribute_of(*name));
    if (uses.remade || (uses.asked && !uses.read) || modules.keeps_fp32(f, spelled(*name))) return;
    std::vector<Note> notes = modules.cast_by_program(f);
    const bool matters = !notes.empty() && takes_waves(context.program, f.span.file) && !uses.upcast;
    if (uses.upcast) notes.push_back({uses.upcast->span, "widening it here does not bring the bits back"});
    emit(
        context, f,
        {.rule = "MP503",
         .severity = matters ? Severity::warning : Severity::note,
         .span = call.span,
         .message = "buffer '" + std::string(spelled(*name)) +
                    "' is computed from positions and loses its bits when the module is cast to half",
         .fix = "compute it in fp32 where it is used, or keep it as a plain attribute and move it there with "
                ".to(x.device)",
         .notes = std::move(notes),
         .function = {}},
        out);
}

// Models of transformers whose rotary embedding keeps its frequencies in a buffer, by the start of their classes.
constexpr std::array<std::string_view, 13> kRotary{"Llama", "Mllama", "Mistral",  "Mixtral", "Qwen2",
                                                   "Qwen3", "Gemma",  "Phi",      "GPTNeoX", "Falcon",
                                                   "Olmo",  "Cohere", "DeepseekV"};

bool names_rotary(std::string_view name) {
    if (!is_within(name, "transformers")) return false;
    constexpr std::string_view kLoads = ".from_pretrained";
    if (name.ends_with(kLoads)) name.remove_suffix(kLoads.size());
    const std::string_view last = leaf(name);
    const bool is_part = last.ends_with("DecoderLayer") || last.ends_with("Model") ||
                         last.find("For") != std::string_view::npos;
    return is_part &&
           std::ranges::any_of(kRotary, [&](std::string_view start) { return last.starts_with(start); });
}

bool takes_policy(const Call& call) {
    return is_within(call.name.str(), "torch") && keyword_argument(call, "mixed_precision");
}

// LlamaForCausalLM.from_pretrained(name), transformer_layer_cls={LlamaDecoderLayer}, in a file that wraps a module with
// a policy: nullptr where there is none.
const Call* wrapped_rotary_model(const Program& program) {
    for (const Function* f : program.functions()) {
        if (!is_python(*f) || !has_call(program, f->span.file, takes_policy)) continue;
        for (const Call& call : f->calls)
            if (names_rotary(call.name.str()) || std::ranges::any_of(call.args, [](const Operand& o) {
                    return names_rotary(o.constant.str());
                }))
                return &call;
    }
    return nullptr;
}

// FSDP casts the floating buffers of what it wraps in the first forward, and they stay so. Before this version the
// sines and cosines were buffers too, and the frequencies were not read again.
constexpr TorchVersion kReadsFrequencies{4, 38};

void check_policies(const RuleContext& context, Findings& out) {
    const auto casts = [&](const Engine& e) {
        return e.kind == EngineKind::fsdp1 && is_low_precision(e.buffer) && e.used != Switch::off &&
               code_kind(context, e.at.file) == CodeKind::product;
    };
    const std::vector<Engine>& engines = engines_of(context);
    const Call* model = std::ranges::any_of(engines, casts) ? wrapped_rotary_model(context.program) : nullptr;
    if (!model) return;
    const TorchVersion version = context.project.transformers;
    const bool reads = !version.known() || version >= kReadsFrequencies;
    // Policies beside one of bf16 are its variants.
    const bool has_bf16 =
        std::ranges::any_of(engines, [&](const Engine& e) { return casts(e) && e.buffer == DType::bf16; });
    for (const Engine& engine : engines) {
        if (!casts(engine)) continue;
        const bool is_variant = has_bf16 && engine.buffer != DType::bf16;
        emit(
            context, *engine.function,
            {.rule = "MP503",
             .severity = reads && !is_variant ? Severity::warning : Severity::note,
             .span = engine.at,
             .message = "this policy casts the buffers of the model to " + std::string(label(engine.buffer)) +
                        ", also the frequencies of its rotary embedding, which lose their bits",
             .fix = "buffer_dtype=torch.float32",
             .notes = {{model->span, "a model with rotary embeddings is wrapped in this file"}},
             .function = {}},
            out);
    }
}

constexpr std::array<std::string_view, 1> kRegistersBuffer{"register_buffer"};

void check(const RuleContext& context, Findings& out) {
    check_policies(context, out);
    std::vector<std::pair<const Function*, const Call*>> buffers;
    for_each_call(context.program, last_part_in(kRegistersBuffer),
                  [&](const Function& f, const Call& call) { buffers.emplace_back(&f, &call); });
    if (buffers.empty()) return;
    const Modules modules(context);
    for (const auto& [f, call] : buffers) check_buffer(context, modules, *f, *call, out);
}

constexpr std::array<std::string_view, 2> kOwnTriggers{"register_buffer", "_keep_in_fp32"};

}  // namespace

extern constinit const Rule kBufferFollowsModelCast{.id = "MP503",
                                                    .name = "buffer-follows-model-cast",
                                                    .severity = Severity::warning,
                                                    .on_by_default = true,
                                                    .confirmed_by = "",
                                                    .triggers = {kLowDtypes, kEngines, kOwnTriggers},
                                                    .check = check};

}  // namespace mp::lint
