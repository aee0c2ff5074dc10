// MP502 ema-in-half
//
// What   A running average of weights (EMA, teacher) is stored in fp16 or bf16 with a decay so near
//        to 1 that the added value is lost by rounding.
// Why    ema = d * ema + (1 - d) * w moves by at most (1 - d) of the distance. bf16 has 8 bits: above
//        d = 1 - 2^-8 even a difference as large as the weight is lost; fp16 has 11. Above d = 1 - 2^-6 (fp16: 2^-9)
//        a quarter of the weight is: a warning.
// Fix    Keep the average in fp32.
// Silent An average in fp32; a decay below the threshold; a decay that is not known, unless the update
//        is compiled code: a warning for an average of squares in bf16 and where a name says that weights are averaged,
//        which takes thousands of steps, and else a note. A decay that is a default, which
//        a caller or an option can change, is a warning.
// Tests  testdata/lint/MP502.md, tests/analyzer/rules/ema_in_half_test.cpp

#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <utility>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/module_dtypes.hpp"
#include "analyzer/analyses/numbers.hpp"
#include "analyzer/analyses/optimizer_options.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/region/calls.hpp"
#include "analyzer/region/classes.hpp"
#include "analyzer/region/object_classes.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

// The smallest 1 - decay: below it, what is added to the average is lost to rounding.
double smallest_weight(DType d) { return std::exp2(-significant_bits(d)); }

// An average of weights follows differences that are smaller than this part of a weight.
constexpr double kLargeDifference = 0.25;

// The part of the average below which a difference is lost.
double lost_part(DType d, double weight) { return smallest_weight(d) / weight; }

// How much of the new value an update takes, for an update of an average.
struct Average {
    const Operand* target = nullptr;
    double weight = 0;
    bool is_list = false;  // torch._foreach_...
    bool assumed = false;  // the decay is a default that a caller or an option can change
};

// A decay, or the weight of the new value.
struct Factor {
    std::optional<double> value;
    bool assumed = false;
};

// `ema` of `ema.data`
std::string_view tensor_named(const Operand& o) {
    std::string_view name = o.name.str();
    if (name.ends_with(".data")) name.remove_suffix(std::string_view(".data").size());
    return name;
}

// `x` of x.clone() and x.detach().clone()
const Operand& copied(const Function& f, const Operand& value) {
    const Call* call = call_of(f, value);
    const std::string_view name = call ? leaf(call->name.str()) : "";
    const bool copies = (name == "clone" || name == "detach") && !call->args.empty();
    return copies ? copied(f, call->args.front()) : value;
}

// The updates of running averages, in the forms in which programs write them.
class Averages {
public:
    explicit Averages(const RuleContext& context)
        : program_(context.program), classes_(classes_of(context)) {}

    Average of(const Function& f, const Call& call) const {
        Average found = interpolation(f, call);
        if (!found.target) found = scaled_sum(f, call);
        if (!found.target) found = stored_sum(f, call);
        if (!found.target) found = stored_entry(f, call);
        if (!found.target) found = foreach_form(f, call);
        return found;
    }

private:
    static constexpr int kFarthest = 4;  // parameters, attributes and complements on the way to a number

    // A parameter has the factors that its callers pass or leave to the default; the one that keeps most counts.
    Factor factor(const Function& f, const Operand& operand, bool keeps, int left = kFarthest) const {
        if (const auto value = number_of(operand)) return {value, operand.assumed};
        if (left == 0) return {};
        const Call* call = call_of(f, operand);
        if (const Factor standard = of_option(f, operand, keeps, left); standard.value) return standard;
        if (const Factor last = call && keeps ? after_warm_up(f, *call, left) : Factor{}; last.value)
            return last;
        const bool subtracts = call && (call->op.name() == "sub" || leaf(call->name.str()) == "__sub__");
        if (subtracts && call->args.size() == 2 && number_of(call->args[0]) == 1.0) {
            const Factor rest = factor(f, call->args[1], !keeps, left - 1);
            return {rest.value ? std::optional(1 - *rest.value) : std::nullopt, rest.assumed};
        }
        if (is_attribute_of_self(operand) && !f.parent_class.empty()) {
            const auto [init, value] = classes_.kept(f.parent_class, operand.name);
            const Factor kept = value ? factor(*init, *value, keeps, left - 1) : Factor{};
            return {kept.value, true};
        }
        if (operand.param == kNone && f.kind == FunctionKind::lambda) return captured(f, operand, keeps);
        return passed(f, operand.param, keeps);
    }

