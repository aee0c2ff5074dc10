// MP101 manual-cast-in-autocast
//
// What   A tensor is cast to fp16 or bf16 by hand in a place that runs inside an autocast region, or
//        made in it from given values (torch.tensor(x, dtype=torch.float16)), or a module is cast
//        that runs in one later.
// Why    Autocast chooses the dtype op by op; a value that is half already stays half where the
//        region would have computed in fp32, and the gradient of the cast is half too.
// Fix    Drop the cast; the region casts what should be half.
// Silent Upcasts; functions that ask for the autocast state first, or that custom_fwd decorates;
//        gradient-free scopes; tests, which compare precisions; casts
//        whose result goes straight to a raw pointer, to flash attention or to apply() of an autograd function
//        (kernels that autocast does not know);
//        disabled regions; factories whose values half holds exactly (zeros, ones), and random numbers. A note
//        where a caller or a flag decides whether the region is open, for a cast behind a flag for precision, and
//        where no op is known to take it that the region runs in fp32: products round their inputs anyway.
// Tests  testdata/lint/MP101.md, tests/analyzer/rules/manual_cast_in_autocast_test.cpp

#include <algorithm>
#include <array>
#include <compare>
#include <set>
#include <unordered_set>
#include <vector>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/engines.hpp"
#include "analyzer/analyses/numbers.hpp"
#include "analyzer/analyses/python_code.hpp"
#include "analyzer/analyses/python_constants.hpp"
#include "analyzer/analyses/regions.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/region/classes.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

bool is_cast(std::string_view name) {
    constexpr std::array<std::string_view, 7> kCasts{"to",   "half",    "bfloat16", "toType",
                                                     "type", "type_as", "_to_copy"};
    return any_of(leaf(name), kCasts);
}

// x.to(device) of what is half already casts nothing.
bool is_cast_to_half(const Call& call) {
    const bool was_half =
        !call.args.empty() && call.args[0].shape != Shape::module && call.args[0].dtype == call.result.dtype;
    return is_half(call.result.dtype) && call.kind != CallKind::constructor && is_cast(call.name.str()) &&
           !was_half;
}

bool feeds_a_pointer(const Function& f, const Call& cast) {
    const auto index = static_cast<std::int32_t>(&cast - f.calls.data());
    constexpr std::array<std::string_view, 6> kPointers{
        "data_ptr", "mutable_data_ptr", "const_data_ptr", "packed_accessor32", "packed_accessor64", "data"};
    return std::ranges::any_of(f.calls, [&](const Call& c) {
        return !c.args.empty() && c.args[0].call == index && any_of(leaf(c.name.str()), kPointers);
    });
}

// flash_attn_func(q.half(), ...): kernels of other libraries, which take half alone and which autocast does not know.
bool feeds_a_kernel(const Function& f, const Call& cast) {
    const std::int32_t index = index_of(f, cast);
    return std::ranges::any_of(f.calls, [&](const Call& c) {
        const bool takes =
            std::ranges::any_of(c.args, [&](const Operand& argument) { return argument.call == index; });
        return takes && (leaf(c.name.str()).starts_with("flash_attn") || is_within(c.name.str(), "xformers"));
    });
}

// hidden = hidden.half(); Loss.apply(hidden): a kernel of the program, behind an autograd function of its own, which
// autocast does not know.
bool feeds_autograd_function(const RuleContext& context, const Function& f, const Call& cast) {
    const std::int32_t index = index_of(f, cast);
    const auto is_it = [&](const Operand& argument) {
        return argument.call == index || (!argument.name.empty() && argument.name == cast.result.name &&
                                          argument.span.line > cast.span.line);
    };
    return std::ranges::any_of(f.calls, [&](const Call& c) {
        const std::string_view name = c.name.str();
        if (!name.ends_with(".apply") || std::ranges::none_of(c.args, is_it)) return false;
        const Symbol owner(name.substr(0, name.size() - std::string_view(".apply").size()));
        return classes_of(context).library_base(owner).str() == "torch.autograd.Function";
    });
}

