// MP501 half-optimizer-update-without-master
//
// What   A kernel or host loop stores `weight - step` back into fp16 or bf16 memory, and no fp32
//        copy of the weight, stochastic rounding or compensation keeps what the rounding loses. In
//        Python: an optimizer of torch, of another library or of the program over parameters that are half,
//        a Trainer that is given a half model, or an engine that is told to keep them so ("bf16-true");
//        an adapter that is added to a half module, or whose layers are cast.
// Why    A step smaller than half a unit in the last place changes nothing: in bf16 that is any
//        step below 0.2 % of the weight, and a typical lr times gradient is smaller.
// Fix    Keep fp32 master weights, or round stochastically, or keep the rounding error (Kahan).
// Silent An fp32 master stored beside it; stochastic rounding, here or in the helper that stores; helpers whose body
//        is not seen; in-place normalisation, which has statistics or no second array to read a gradient from;
//        averages (EMA). Python: engines that keep fp32 masters (DeepSpeed, apex, Accelerate under FSDP), frozen
//        models and adapters (peft), tests. All of it in the inference profile. A note for the second optimizer of a
//        function over the same parameters, and where a script passes --deepspeed to adapters or to a Trainer whose
//        settings a command line gives.
// Tests  testdata/lint/MP501.md, tests/analyzer/rules/half_optimizer_update_without_master_test.cpp

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <unordered_set>
#include <utility>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/control_flow.hpp"
#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/engines.hpp"
#include "analyzer/analyses/half_adapters.hpp"
#include "analyzer/analyses/module_dtypes.hpp"
#include "analyzer/analyses/module_operands.hpp"
#include "analyzer/analyses/numbers.hpp"
#include "analyzer/analyses/optimizers.hpp"
#include "analyzer/analyses/program_options.hpp"
#include "analyzer/analyses/protocol.hpp"
#include "analyzer/analyses/python_code.hpp"
#include "analyzer/analyses/scaler_refusals.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/trials.hpp"
#include "analyzer/region/classes.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

// What a rounding store does; a helper is judged by the stores in its own body.
enum class Rounding { nearest, compensated, unknown };

struct Store {
    Rounding rounding = Rounding::nearest;
    const Update* in_helper = nullptr;
};

Store rounding_of(const Program& program, const Update& u) {
    if (u.compensated) return {.rounding = Rounding::compensated};
    if (u.through.empty() && u.through_usr.empty()) return {};
    const Function* helper = program.definition(u.through_usr);
    if (!helper) return {.rounding = Rounding::unknown};
    Store store{.rounding = Rounding::unknown};
    for (const Update& inner : helper->updates) {
        if (!is_low_precision(inner.dtype)) continue;
        if (inner.compensated) return {.rounding = Rounding::compensated, .in_helper = &inner};
        store = {.rounding = Rounding::nearest, .in_helper = &inner};
    }
    return store;
}

bool is_float_array(const Parameter& p) {
    return (p.shape == Shape::pointer || p.shape == Shape::array) && is_float(p.dtype);
}

// half (&state)[4]: values of the caller, in registers. Weights come as a pointer.
bool is_array_of_caller(const Function& f, const Update& u) {
    return u.param != kNone && f.params[static_cast<std::size_t>(u.param)].shape == Shape::array;
}

// The shape of an optimizer step: weights, which may be packed, and at least one other float array (the gradient).
// They may come in a structure: a table of tensor lists, a parameter block.
bool reads_a_gradient(const Function& f, const Update& u) {
    const auto is_weight = [&](const Parameter& p) {
        return u.param != kNone && &p == &f.params[static_cast<std::size_t>(u.param)];
    };
    return std::ranges::count_if(
               f.params, [&](const Parameter& p) { return is_float_array(p) || is_weight(p); }) >= 2 ||
           std::ranges::any_of(f.params, [](const Parameter& p) { return p.shape == Shape::object; });
}