    // The decay that a warm-up ends with: min(decay, (1 + n) / (10 + n)), decay * (1 - exp(-n / 2000)), or what a
    // function of the program returns.
    Factor after_warm_up(const Function& f, const Call& call, int left) const {
        const auto known_in = [&](std::span<const Operand> operands) {
            for (const Operand& o : operands)
                if (const Factor found = factor(f, o, true, left - 1); found.value)
                    return Factor{found.value, true};
            return Factor{};
        };
        if (call.name.str() == "min") return known_in(call.args);
        const bool is_product = call.op.name() == "mul" || leaf(call.name.str()) == "__mul__";
        if (is_product && std::ranges::any_of(call.args, [&](const Operand& o) { return nears_1(f, o); }))
            return known_in(call.args);
        const Function* callee = program_.definition(call.callee);
        if (!callee || callee->returned.size() != 1 || call.kind == CallKind::constructor) return {};
        return {factor(*callee, callee->returned.front(), true, left - 1).value, true};
    }

    // 1 - math.exp(-x)
    static bool nears_1(const Function& f, const Operand& operand) {
        const Call* difference = call_of(f, operand);
        const bool subtracts =
            difference && (difference->op.name() == "sub" || leaf(difference->name.str()) == "__sub__");
        if (!subtracts || difference->args.size() != 2 || number_of(difference->args[0]) != 1.0) return false;
        const Call* power = call_of(f, difference->args[1]);
        return power && leaf(power->name.str()) == "exp";
    }

    // `decay` of the function in which a lambda is written.
    Factor captured(const Function& lambda, const Operand& operand, bool keeps) const {
        const std::string_view usr = lambda.usr.str();
        const Function* outer = program_.definition(Symbol(usr.substr(0, usr.rfind(".<lambda"))));
        if (!outer) return {};
        const auto param = std::ranges::find(outer->params, operand.name, &Parameter::name);
        if (param == outer->params.end()) return {};
        return passed(*outer, static_cast<std::int32_t>(param - outer->params.begin()), keeps);
    }

    // Of the defaults that an optimizer's constructor gives.
    Factor of_option(const Function& f, const Operand& operand, bool keeps, int left) const {
        const OptimizerOption option = optimizer_option(classes_, f, operand);
        if (!option.given) return {};
        return {option.item ? passed_item(*option.init, *option.given, *option.item)
                            : factor(*option.init, *option.given, keeps, left - 1).value,
                true};
    }

    // Of the pairs that callers pass or leave to the default, the item that keeps most counts.
    std::optional<double> passed_item(const Function& init, const Operand& pair, std::size_t item) const {
        const auto callers = program_.callers(init.usr);
        if (callers.empty()) return item_of(init, pair, item);
        std::optional<double> most;
        for (const Call* call : callers) {
            const Function* caller = program_.owner(*call);
            const Operand* given = argument_for(*call, init, pair.param);
            const Call* display = caller && given ? call_of(*caller, *given) : nullptr;
            const Operand* part = display ? item_of_display(*display, item) : nullptr;
            const auto value = given ? (part ? number_of(*part) : std::nullopt) : item_of(init, pair, item);
            if (value && (!most || *value > *most)) most = value;
        }
        return most;
    }

    // An item of the parameter's default, such as (0.9, 0.999).
    static std::optional<double> item_of(const Function& init, const Operand& pair, std::size_t item) {
        if (pair.param == kNone || static_cast<std::size_t>(pair.param) >= init.params.size()) return {};
        std::string_view text = init.params[static_cast<std::size_t>(pair.param)].constant.str();
        if (!text.starts_with('(') || !text.ends_with(')')) return {};
        text = text.substr(1, text.size() - 2);
        for (; item > 0; --item) {
            const std::size_t comma = text.find(',');
            if (comma == std::string_view::npos) return {};
            text.remove_prefix(comma + 1);
        }
        text = text.substr(0, text.find(','));
        while (text.starts_with(' ')) text.remove_prefix(1);
        Operand number;
        number.constant = Symbol(text);
        return number_of(number);
    }

    Factor passed(const Function& f, std::int32_t param, bool keeps) const {
        Factor found{.value = std::nullopt, .assumed = true};
        if (param == kNone || static_cast<std::size_t>(param) >= f.params.size()) return found;
        Operand otherwise;
        otherwise.constant = f.params[static_cast<std::size_t>(param)].constant;
        const auto add = [&](const Operand* given) {
            const auto value = given ? number_of(*given) : std::nullopt;
            if (!value || *value <= 0 || *value >= 1) return;
            if (!found.value || (*value > *found.value) == keeps) found.value = value;
        };
        const auto callers = program_.callers(f.usr);
        if (callers.empty()) add(&otherwise);
        for (const Call* call : callers) {
            const Operand* given = argument_for(*call, f, param);
            add(given || has_unpacked(*call) ? given : &otherwise);
        }
        return found;
    }