// The region in which the cast matters: open, and with gradients.
const Context* training_region(const RuleContext& context, const Function& f, const Call& call) {
    for (const Context& region : context.program.contexts(f, call))
        if (region.enabled == Switch::on && region.grad != Switch::off) return &region;
    return nullptr;
}

bool knows_what_it_does(const Function& f) { return handles_autocast(f) || is_inference(f); }

// `x.half()` without the call: from the end of the receiver to the end.
std::vector<Edit> removal(const Call& call) {
    if (call.kind != CallKind::method || call.args.empty()) return {};
    const std::string_view name = leaf(call.name.str());
    const bool is_only_a_cast = name == "half" || name == "bfloat16" ||
                                (name == "to" && call.args.size() == 2 && call.args[1].shape == Shape::dtype);
    const SourceSpan& receiver = call.args[0].span;
    if (!is_only_a_cast || !receiver.known() || receiver.end_column == 0 || call.span.end_column == 0)
        return {};
    SourceSpan at = call.span;
    at.line = receiver.end_line;
    at.column = receiver.end_column;
    return {{at, ""}};
}

constexpr const char* kDropIt = "drop the cast; autocast casts the inputs of the ops that should run in half";

// Where only some caller opens the region, or only under a flag, the cast may be what the other callers need.
Severity severity_in(const RuleContext& context, const Context& region) {
    return region.proven && !is_opened_by_a_trial(context, region) ? Severity::warning : Severity::note;
}

void report(const RuleContext& context, const Function& f, const Call& cast, const Context& region,
            Severity severity, std::string message, std::vector<Edit> edits, Findings& out,
            const char* fix = kDropIt) {
    Finding finding{.rule = "MP101",
                    .severity = severity,
                    .span = cast.span,
                    .message = std::move(message),
                    .fix = fix,
                    .notes = notes_of(region),
                    .function = {}};
    finding.edits = std::move(edits);
    // A factory without its dtype may give fp64: its edit names fp32, which other code may not expect.
    finding.safe_edits = !finding.edits.empty() && fix == kDropIt;
    emit(context, f, std::move(finding), out);
}

// Whether an op that the region runs in fp32 takes a value, here or in the functions that get it. Products round their
// inputs to half anyway, and what they return is half. Each value on the way is looked at once, the nearest ones first.
class Wideners {
public:
    Wideners(const RuleContext& context, const Context& region)
        : program_(context.program), policy_(policy_of(context, region)) {}

    bool take(const Function& f, const Call& cast) {
        if (!policy_) return false;
        std::vector<Value> nearest{{&f, index_of(f, cast), kNone}};
        for (std::size_t depth = 0; depth < kMostCalls && !nearest.empty(); ++depth) {
            std::vector<Value> next;
            for (const Value& value : nearest)
                if (takes(value, next)) return true;
            nearest = std::move(next);
        }
        return false;
    }

private:
    static constexpr std::size_t kMostCalls = 6;

    // The result of a call, or a parameter.
    struct Value {
        const Function* function;
        std::int32_t call;
        std::int32_t param;
        auto operator<=>(const Value&) const = default;

        bool is(const Operand& operand) const {
            const Operand& value = moved_from(*function, operand);
            return call != kNone ? value.call == call : value.param == param && value.refers.empty();
        }
    };

    bool runs_in_fp32(const Call& call) const {
        constexpr std::array<Category, 3> kWide{Category::fp32, Category::fp32_set_opt_dtype,
                                                Category::fp32_append_dtype};
        return std::ranges::find(kWide, policy_->category(call.op)) != kWide.end();
    }

    // Whether such an op takes this value; what other calls make of it is added to `next`.
    bool takes(const Value& value, std::vector<Value>& next) {
        if (!seen_.insert(value).second) return false;
        const auto is_it = [&](const Operand& operand) { return value.is(operand); };
        for (const Call& call : value.function->calls) {
            if (only_moves(call) || std::ranges::none_of(call.args, is_it)) continue;
            if (runs_in_fp32(call)) return true;
            if (policy_->category(call.op) == Category::lower) continue;
            add_parameters(call, is_it, next);
            if (is_low_precision(call.result.dtype))
                next.push_back({value.function, index_of(*value.function, call), kNone});
        }
        return false;
    }

