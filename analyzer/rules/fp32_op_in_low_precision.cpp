// MP102 fp32-op-in-low-precision
//
// What   An op that needs fp32 runs on a low-precision operand: in an autocast region whose op list
//        does not protect it, on a half tensor without autocast, or as a half intrinsic on a
//        statistic; a matrix product in fp16 whose logarithm is taken.
// Why    exp, pow and sums leave fp16's range (65504) long before the loss looks wrong; variances,
//        norms, transforms and solvers need more than its 11 bits.
// Fix    Upcast the operand, or leave the region for this call.
// Silent Ops on the device's list (autocast runs them in fp32); calls that ask for fp32; operands
//        of unknown dtype; disabled regions with upcast operands. Ops that keep fp32 inside and
//        have a bounded result (softmax) are notes; so are sums that round once, and a cast behind a test of the
//        dtype, where no caller is known to pass half; and what a model returns where the requirements ask for
//        a transformers that returns it in fp32. A loss of two tensors is computed in the wider dtype: silent
//        where one is fp32, a note where one is not known. MP122 has ops without a kernel for the dtype.
// Tests  testdata/lint/MP102.md, tests/analyzer/rules/fp32_op_in_low_precision_test.cpp
//
// The families below are the union of what PyTorch (CUDA and CPU), TensorFlow, Paddle and apex keep
// in fp32; which of them a region protects comes from the policy alone.

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/logs_of_products.hpp"
#include "analyzer/analyses/low_operands.hpp"
#include "analyzer/analyses/module_dtypes.hpp"
#include "analyzer/analyses/norm_stats.hpp"
#include "analyzer/analyses/numbers.hpp"
#include "analyzer/analyses/python_code.hpp"
#include "analyzer/analyses/regions.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/trials.hpp"
#include "analyzer/region/calls.hpp"
#include "analyzer/region/tables.hpp"
#include "analyzer/rules/rule.hpp"
#include "kernels/numerics/op_traits.hpp"