    Average average(const Function& f, const Operand& target, const Operand& operand, bool keeps,
                    bool is_list = false) const {
        const Factor found = factor(f, operand, keeps);
        if (!found.value) return {};
        return {.target = &target,
                .weight = keeps ? 1 - *found.value : *found.value,
                .is_list = is_list,
                .assumed = found.assumed};
    }

    // ema.lerp_(new, 1 - decay)
    Average interpolation(const Function& f, const Call& call) const {
        if (call.op.name() != "lerp" || !call.in_place || call.args.empty()) return {};
        const Operand* weight = argument(call, 1, "weight");
        return weight ? average(f, call.args[0], *weight, false) : Average{};
    }

    // ema.mul_(decay).add_(new, alpha=1 - decay), and of squares with addcmul_
    Average scaled_sum(const Function& f, const Call& call) const {
        const bool adds = call.op.name() == "add" || call.op.name() == "addcmul";
        if (!adds || !call.in_place || call.args.empty()) return {};
        const Call* scaled = call_of(f, call.args[0]);
        if (!scaled || !scales(*scaled)) return scaled_before(f, call);
        return average(f, scaled->args[0], scaled->args[1], true);
    }

    static bool scales(const Call& call) {
        return call.op.name() == "mul" && call.in_place && call.args.size() >= 2;
    }

    // ema.mul_(decay), and then ema.add_(new, alpha=1 - decay). Of weights that decay (p.mul_(1 - lr * wd), then the
    // step) it is no average: the two factors do not make 1.
    Average scaled_before(const Function& f, const Call& call) const {
        for (const Call* before = &call; before-- != f.calls.data();) {
            if (before->block != call.block || !scales(*before) || !same_value(before->args[0], call.args[0]))
                continue;
            const Average found = average(f, call.args[0], before->args[1], true);
            return found.target && adds_part(f, call, found.weight) ? found : Average{};
        }
        return {};
    }

    // add_(new, alpha=weight) or add_(weight * new)
    bool adds_part(const Function& f, const Call& call, double weight) const {
        const auto is_weight = [&](const Operand& o) {
            const Factor part = factor(f, o, false);
            return part.value && std::abs(*part.value - weight) <= 1e-3 * weight;
        };
        const Operand* alpha = keyword_argument(call, call.op.name() == "add" ? "alpha" : "value");
        if (alpha || call.args.size() < 2) return alpha && is_weight(*alpha);
        const Call* product = call_of(f, call.args[1]);
        return product && product->op.name() == "mul" && std::ranges::any_of(product->args, is_weight);
    }

    // What `decay * target` multiplies with.
    static const Operand* factor_beside(const Function& f, const Operand& term, const Operand& target) {
        const Call* product = call_of(f, term);
        if (!product || product->op.name() != "mul" || product->args.size() != 2) return nullptr;
        for (const std::size_t i : {0u, 1u})
            if (is_same_tensor(f, product->args[i], target)) return &product->args[1 - i];
        return nullptr;
    }

    // `ema` and `ema.data`, or two readings of ema[name].
    static bool is_same_tensor(const Function& f, const Operand& a, const Operand& b) {
        const Call *x = call_of(f, a), *y = call_of(f, b);
        const bool entries = x && y && reads_entry(*x) && reads_entry(*y);
        if (entries) return x->args[0].name == y->args[0].name && x->args[1].name == y->args[1].name;
        return !a.name.empty() && tensor_named(a) == tensor_named(b);
    }

    // decay * ema + (1 - decay) * new, written into ema
    Average weighted_sum(const Function& f, const Call& sum, const Operand& target) const {
        if (sum.op.name() != "add" || sum.in_place || sum.args.size() != 2) return {};
        for (const Operand& term : sum.args) {
            const Operand* decay = factor_beside(f, term, target);
            const Average found = decay ? average(f, target, *decay, true) : Average{};
            if (found.target) return found;
        }
        return {};
    }