// ... and a scalar (the rate), or a structure that can hold one.
bool has_a_rate(const Function& f) {
    return std::ranges::any_of(f.params, [](const Parameter& p) {
        return (p.shape == Shape::scalar && is_float(p.dtype)) || p.shape == Shape::object;
    });
}

// Steps below this part of a weight are always lost: a quarter of the spacing at 1.
std::string lost_below(DType d) { return shown(100 * std::exp2(-significant_bits(d) - 1), 2) + " %"; }

// An optimizer subtracts from the weights alone; a kernel that does it to two arrays keeps states of its own.
bool is_one_of_several(const Function& f, const Update& u) {
    return std::ranges::any_of(f.updates, [&](const Update& other) {
        return other.subtracts && !other.interpolates && other.param != u.param &&
               is_low_precision(other.dtype);
    });
}

Severity severity_of(const Function& f, const Update& u) {
    if (is_one_of_several(f, u)) return Severity::note;
    if (u.master_optional || !has_a_rate(f)) return Severity::warning;
    return error_if_proven(u.dtype);
}

std::string message_of(const Update& u) {
    std::string text = "update of" + (u.target.empty() ? " a weight" : quoted(u.target.str())) +
                       " is stored in " + std::string(label(u.dtype));
    if (u.master_optional) text += " alone when the fp32 master pointer is null";
    return text + ": a step below " + lost_below(u.dtype) + " of the weight rounds away";
}

// torch.optim.X(model.parameters(), lr=...), where the parameters are half.
constexpr double kLargeRate = 1e-2;  // its steps survive: a note

// Whether the file trains other parameters than the module's, or wraps the module: an engine with fp32 masters, an
// adapter, or a module that is frozen in parts.
class Files {
public:
    explicit Files(const RuleContext& context)
        : context_(context), program_(context.program), engines_(engines_of(context)) {}

    bool keep_masters(Symbol file, std::string_view module) {
        const auto [entry, is_new] = known_.try_emplace({file, std::string(leaf(module))});
        if (is_new) entry->second = look_at(file, leaf(module));
        return entry->second;
    }

    // Adapters, whose weights peft keeps in fp32, are an option of the program.
    bool may_make_adapters(Symbol file) const {
        return has_call(program_, file, [](const Call& c) { return is_within(c.name.str(), "peft"); });
    }

    // Accelerate makes the parameters fp32 before it shards them. Without FSDP and DeepSpeed they stay as they are,
    // and those can also come from its configuration outside of the program.
    bool has_accelerate(Symbol file) const {
        return std::ranges::any_of(
            engines_, [&](const Engine& e) { return e.kind == EngineKind::accelerate && e.at.file == file; });
    }

private:
    bool shards() const {
        if (!shards_) shards_ = looks_sharded();
        return *shards_;
    }

    // Or by what a name stands for: steps = accelerator.deepspeed_plugin.gradient_accumulation_steps.
    static bool names_sharding(const Function& f) {
        const auto is_name = [](Symbol text) {
            return mentions(text.str(), "deepspeed") || mentions(text.str(), "fsdp") ||
                   mentions(text.str(), "FullySharded");
        };
        const auto is_argument = [&](const Operand& o) {
            return is_name(o.name) || is_name(o.constant) || is_name(o.keyword) || is_name(o.refers);
        };
        return std::ranges::any_of(f.calls, [&](const Call& c) {
            return is_name(c.name) || std::ranges::any_of(c.args, is_argument);
        });
    }

    bool looks_sharded() const {
        for (const Engine& e : engines_)
            if (e.kind == EngineKind::deepspeed || e.kind == EngineKind::fsdp1 || e.kind == EngineKind::fsdp2)
                return true;
        return std::ranges::any_of(program_.functions(),
                                   [](const Function* f) { return is_python(*f) && names_sharding(*f); });
    }