namespace mp::lint {
namespace {

// mild: kernels that widen inside, or results that stay in range. Worth knowing, rarely wrong.
enum class Need { none, mild, wide };

Need need_of(std::string_view op) {
    const Traits traits = traits_of(op);
    if (traits.has(Trait::needs_fp32)) return Need::wide;
    return traits.has(Trait::fp32_inside) ? Need::mild : Need::none;
}

bool needs_fp32(std::string_view op) { return need_of(op) != Need::none; }

// From this version on the models of transformers leave their logits in the dtype of their weights.
constexpr TorchVersion kKeepsLogits{4, 46};

// hexp(sum), __hdiv(x, sum): arithmetic in half.
constexpr std::array<std::string_view, 14> kIntrinsics{"hexp",  "h2exp", "hexp2",  "hexp10", "hlog",
                                                       "h2log", "hlog2", "hlog10", "__hdiv", "__h2div",
                                                       "hrcp",  "h2rcp", "hrsqrt", "h2rsqrt"};

// Python: MP404 judges sums by index, MP405 the statistics of a normalisation.
bool others_rule(const Function& f, const Call& call) {
    return call.op.name() == "index_add" || is_part_of_norm(f, call) || is_mean_of_squares(f, call) ||
           variance_under_root(f, call);
}

bool is_literal(const Function& f, const Operand& value) {
    const Call* display = call_of(f, value);
    return number_of(value) ||
           (display && is_display(*display) &&
            std::ranges::all_of(display->args, [&](const Operand& item) { return is_literal(f, item); }));
}

// torch.tensor([256., 1.], dtype=half), and such a tensor moved.
bool is_made_of_literals(const Function& f, const Operand& value) {
    constexpr std::array<std::string_view, 4> kFactories{"tensor", "constant", "full", "as_tensor"};
    const Call* made = producer(f, value);
    return made && any_of(leaf(made->name.str()), kFactories) && !made->args.empty() &&
           is_literal(f, made->args.front());
}

// The program makes up the data, to try something out.
bool is_made_up(const Function& f, const Operand& value) {
    return is_made_of_literals(f, value) || origin(f, value, makes_random_numbers);
}

std::string consequence(Need need, DType d) {
    if (need == Need::mild) return "its result has " + std::to_string(significant_bits(d)) + " bits";
    if (d == DType::bf16) return "it keeps " + std::to_string(significant_bits(d)) + " bits";
    return "results from " + shown(overflows_from(d)) + " on overflow, and it keeps " +
           std::to_string(significant_bits(d)) + " bits";
}

// Half the distance between neighbours from 8 to 16.
double log_error(DType d) { return std::exp2(3 - significant_bits(d)); }

// log_softmax(logits).gather(...), exp(a - b): what a loss takes from the logarithms of probabilities is a
// difference or one element, which keeps their absolute error.
bool picks_log_probabilities(const Function& f, const Call& call) {
    constexpr std::array<std::string_view, 6> kTaken{"gather",         "exp",    "sub",
                                                     "take_along_dim", "kl_div", "nll_loss"};
    const std::string_view op = call.op.name();
    if (!is_python(f) || (op != "log_softmax" && op != "logsumexp")) return false;
    return consumer(f, call, [&](const Call& taker) { return any_of(taker.op.name(), kTaken); }) != nullptr;
}

bool is_half_cast(const Call& call) {
    constexpr std::array<std::string_view, 4> kCasts{"to", "half", "bfloat16", "type"};
    return is_low_precision(call.result.dtype) && any_of(leaf(call.name.str()), kCasts);
}

// __hdiv(x, __float2half(total)): the total is fp32, and is rounded once for this operation.
bool is_narrowed_for(const Function& f, const Call& call, const Operand& statistic) {
    return std::ranges::any_of(f.casts, [&](const Cast& cast) {
        return is_wide(cast.from) && is_low_precision(cast.to) && cast.purpose == Purpose::argument &&
               cast.span.line == call.span.line && cast.source.stat == statistic.stat &&
               mentions(statistic.text.str(), cast.source.text.str());
    });
}

// x.half().std(0).half(): the program asks for a result in half, so half is what it gets.
bool is_kept_in_half(const Function& f, const Call& call) {
    return is_python(f) && consumer(f, call, is_half_cast) != nullptr;
}

class Judge {
public:
    Judge(const RuleContext& context, Findings& out)
        : context_(context), modules_(context, DTypeOf::output), dtypes_(modules_.tensors()), out_(out) {}

    void tensor_op(const Function& f, const Call& call) {
        if (asks_for_fp32(f, call)) return;
        if (is_python(f) && others_rule(f, call)) return;
        LowOperand low = low_operand(dtypes_, f, call);
        if (!low.operand || lacks_kernel(call.op.name(), low.is.dtype)) return;
        const DType widest = widest_beside(f, call);
        if (is_wide(widest)) return;
        const Context* region = context_.program.enabled_context(f, call);
        if (region && !is_unprotected(context_, *region, call)) return;
        const Need need = need_of(call.op.name());
        std::vector<Note> notes;
        if (region) notes = notes_of(*region);
        add_new(notes, std::move(low.is.chain));
        std::string message = std::string(call.op.name()) + " runs in " + std::string(label(low.is.dtype));
        message +=
            region ? " here: the op list of " + describe(*region) + " does not protect it, and " : ": ";
        message += consequence(need, low.is.dtype);
        const bool picked = !region && picks_log_probabilities(f, call) && trains(f);
        if (picked)
            message +=
                ", and log-probabilities near -10 are off by up to " + shown(log_error(low.is.dtype), 2);
        Severity severity = picked ? Severity::warning : severity_of(f, call, low, region);
        if (widest == DType::unknown || is_upcast_by_library(low.is)) severity = Severity::note;
        report(f, call, severity, std::move(message),
               std::string("upcast the operand ") + (is_python(f) ? "(.float())" : "(.to(torch::kFloat))") +
                   (region ? " or leave the region for this call" : " or ask for an fp32 result"),
               std::move(notes));
    }