    // ema[name] = decay * ema[name] + (1 - decay) * new
    Average stored_entry(const Function& f, const Call& call) const {
        if (leaf(call.name.str()) != "__setitem__" || call.args.size() != 3) return {};
        const Call* sum = call_of(f, copied(f, call.args[2]));
        for (const Operand& term : sum ? std::span(sum->args) : std::span<const Operand>()) {
            const Call* product = call_of(f, term);
            for (const Operand& part : product ? std::span(product->args) : std::span<const Operand>()) {
                const Call* read = call_of(f, part);
                const bool same = read && reads_entry(*read) && !call.args[0].name.empty() &&
                                  read->args[0].name == call.args[0].name &&
                                  read->args[1].name == call.args[1].name;
                if (same) return weighted_sum(f, *sum, part);
            }
        }
        return {};
    }

    // ema.copy_(decay * ema + (1 - decay) * new), ema.data = decay * ema.data + ..., self.ema = decay * self.ema + ...
    Average stored_sum(const Function& f, const Call& call) const {
        if (call.op.name() == "copy" && call.in_place && call.args.size() >= 2) {
            const Call* sum = call_of(f, call.args[1]);
            return sum ? weighted_sum(f, *sum, call.args[0]) : Average{};
        }
        const std::string_view stored = call.result.name.str();
        if (!stored.ends_with(".data") && !stored.starts_with("self.")) return {};
        for (const Operand& term : call.args) {
            const Call* product = call_of(f, term);
            if (!product) continue;
            for (const Operand& part : product->args)
                if (part.name == call.result.name) return weighted_sum(f, call, part);
        }
        return {};
    }

    // torch._foreach_lerp_(emas, news, 1 - decay); torch._foreach_mul_(emas, decay) before
    // torch._foreach_add_(emas, ...)
    Average foreach_form(const Function& f, const Call& call) const {
        if (call.args.size() < 2) return {};
        const std::string_view name = leaf(call.name.str());
        if (name == "_foreach_lerp_" && call.args.size() >= 3)
            return average(f, call.args[0], call.args[2], false, true);
        if (name != "_foreach_add_" && name != "_foreach_addcmul_") return {};
        for (const Call* before = &call; before-- != f.calls.data();) {
            const bool scales = leaf(before->name.str()) == "_foreach_mul_" && before->args.size() >= 2 &&
                                same_value(before->args[0], call.args[0]);
            if (scales) return average(f, call.args[0], before->args[1], true, true);
        }
        return {};
    }

    const Program& program_;
    const Classes& classes_;
};

// What a dictionary of tensors holds: state["exp_avg_sq"], after state["exp_avg_sq"] = torch.zeros_like(p,
// dtype=torch.bfloat16); and self.shadow[name], which another method of the class fills.
class Entries {
public:
    Entries(const RuleContext& context, ModuleDTypes& modules)
        : context_(context), classes_(classes_of(context)), modules_(modules) {}

    // The dtype that all have with which it is filled; `update` does not fill it.
    TensorDType of(const Function& f, const Call& read, const Call& update) {
        common_ = none();
        count_ = 0;
        const bool by_name = read.args[1].constant.empty();
        if (!by_name) add_stores(f, f, read, update);
        const Symbol held = attribute_read(f, read.args[0]);
        if (held.empty()) return common_;
        const auto [init, display] = classes_.kept(f.parent_class, held);
        const Call* made = display ? call_of(*init, *display) : nullptr;
        if (made && leaf(made->name.str()) == "dict" && made->args.size() == 1 &&
            made->args[0].keyword.empty())
            add(*init, made->args[0], *made);
        for (const Function* method : classes_.methods(f.parent_class))
            if (by_name) add_stores(*method, f, read, update);
        return common_;
    }

private:
    // "self.params" of self.params, and of `params` after params = self.params.
    static Symbol attribute_read(const Function& f, const Operand& o) {
        if (f.parent_class.empty()) return {};
        if (is_attribute_of_self(o)) return o.name;
        std::string_view name = o.refers.str();
        const std::string_view owner = f.parent_class.str();
        if (!name.starts_with(owner) || name.size() <= owner.size() || name[owner.size()] != '.') return {};
        name.remove_prefix(owner.size() + 1);
        return name.find('.') == std::string_view::npos ? Symbol("self." + std::string(name)) : Symbol();
    }

    static TensorDType none() { return {.dtype = DType::unknown, .proven = false, .chain = {}}; }