    bool look_at(Symbol file, std::string_view module) const {
        for (const Engine& e : engines_) {
            const bool masters = e.kind == EngineKind::deepspeed || e.kind == EngineKind::apex ||
                                 (e.kind == EngineKind::accelerate && shards());
            if (masters && e.at.file == file) return true;
        }
        for (const Function* f : program_.functions()) {
            if (f->span.file != file) continue;
            for (const Call& c : f->calls)
                if (makes_adapters(*f, c) || is_fp16_optimizer(leaf(c.name.str())) || freezes(*f, c, module))
                    return true;
        }
        return false;
    }

    // if args.lora: get_peft_model(...), where the default is not to, adds none.
    bool makes_adapters(const Function& f, const Call& call) const {
        return is_within(call.name.str(), "peft") && !option_off_by_default(context_, f, call.span);
    }

    // The wrapper of apex, and its copies, keeps fp32 masters.
    static bool is_fp16_optimizer(std::string_view name) {
        return name.starts_with("FP16_Optimizer") || name == "FP16Optimizer";
    }

    // `model.requires_grad_(False)`, or the same of one of its parameters.
    static bool freezes(const Function& f, const Call& call, std::string_view module) {
        if (leaf(call.name.str()) != "requires_grad_") return false;
        if (call.args.empty()) return true;
        const Call* listing = listing_of(f, call.args.front());
        const Operand& object = listing && !listing->args.empty() ? listing->args.front() : call.args.front();
        // A receiver whose module is not known can be a part of this one.
        return module.empty() || object.name.empty() || leaf(object.name.str()) == module ||
               object.shape == Shape::tensor;
    }

    const RuleContext& context_;
    const Program& program_;
    const std::vector<Engine>& engines_;
    std::map<std::pair<Symbol, std::string>, bool> known_;
    mutable std::optional<bool> shards_;  // looked for once: it asks every call of the program
};

bool is_large_rate(const Operand* rate) { return rate && number_of(*rate).value_or(0) >= kLargeRate; }

// [dict(params=embeddings, lr=0.3), dict(params=head)]: which of the groups holds the half parameters is not known.
bool has_large_group(const Function& f, const Operand& groups) {
    const Call* list = call_of(f, groups);
    return list && std::ranges::any_of(list->args, [&](const Operand& item) {
               const Call* group = call_of(f, item);
               return group && group->name.str() == "dict" && is_large_rate(keyword_argument(*group, "lr"));
           });
}

// Where a module in half, or one of unknown dtype out of a checkpoint, is trained.
class Trainings {
public:
    Trainings(const RuleContext& context, Findings& out)
        : context_(context), modules_(context), files_(context), out_(out) {}

    // torch.optim.X(model.parameters(), lr=...)
    void optimizer(const Function& f, const Call& call, bool is_own) {
        const Operand* parameters = argument(call, 0, "params");
        if (!parameters || keeps_rest(call) || is_unread(context_.program, f, call)) return;
        const bool is_large = is_large_rate(argument(call, 1, "lr")) || has_large_group(f, *parameters);
        // MP207 reports the scaler that its parameters are not for: nothing is updated.
        const bool is_refused = refusals_of(context_).has(call);
        const Severity most = is_large || is_refused || steps_once(f) ? Severity::note
                              : is_own                                ? Severity::warning
                                                                      : Severity::error;
        const std::string name(leaf(call.name.str()));
        const std::vector<ListedModule> sources = modules_in(context_, f, *parameters);
        for (const auto& [function, module, at] : sources)
            if (report(f, call, modules_.of_module(*function, *module, *at), *module, name, most)) return;
        if (!sources.empty() || parameters->shape != Shape::parameters) return;
        ModuleDType found;
        found.dtype = parameters->dtype;
        report(f, call, found, *parameters, name, most);
    }