    // Adds the parameters of a function of the program that get the value.
    void add_parameters(const Call& call, const OperandTest& is_it, std::vector<Value>& next) const {
        const Function* const callee = program_.definition(call.callee);
        if (!callee) return;
        const Passed passed(call, *callee);
        for (std::size_t p = 0; p < callee->params.size(); ++p)
            if (passed[p] && is_it(*passed[p])) next.push_back({callee, kNone, static_cast<std::int32_t>(p)});
    }

    const Program& program_;
    const Policy* policy_;
    std::set<Value> seen_;
};

// DeepSpeed keeps the weights of its engine in half by a configuration, and wants its inputs so.
bool is_beside_deepspeed(const RuleContext& context, const Function& f) {
    return std::ranges::any_of(engines_of(context), [&](const Engine& engine) {
        return engine.kind == EngineKind::deepspeed && engine.at.file == f.span.file;
    });
}

void check_cast(const RuleContext& context, const Function& f, const Call& call, Findings& out) {
    if (call.result.shape != Shape::tensor && call.result.shape != Shape::other) return;
    const Context* region = training_region(context, f, call);
    if (!region || knows_what_it_does(f) || feeds_a_pointer(f, call) || feeds_a_kernel(f, call)) return;
    const Call* const source = call.args.empty() ? nullptr : producer(f, call.args.front());
    if (source && makes_random_numbers(*source)) return;
    if (is_python(f) && feeds_autograd_function(context, f, call)) return;
    // fp16 in a region of bf16 loses the range, whatever takes it.
    const bool is_regions = region->dtype == DType::unknown || region->dtype == call.result.dtype;
    const bool harmless =
        is_beside_deepspeed(context, f) ||
        (is_regions && (is_dtype_guarded(f, call.block) || !Wideners(context, *region).take(f, call)));
    const Severity severity = harmless ? Severity::note : severity_in(context, *region);
    report(context, f, call, *region, severity,
           "cast to " + std::string(label(call.result.dtype)) + " by hand inside " + describe(*region) +
               ": later ops that the region runs in fp32 get a value that is already rounded",
           removal(call), out);
}

// Half holds every number that is written there; -inf and the limits of its own format are among them.
bool is_exact(const Function& f, const Operand& value, DType dtype) {
    const DType low = dtype == DType::lowp ? DType::bf16 : dtype;
    if (const auto number = number_of(value)) return rounded(low, *number) == *number;
    if (value.constant.str() == "true" || value.constant.str() == "false") return true;
    if (value.constant.str().ends_with("inf") || limit_of(f, value).finfo) return true;
    const Call* display = call_of(f, value);
    if (display && display->name.str() == "float") return true;  // float("-inf")
    return display && display->kind == CallKind::constructor &&
           (display->name.str() == "list" || display->name.str() == "tuple") &&
           std::ranges::all_of(display->args, [&](const Operand& item) { return is_exact(f, item, dtype); });
}

// Functions that make a tensor of given values.
struct Factory {
    std::string_view name;
    std::size_t values_at = 0;  // the first argument that holds values
};
constexpr std::array<Factory, 9> kFactories{{{"tensor", 0},
                                             {"as_tensor", 0},
                                             {"asarray", 0},
                                             {"scalar_tensor", 0},
                                             {"new_tensor", 1},
                                             {"full", 1},
                                             {"full_like", 1},
                                             {"new_full", 2},
                                             {"linspace", 0}}};

const Factory* factory_named(std::string_view name) {
    const auto* found = std::ranges::find(kFactories, leaf(name), &Factory::name);
    return found == kFactories.end() ? nullptr : found;
}