    void add_stores(const Function& in, const Function& f, const Call& read, const Call& update) {
        for (const Call& call : in.calls) {
            if (leaf(call.name.str()) != "__setitem__" || call.args.size() != 3 || &call == &update) continue;
            const bool same = &in == &f ? same_value(call.args[0], read.args[0])
                                        : call.args[0].name == attribute_read(f, read.args[0]);
            if (same && call.args[1].constant == read.args[1].constant) add(in, call.args[2], call);
        }
    }

    void add(const Function& f, const Operand& value, const Call& at) {
        TensorDType found = modules_.of_tensor(f, copied(f, value), at);
        if (found.dtype == DType::unknown) found = of_optional(f, copied(f, value));
        if (found.dtype == DType::unknown) found = of_option(f, copied(f, value));
        if (count_++ == 0)
            common_ = std::move(found);
        else if (found.dtype != common_.dtype)
            common_ = none();
    }

    // state[name], after `if state is None: state = self.model.state_dict()`
    TensorDType of_optional(const Function& f, const Operand& value) {
        const Call* read = call_of(f, value);
        if (!read || !reads_entry(*read) || call_of(f, read->args[0]) || read->args[0].name.empty())
            return none();
        for (const Call& call : f.calls) {
            if (call.result.name != read->args[0].name || leaf(call.name.str()) != "state_dict") continue;
            TensorDType found = call.args.empty() ? none() : modules_.of_module(f, call.args[0], call);
            found.proven = false;
            return found;
        }
        return none();
    }

    // torch.zeros_like(p, dtype=group["variance_dtype"])
    TensorDType of_option(const Function& f, const Operand& value) const {
        const Call* made = call_of(f, value);
        const Operand* dtype = made ? keyword_argument(*made, "dtype") : nullptr;
        return dtype ? low_dtype_of_option(context_, f, *dtype) : none();
    }

    const RuleContext& context_;
    const Classes& classes_;
    ModuleDTypes& modules_;
    TensorDType common_ = none();
    int count_ = 0;
};

void emit_average(const RuleContext& context, const Function& f, const SourceSpan& span, DType dtype,
                  Severity severity, const std::string& what, std::vector<Note> notes, Findings& out) {
    emit(context, f,
         {.rule = "MP502",
          .severity = severity,
          .span = span,
          .message =
              "running average is stored in " + std::string(label(dtype)) + ": " + what + " rounds away",
          .fix = "keep the average in fp32",
          .notes = std::move(notes),
          .function = {}},
         out);
}

void report(const RuleContext& context, const Function& f, const SourceSpan& span, DType dtype,
            Severity severity, std::vector<Note> notes, Findings& out, double lost) {
    const std::string what =
        lost >= 1 ? "what is added to it" : "a difference below " + shown(100 * lost, 2) + " % of it";
    emit_average(context, f, span, dtype, severity, "with this decay " + what, std::move(notes), out);
}

bool may_average(std::string_view op) {
    return op == "lerp" || op == "add" || op == "addcmul" || op == "copy";
}

bool may_average_by_name(std::string_view name) {
    return leaf(name).starts_with("_foreach_") || leaf(name) == "__setitem__";
}

TensorDType dtype_of(const RuleContext& context, ModuleDTypes& modules, const Function& f,
                     const Average& average, const Call& call) {
    if (average.is_list) return modules.of_list(f, *average.target, call);
    const Call* read = call_of(f, *average.target);
    if (read && reads_entry(*read)) {
        TensorDType held = Entries(context, modules).of(f, *read, call);
        if (held.dtype != DType::unknown) return held;
    }
    // try: average = averages[name], except KeyError: another value of that name
    const bool chosen = !read && average.target->param == kNone && !average.target->name.empty();
    for (const Call& other : chosen ? std::span(f.calls) : std::span<const Call>()) {
        if (other.result.name != average.target->name || !reads_entry(other)) continue;
        TensorDType held = Entries(context, modules).of(f, other, call);
        held.proven = false;
        if (is_low_precision(held.dtype)) return held;
    }
    return modules.of_tensor(f, *average.target, call);
}

// self.mean = d * self.mean + (1 - d) * x.mean(): what is wider than the attribute makes it wider.
bool widens(ModuleDTypes& modules, const Function& f, const Call& sum) {
    if (!sum.result.name.str().starts_with("self.")) return false;
    return std::ranges::any_of(sum.args, [&](const Operand& term) {
        const Call* product = call_of(f, term);
        return product && std::ranges::any_of(product->args, [&](const Operand& part) {
                   return is_wide(modules.of_tensor(f, part, sum).dtype);
               });
    });
}