    // transformers.Trainer(model=model, args=TrainingArguments(...)) makes an optimizer over the parameters.
    void trainer(const Function& f, const Call& call) {
        const std::optional<PlainTrainer> made = plain_trainer(f, call);
        if (!made) return;
        const ModuleDType found = modules_.of_module(f, *made->model, call);
        // MP207 reports this one: the scaler refuses it.
        if ((is_proven_low(found.dtype) || found.loaded) && asks_for_fp16(f, *made->settings)) return;
        if (found.loaded && !found.is_auto()) return;
        const bool has_masters = launches_deepspeed() || (made->is_parsed && is_given({"deepspeed", "fsdp"}));
        // torch_dtype=torch.bfloat16 if training_args.bf16 else None: by default the Trainer's options are off.
        const bool by_default =
            found.proven || found.loaded || !made->is_parsed || is_given({"bf16", "fp16"});
        report(f, call, found, *made->model, "the optimizer of " + std::string(leaf(call.name.str())),
               has_masters || !by_default ? Severity::note : Severity::warning);
    }

    // p.data.add_(p.grad, alpha=-lr), p -= lr * p.grad: a step without an optimizer
    void by_hand(const Function& f, const Call& call) {
        if (!call.in_place || call.args.size() < 2 || !is_python(f)) return;
        const Operand& weight = call.args.front();
        if (leaf(weight.name.str()) == "grad" || !adds_gradient(f, call)) return;
        if (may_keep_rest(f) || is_copied_before(f, call)) return;
        ModuleDType found;
        static_cast<TensorDType&>(found) = modules_.of_tensor(f, weight, call);
        report(f, call, found, weight, "this step", Severity::warning);
    }

private:
    // accelerate launch --config_file: DeepSpeed keeps fp32 masters, and no code of the program names it.
    bool launches_deepspeed() const {
        return is_given({"deepspeed_config_file", "zero_stage", "use_deepspeed"});
    }

    bool is_given(std::initializer_list<std::string_view> options) const {
        return context_.project.is_given && std::ranges::any_of(options, context_.project.is_given);
    }

    // before = p.clone(); p.add_(step); rest.add_(before.sub_(p)): what the rounding loses is computed.
    static bool is_copied_before(const Function& f, const Call& update) {
        const Operand& weight = same_tensor(f, update.args.front());
        return std::any_of(f.calls.data(), &update, [&](const Call& call) {
            return leaf(call.name.str()) == "clone" && !call.args.empty() &&
                   is_same(same_tensor(f, call.args.front()), weight);
        });
    }

    // `p.grad`, `p.grad.data`, and `grad` after grad = p.grad.data, which no call made
    static bool is_gradient(const Operand& o) {
        std::string_view name = o.name.str();
        if (name == "grad") return o.call == kNone && o.param == kNone;
        if (name.ends_with(".data")) name.remove_suffix(std::string_view(".data").size());
        return name.ends_with(".grad");
    }

    // Whether what is added is computed from a gradient, or from a moment that the function updates with one.
    static bool adds_gradient(const Function& f, const Call& call) {
        const auto is_moment = [&](const Operand& o) {
            return !o.name.empty() && std::ranges::any_of(f.calls, [&](const Call& update) {
                return update.in_place && &update < &call && !update.args.empty() &&
                       update.args.front().name == o.name &&
                       std::any_of(
                           update.args.begin() + 1, update.args.end(),
                           [&](const Operand& part) { return derives_from(f, part, is_gradient); });
            });
        };
        return std::any_of(call.args.begin() + 1, call.args.end(), [&](const Operand& added) {
            return derives_from(f, added, [&](const Operand& o) { return is_gradient(o) || is_moment(o); });
        });
    }