    // log(mel @ magnitudes): autocast takes the logarithm in fp32, of a product that is fp16.
    void log_of_product(const LogOfProduct& found) {
        const Context* region = context_.program.enabled_context(*found.function, *found.product);
        if (!region || (region->dtype != DType::fp16 && region->dtype != DType::lowp)) return;
        const Policy* policy = policy_of(context_, *region);
        if (!policy || category_of(*policy, *found.product) != Category::lower) return;
        std::vector<Note> notes = notes_of(*region);
        notes.push_back({found.log->span, "the logarithm is taken here"});
        report(*found.function, *found.product,
               is_opened_by_a_trial(context_, *region) ? Severity::note : Severity::warning,
               std::string(found.product->op.name()) + " runs in " + std::string(label(region->dtype)) +
                   " in this region, and its " + "logarithm is taken: values from " +
                   shown(overflows_from(DType::fp16)) + " on are inf, small ones keep few bits",
               "leave the region for this call and upcast its operands (.float())", std::move(notes));
    }

    // An intrinsic on a statistic, whose values are not known. MP405 reports roots of a variance.
    void intrinsic(const Function& f, const Call& call) {
        const std::string_view name = leaf(call.name.str());
        const bool root = name == "hrsqrt" || name == "h2rsqrt";
        for (const Operand& x : call.args) {
            const bool spread = x.stat == Stat::variance || x.stat == Stat::sum_of_squares;
            if (!is_low_precision(x.dtype) || x.stat == Stat::none || (root && spread)) continue;
            return report(f, call, is_narrowed_for(f, call, x) ? Severity::note : Severity::warning,
                          std::string(name) + " of a statistic" + quoted(x.name.str()) + " in " +
                              std::string(label(x.dtype)) + ": it keeps " +
                              std::to_string(significant_bits(x.dtype)) + " bits and overflows from " +
                              shown(overflows_from(x.dtype)),
                          "compute it in float and convert the result", {});
        }
    }

private:
    static bool is_training(std::string_view name) {
        return leaf(name) == "backward" || leaf(name).ends_with("Trainer");
    }
    static bool trains_by(const Call& call) { return is_training(call.name.str()); }

    // A program that only scores or generates can live with such log-probabilities, and so can a script that does,
    // among others that train.
    bool trains(const Function& f) {
        const Program& program = context_.program;
        if (!trains_) trains_ = !context_.inference && !program.calls().select(is_training, {}).empty();
        if (!*trains_ || !is_script(program, f.span.file)) return *trains_;
        return std::ranges::any_of(functions_of(program, f.span.file), [&](const Function* own) {
            return std::ranges::any_of(own->calls, [&](const Call& call) {
                const Function* callee = program.definition(call.callee);
                return trains_by(call) || (callee && has_call(program, callee->span.file, trains_by));
            });
        });
    }

    // if x.dtype == torch.half: y = y.half(): the cast runs only for a caller that passes half.
    bool waits_for_half(const Function& f, const Operand& value) {
        const Call* test = nullptr;
        origin(f, value, [&](const Call& cast) {
            if (is_low_precision(cast.result.dtype)) test = dtype_test(f, cast.block);
            return test != nullptr;
        });
        if (!test) return false;
        return std::ranges::none_of(test->args, [&](const Operand& asked) {
            const auto is_asked = [&](const Parameter& p) {
                return asked.name.str() == std::string(p.name.str()) + ".dtype";
            };
            const auto at = std::ranges::find_if(f.params, is_asked);
            if (at == f.params.end()) return false;
            Operand parameter;
            parameter.param = static_cast<std::int32_t>(at - f.params.begin());
            parameter.name = at->name;
            const TensorDType is = dtypes_.of(f, parameter);
            return is_low_precision(is.dtype) && is.proven;
        });
    }