void check_update(const RuleContext& context, const Averages& averages, ModuleDTypes& modules,
                  const Function& f, const Call& call, Findings& out) {
    if (!is_python(f)) return;
    const Average average = averages.of(f, call);
    // The moments of an optimizer follow noise that is larger than themselves.
    const bool moment =
        call.op.name() == "addcmul" || !classes_of(context).library_base(f.parent_class, "Optimizer").empty();
    const double least = moment ? 1 : kLargeDifference;
    if (!average.target || average.weight <= 0 || lost_part(DType::bf16, average.weight) <= least) return;
    const TensorDType found = dtype_of(context, modules, f, average, call);
    if (!is_low_precision(found.dtype)) return;
    const double lost = lost_part(found.dtype, average.weight);
    if (lost <= least) return;
    if (widens(modules, f, call)) return;
    // What is added to an attribute may be wider than it seems.
    const bool replaces = call.result.name.str().starts_with("self.");
    const bool proven = found.proven && !average.assumed && !replaces && lost > 1;
    report(context, f, call.span, found.dtype, proven ? error_if_proven(found.dtype) : Severity::warning,
           found.chain, out, lost);
}

constexpr std::array<std::string_view, 1> kAveragedModel{"torch.optim.swa_utils.AveragedModel"};

// torch.optim.swa_utils.AveragedModel(model.half(), multi_avg_fn=get_ema_multi_avg_fn(0.999))
void check_averaged_model(const RuleContext& context, ModuleDTypes& modules, const Function& f,
                          const Call& call, Findings& out) {
    const Operand* model = argument(call, 0, "model");
    const Operand* function = argument(call, 3, "multi_avg_fn");
    const Call* made = function ? call_of(f, *function) : nullptr;
    if (!model || !made || !leaf(made->name.str()).starts_with("get_ema_")) return;
    const Operand* decay = argument(*made, 0, "decay");
    const double weight = decay ? 1 - number_of(*decay).value_or(0) : 1 - 0.999;
    const TensorDType found = modules.of_module(f, *model, call);
    const double lost = lost_part(found.dtype, weight);
    if (!is_low_precision(found.dtype) || lost <= kLargeDifference) return;
    const bool proven = found.proven && lost > 1;
    report(context, f, call.span, found.dtype, proven ? error_if_proven(found.dtype) : Severity::warning,
           found.chain, out, lost);
}

// An average over some ten steps, which 8 bits follow: a first moment, a potential. An average of squares is over a
// thousand, which fp16 still follows.
bool is_followed(const Update& average) { return average.dtype == DType::fp16 || !average.adds_a_square; }

// ema_step_kernel(), weights_ema[i]: a name that says that weights are averaged, which takes thousands of steps.
bool is_named_average(std::string_view name) {
    constexpr std::array<std::string_view, 3> kNames{"ema", "average", "averaged"};
    while (!name.empty()) {
        const auto end =
            std::ranges::find_if_not(name, [](char c) { return is_part_of_name(c) && c != '_'; });
        const std::string_view word(name.begin(), end);
        if (any_of(word, kNames)) return true;
        name.remove_prefix(std::min(word.size() + 1, name.size()));
    }
    return false;
}

void check(const RuleContext& context, Findings& out) {
    if (context.inference) return;
    ModuleDTypes modules(context);
    const Averages averages(context);
    for_each_call_or_op(
        context.program, may_average_by_name, may_average,
        [&](const Function& f, const Call& call) { check_update(context, averages, modules, f, call, out); });
    for_each_call(context.program, name_in(kAveragedModel), [&](const Function& f, const Call& call) {
        check_averaged_model(context, modules, f, call, out);
    });
    for_each(context, &Function::updates, [&](const Function& f, const Update& u) {
        if (!u.interpolates || !is_low_precision(u.dtype) || u.compensated) return;
        if (u.has_master && !u.master_optional) return;
        // The decay is an argument of the kernel.
        const bool matters =
            !is_followed(u) || is_named_average(f.name.str()) || is_named_average(u.target.str());
        emit_average(context, f, u.span, u.dtype, matters ? Severity::warning : Severity::note,
                     "with a decay above " + shown(1 - smallest_weight(u.dtype), 4) + " what is added to it",
                     {}, out);
    });
}

}  // namespace

extern constinit const Rule kEmaInHalf{.id = "MP502",
                                       .name = "ema-in-half",
                                       .severity = Severity::error,
                                       .on_by_default = true,
                                       .confirmed_by = "MPT040",
                                       .triggers = {kLowDtypes, kRegions, kEngines},
                                       .check = check};

}  // namespace mp::lint