    bool report(const Function& f, const Call& call, ModuleDType found, const Operand& module,
                const std::string& optimizer, Severity most) {
        if (!found.loaded && !is_low_precision(found.dtype)) return false;
        const std::string_view name = module.name.str();
        bool masters = files_.keep_masters(f.span.file, name);
        for (const Note& note : found.chain) masters = masters || files_.keep_masters(note.span.file, name);
        if (masters) return false;
        const bool may_adapt =
            files_.may_make_adapters(f.span.file) || std::ranges::any_of(found.chain, [&](const Note& note) {
                return files_.may_make_adapters(note.span.file);
            });
        if (may_adapt) most = std::min(most, Severity::warning);
        if (files_.has_accelerate(f.span.file)) {
            if (!found.proven || !is_proven_low(found.dtype)) return false;
            most = std::min(most, Severity::warning);
        }
        // A trainer of another file prepares the optimizer.
        const std::vector<Symbol>& near = protocol_of(context_).files_near(f);
        if (std::ranges::any_of(near, [&](Symbol file) { return files_.has_accelerate(file); }))
            most = std::min(most, Severity::warning);
        const bool is_auto = found.is_auto();
        Severity severity = found.proven ? error_if_proven(found.dtype) : Severity::warning;
        // dtype = torch.bfloat16 if device == "cuda" else torch.float32
        if (!found.proven && is_without_cuda(f, call.block)) severity = Severity::note;
        std::string message = optimizer + " updates ";
        if (!found.loaded) {
            message += std::string(label(found.dtype)) +
                       " parameters without fp32 master weights: a step below " + lost_below(found.dtype) +
                       " of a weight rounds away";
        } else {
            severity = is_auto ? Severity::warning : Severity::note;
            message += std::string("parameters in the dtype of the checkpoint") +
                       (is_auto ? "" : " (with transformers 5 or newer)") +
                       ", for most models bf16, without fp32 master weights: there a step below " +
                       lost_below(DType::bf16) + " of a weight rounds away";
            found.chain.push_back({found.loaded->span, is_auto ? "loaded with dtype=\"auto\" here"
                                                               : "loaded without a dtype here"});
        }
        severity = std::min(severity, most);
        // AdamW8bit in one branch and AdamW in the other: one cause, which the first of them tells.
        if (severity > Severity::note && !name.empty() && !told_.emplace(&f, name).second)
            severity = Severity::note;
        emit(context_, f,
             {.rule = "MP501",
              .severity = severity,
              .span = call.span,
              .message = std::move(message),
              .fix = found.loaded ? "load the model with dtype=torch.float32 and compute under autocast"
                                  : "keep the parameters in fp32 and compute under autocast",
              .notes = std::move(found.chain),
              .function = {}},
             out_);
        return true;
    }

    const RuleContext& context_;
    ModuleDTypes modules_;
    Files files_;
    std::set<std::pair<const Function*, std::string_view>>
        told_;  // by function and the name of what is trained
    Findings& out_;
};

// Adapters (peft): what is trained are the few weights that they add.
void check_adapters(const RuleContext& context, Findings& out) {
    // Scripts pass `--deepspeed` to the Trainer that adapters are for: it keeps fp32 masters.
    const bool has_masters = context.project.is_given && context.project.is_given("deepspeed");
    for (HalfAdapter& adapter : half_adapters(context))
        emit(context, *adapter.function,
             {.rule = "MP501",
              .severity = has_masters || adapter.by_option ? Severity::note : Severity::warning,
              .span = adapter.at,
              .message = adapter.what +
                         ": its weights are trained without fp32 master weights, and a step "
                         "below " +
                         lost_below(adapter.dtype) + " of a weight rounds away",
              .fix = "cast what is trained to fp32: p.data = p.data.float() for each p with requires_grad",
              .notes = std::move(adapter.chain),
              .function = {}},
             out);
}

// strategy="deepspeed_stage_3", or an object of DeepSpeedStrategy or of a class of the program that derives from it.
bool has_deepspeed_strategy(const RuleContext& context, const Function& f, const SourceSpan& at) {
    const auto made = std::ranges::find_if(
        f.calls, [&](const Call& call) { return call.span == at && keyword_argument(call, "strategy"); });
    if (made == f.calls.end()) return false;
    const Operand& strategy = *keyword_argument(*made, "strategy");
    const Call* const object = call_of(f, strategy);
    return mentions(strategy.constant.str(), "deepspeed") ||
           (object && (mentions(object->name.str(), "deepspeed") ||
                       mentions(classes_of(context).library_base(object->name).str(), "deepspeed")));
}