    // What is lost of such a sum is one rounding, unless its terms are large, or it is a variance that is divided by:
    // that leaves the range where the values are above 256. A standard deviation does not.
    static bool is_one_rounding(const Function& f, const Call& call, const Operand& summed) {
        if (!traits_of(call.op).has(Trait::sums_in_fp32)) return false;
        const Call* terms = producer(f, summed);
        if (terms && (is_square(*terms) || need_of(terms->op.name()) == Need::wide)) return false;
        return !call.op.name().starts_with("var") || divisions_by(f, call).empty();
    }

    // mse_loss(fp16, fp32) is computed in fp32: the widest dtype of the tensors decides. unknown: that of one is not
    // known.
    DType widest_beside(const Function& f, const Call& call) {
        // torch.stft multiplies its input by the window, which a program makes in fp32 and keeps.
        const Operand* window = call.op.name() == "stft" ? keyword_argument(call, "window") : nullptr;
        if (window && !is_low_precision(dtypes_.of(f, *window).dtype)) return DType::fp32;
        if (!traits_of(call.op).has(Trait::promotes)) return DType::fp16;
        DType widest = DType::fp16;
        for (const Operand& o : call.args) {
            if (!may_be_tensor(f, o)) continue;
            const DType is = dtypes_.of(f, o).dtype;
            if (is_wide(is)) return is;
            if (is == DType::unknown) widest = is;
        }
        return widest;
    }

    // Models of older transformers return their logits in fp32.
    bool is_upcast_by_library(const TensorDType& is) const {
        const TorchVersion transformers = context_.project.transformers;
        return is.of_model && transformers.known() && transformers < kKeepsLogits;
    }

    Severity severity_of(const Function& f, const Call& call, const LowOperand& low, const Context* region) {
        if (need_of(call.op.name()) == Need::mild || (context_.inference && !region)) return Severity::note;
        if (region && is_opened_by_a_trial(context_, *region)) return Severity::note;
        if (is_one_rounding(f, call, *low.operand)) return Severity::note;
        // bf16 has the range of fp32.
        if (is_python(f) && !region && low.is.dtype == DType::bf16) return Severity::note;
        // A library function that one of its callers gives half, or may.
        if (is_python(f) && !region && !low.is.proven) return Severity::note;
        if (is_python(f) && !region && is_made_up(f, *low.operand)) return Severity::note;
        if (is_python(f) && !region && waits_for_half(f, *low.operand)) return Severity::note;
        if (!region && is_kept_in_half(f, call)) return Severity::note;
        // What a model returns is used for much that bears it: features that are compared, scores.
        if (low.is.output) {
            const bool matters = traits_of(call.op).has(Trait::loss) || call.op.name() == "exp";
            return matters ? Severity::warning : Severity::note;
        }
        // The dtype may be proven, the values are not known: they may stay far below 65504.
        return Severity::warning;
    }

    void report(const Function& f, const Call& call, Severity severity, std::string message, std::string fix,
                std::vector<Note> notes) {
        emit(context_, f,
             {.rule = "MP102",
              .severity = severity,
              .span = call.span,
              .message = std::move(message),
              .fix = std::move(fix),
              .notes = std::move(notes),
              .function = {}},
             out_);
    }

    const RuleContext& context_;
    ModuleDTypes modules_;
    TensorDTypes& dtypes_;
    std::optional<bool> trains_;
    Findings& out_;
};

void check(const RuleContext& context, Findings& out) {
    Judge judge(context, out);
    for_each_op(context.program, needs_fp32,
                [&](const Function& f, const Call& call) { judge.tensor_op(f, call); });
    for_each_call(context.program, last_part_in(kIntrinsics),
                  [&](const Function& f, const Call& call) { judge.intrinsic(f, call); });
    for (const LogOfProduct& found : logs_of_products(context.program)) judge.log_of_product(found);
}

}  // namespace

extern constinit const Rule kFp32OpInLowPrecision{.id = "MP102",
                                                  .name = "fp32-op-in-low-precision",
                                                  .severity = Severity::warning,
                                                  .on_by_default = true,
                                                  .confirmed_by = "MPT060",
                                                  .triggers = {kLowDtypes, kRegions, kEngines},
                                                  .check = check};

}  // namespace mp::lint