// The dtype argument of a factory that rounds given values to half: torch.tensor(x, dtype=half).
const Operand* rounding_dtype(const Function& f, const Call& call) {
    const Factory* factory = factory_named(call.name.str());
    if (!factory || !is_half(call.result.dtype)) return nullptr;
    if (!is_within(call.name.str(), "torch") && call.kind != CallKind::method) return nullptr;
    const Operand* dtype = keyword_argument(call, "dtype");
    if (!dtype || dtype->shape != Shape::dtype || factory->values_at >= call.args.size()) return nullptr;
    const Operand& values = call.args[factory->values_at];
    const bool fills = factory->name.find("full") != std::string_view::npos;
    if (fills && !number_of(values)) return nullptr;
    const bool exact = factory->name != "linspace" && is_exact(f, values, dtype->dtype);
    return exact ? nullptr : dtype;
}

void check_factory(const RuleContext& context, const Function& f, const Call& call, Findings& out) {
    const Operand* dtype = rounding_dtype(f, call);
    const Context* region = dtype ? training_region(context, f, call) : nullptr;
    if (!region || knows_what_it_does(f) || feeds_a_pointer(f, call)) return;
    if (is_dtype_guarded(f, call.block)) return;
    std::vector<Edit> edits;
    if (dtype->span.known()) edits.push_back({dtype->span, rewritten(*dtype, "torch.float32")});
    report(context, f, call, *region, severity_in(context, *region),
           "values are made " + std::string(label(call.result.dtype)) + " by hand inside " +
               describe(*region) + ": later ops that the region runs in fp32 get them already rounded",
           std::move(edits), out,
           "make them fp32; autocast casts the inputs of the ops that should run in half");
}

// net.to(device) only moves a module that is half already.
bool moves_module(const Call& call) {
    return leaf(call.name.str()) == "to" && std::none_of(call.args.begin() + 1, call.args.end(),
                                                         [](const Operand& a) { return is_half(a.dtype); });
}

// The cast of a module that this call runs: `net = net.half()`, or `net.half()` before it.
const Call* module_cast(const Function& f, const Call& run) {
    const Operand& module = run.args[0];
    if (module.shape != Shape::module || !is_half(module.dtype)) return nullptr;
    const Call* found = nullptr;
    for (const Call& call : f.calls) {
        if (&call == &run) break;
        if (!is_cast_to_half(call) || call.result.shape != Shape::module || call.args.empty()) continue;
        if (moves_module(call)) continue;
        const bool is_same =
            (!module.name.empty() && (call.args[0].name == module.name || call.result.name == module.name)) ||
            module.call == static_cast<std::int32_t>(&call - f.calls.data());
        if (is_same) found = &call;
    }
    return found;
}

bool is_run(std::string_view name) { return leaf(name) == "forward" || leaf(name) == "__call__"; }

void check_module(const RuleContext& context, const Function& f, const Call& call,
                  std::unordered_set<const Call*>& reported, Findings& out) {
    if (call.kind != CallKind::method || call.args.empty() || !is_run(call.name.str())) return;
    const Call* cast = module_cast(f, call);
    const Context* region = cast ? training_region(context, f, call) : nullptr;
    if (!region || knows_what_it_does(f) || !reported.insert(cast).second) return;
    report(context, f, *cast, *region, severity_in(context, *region),
           "the weights are cast to " + std::string(label(cast->result.dtype)) +
               " and the module then runs inside " + describe(*region) + ": autocast needs fp32 weights",
           {}, out);
}

void check(const RuleContext& context, Findings& out) {
    if (context.inference) return;
    std::unordered_set<const Call*> reported;
    const auto may_matter = [](std::string_view name) {
        return is_cast(name) || factory_named(name) || is_run(name);
    };
    for_each_call(context.program, may_matter, [&](const Function& f, const Call& call) {
        if (code_kind(context, f.span.file) == CodeKind::test) return;  // compares precisions
        if (is_cast_to_half(call))
            check_cast(context, f, call, out);
        else if (f.kind == FunctionKind::python)
            check_factory(context, f, call, out);
        check_module(context, f, call, reported, out);
    });
}

}  // namespace

extern constinit const Rule kManualCastInAutocast{.id = "MP101",
                                                  .name = "manual-cast-in-autocast",
                                                  .severity = Severity::warning,
                                                  .on_by_default = true,
                                                  .confirmed_by = "MPT060",
                                                  .triggers = {kLowDtypes, kRegions, kEngines},
                                                  .check = check};

}  // namespace mp::lint