// Trainer(precision="bf16-true"): the weights themselves are half, and so are their updates.
void check_engine(const RuleContext& context, const Engine& e, Findings& out) {
    const bool direct = e.kind == EngineKind::lightning || e.kind == EngineKind::fabric;
    if (!direct || !e.weights || !is_low_precision(e.dtype) || !e.function) return;
    if (has_deepspeed_strategy(context, *e.function, e.at)) return;  // it keeps fp32 masters
    emit(context, *e.function,
         {.rule = "MP501",
          .severity = Severity::warning,
          .span = e.at,
          .message = std::string(name_of(e.kind)) + " keeps the weights in " + std::string(label(e.dtype)) +
                     " and no fp32 copy: a step below " + lost_below(e.dtype) + " of a weight rounds away",
          .fix = "use the mixed precision of this dtype, which keeps fp32 weights",
          .notes = {},
          .function = {}},
         out);
}

void check_trainings(const RuleContext& context, Findings& out) {
    Trainings trainings(context, out);
    const OwnOptimizers own(classes_of(context));
    const auto is_trainer = [&](std::string_view name) {
        return is_hf_trainer(name) || own.is_trainer(name);
    };
    const auto may = [&](std::string_view name) {
        return may_make_optimizer(name) || own.is_optimizer(name) || is_trainer(name);
    };
    for_each_call(context.program, may, [&](const Function& f, const Call& call) {
        const bool makes = call.kind == CallKind::constructor || is_library_optimizer(call.name.str());
        if (code_kind(context, f.span.file) == CodeKind::test || !makes) return;
        if (is_trainer(call.name.str()))
            trainings.trainer(f, call);
        else
            trainings.optimizer(f, call,
                                own.is_optimizer(call.name.str()) || is_library_optimizer(call.name.str()));
    });
    const auto may_update = [](std::string_view op) {
        return op == "add" || op == "sub" || op == "addcdiv" || op == "addcmul";
    };
    for_each_op(context.program, may_update, [&](const Function& f, const Call& call) {
        if (code_kind(context, f.span.file) != CodeKind::test) trainings.by_hand(f, call);
    });
    for (const Engine& engine : engines_of(context)) check_engine(context, engine, out);
    check_adapters(context, out);
}

void check(const RuleContext& context, Findings& out) {
    if (context.inference) return;
    check_trainings(context, out);
    for_each(context, &Function::updates, [&](const Function& f, const Update& u) {
        if (!is_low_precision(u.dtype) || !u.subtracts || u.interpolates) return;
        if (u.has_master && !u.master_optional) return;
        if (!reads_a_gradient(f, u) || computes_statistics(f) || is_array_of_caller(f, u)) return;
        if (mentions(u.target.str(), "grad")) return;  // d loss / d logits = p - y: a gradient is computed
        const Store store = rounding_of(context.program, u);
        if (store.rounding != Rounding::nearest) return;
        std::vector<Note> notes;
        if (store.in_helper)
            notes.push_back(
                {store.in_helper->span, std::string(u.through.str()) + " only rounds to nearest here"});
        emit(context, f,
             {.rule = "MP501",
              .severity = severity_of(f, u),
              .span = u.span,
              .message = message_of(u),
              .fix = "keep fp32 master weights, or round stochastically",
              .notes = std::move(notes),
              .function = {}},
             out);
    });
}

// A checkpoint that is loaded without a dtype is no trigger: nearly every program that uses transformers has one,
// and the finding is a note.
constexpr std::array<std::string_view, 2> kAuto{"dtype=\"auto", "dtype='auto"};

}  // namespace

extern constinit const Rule kHalfOptimizerUpdateWithoutMaster{
    .id = "MP501",
    .name = "half-optimizer-update-without-master",
    .severity = Severity::error,
    .on_by_default = true,
    .confirmed_by = "MPT040",
    .triggers = {kLowDtypes, kRegions, kEngines, kAuto},
    .check = check};

}  // namespace mp::lint
