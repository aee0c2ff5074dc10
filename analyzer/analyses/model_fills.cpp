#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/constants.hpp"
#include "analyzer/analyses/model_casts.hpp"
#include "analyzer/analyses/numbers.hpp"
#include "analyzer/analyses/python_code.hpp"
#include "analyzer/analyses/python_constants.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/tensor_dtypes.hpp"
#include "analyzer/region/classes.hpp"

namespace mp::lint {
namespace {

// Ops that put a number in place of elements, and the first argument that can be it.
struct FillOp {
    std::string_view op;
    std::size_t first = 0;
};
constexpr std::array<FillOp, 3> kFillOps{{{"masked_fill", 2}, {"index_fill", 3}, {"where", 1}}};

const FillOp* fill_op(std::string_view op) {
    const auto found = std::ranges::find(kFillOps, op, &FillOp::op);
    return found == kFillOps.end() ? nullptr : &*found;
}

// -1e8 and 70000.0, but not -100000000: a fill with an integer may be for an integer tensor.
bool is_written_whole(const Operand& value) {
    constexpr std::string_view kFraction = ".eE";
    const std::string_view text = value.name.empty() ? value.text.str() : std::string_view{};
    return value.constant.str().find_first_of(kFraction) == std::string_view::npos &&
           text.find_first_of(kFraction) == std::string_view::npos;
}

bool is_beyond_fp16(const Operand& value) {
    const auto number = is_written_whole(value) ? std::nullopt : number_of(value);
    return number && std::isinf(rounded(DType::fp16, *number)) &&
           std::isfinite(rounded(DType::bf16, *number));
}

// The value that the call fills with; nullptr when fp16 holds it. An item assignment has it last.
const Operand* overflowing_fill(const Call& call) {
    std::size_t first = call.args.size();
    if (const FillOp* fill = fill_op(call.op.name()))
        first = fill->first;
    else if (is_item_assignment(call.name.str()))
        first = std::max<std::size_t>(first, 3) - 1;
    for (std::size_t i = first; i < call.args.size(); ++i)
        if (is_beyond_fp16(call.args[i])) return &call.args[i];
    return nullptr;
}

// The first of where() is a condition.
const Operand* filled_tensor(const Call& call) {
    const bool conditional = call.op.name() == "where" && call.kind != CallKind::method;
    for (std::size_t i = conditional ? 1 : 0; i < call.args.size(); ++i) {
        const Operand& o = call.args[i];
        if ((o.shape == Shape::tensor || o.shape == Shape::other) && o.constant.empty()) return &o;
    }
    return nullptr;
}

// An argument about which nothing is known: an item assignment to it may be to a dict.
bool may_be_dict(const Function& f, const Operand& value) {
    return value.shape != Shape::tensor && !call_of(f, value);
}

bool is_self(const Function& f, std::int32_t param) {
    return param == 0 && !f.params.empty() && f.params[0].name.str() == "self";
}

// Longer ways than this, through calls of a function or callers of a method, are not followed.
constexpr std::size_t kFarthest = 64;

class ModelFills {
public:
    explicit ModelFills(const RuleContext& context)
        : context_(context),
          classes_(classes_of(context)),
          dtypes_(context),
          casts_(fp16_model_casts(context)) {}

    void look_at(const Function& f, const Call& call, std::vector<ConstantUse>& out) {
        const Operand* value = overflowing_fill(call);
        const Operand* tensor = filled_tensor(call);
        if (!value || !tensor || !is_module(f.parent_class)) return;
        if (is_item_assignment(call.name.str()) && may_be_dict(f, *tensor)) return;
        std::vector<Note> notes = casts_beside(f);
        if (notes.empty() || is_dtype_guarded(f, call.block)) return;
        if (dtypes_.of(f, *tensor).dtype != DType::unknown || !follows(f, *tensor)) return;
        std::vector<const Function*> seen;
        if (!runs_in_forward(f, seen)) return;
        out.push_back({.function = &f,
                       .span = call.span,
                       .dtype = DType::fp16,
                       .value = *number_of(*value),
                       .role = Role::mask_fill,
                       .tensor = true,
                       .notes = std::move(notes),
                       .call = &call,
                       .constant = value,
                       .met = tensor,
                       .in_cast_model = true});
    }

private:
    bool is_module(Symbol name) const {
        return !name.empty() && classes_.library_base(name, "Module").str().starts_with("torch.nn.");
    }

    // A generic trainer receives the models of its own package.
    std::vector<Note> casts_beside(const Function& f) const {
        constexpr std::size_t kShown = 3;
        std::vector<Note> notes;
        for (const ModelCast& cast : casts_) {
            if (notes.size() == kShown || package_root(*cast.function) != package_root(f)) continue;
            const std::string_view name = naming(cast.call->args.front());
            notes.push_back(
                {cast.call->span, "module" + quoted(name) + ", of whatever class, is cast to fp16 here"});
        }
        return notes;
    }

    // It is forward, or a method that forward calls.
    bool runs_in_forward(const Function& f, std::vector<const Function*>& seen) const {
        if (leaf(f.name.str()) == "forward") return true;
        if (seen.size() == kFarthest || std::ranges::find(seen, &f) != seen.end()) return false;
        seen.push_back(&f);
        return std::ranges::any_of(context_.program.callers(f.usr), [&](const Call* call) {
            const Function* caller = context_.program.owner(*call);
            return caller && is_module(caller->parent_class) && runs_in_forward(*caller, seen);
        });
    }

    // Its dtype is that of the method's arguments or of the module's layers, as far as can be seen.
    bool follows(const Function& f, const Operand& value) {
        const Operand* at = &value;
        for (std::size_t step = 0; step < kFarthest; ++step) {
            const Call* call = call_of(f, *at);
            if (!call) return at->param != kNone && !is_self(f, at->param);
            if (call->args.empty()) return false;
            if (is_layer(f, *call)) return true;
            if (!keeps_dtype(f, *call)) return false;
            at = &call->args.front();
        }
        return false;
    }

    // self.attention(x)
    bool is_layer(const Function& f, const Call& call) const {
        if (call.kind != CallKind::method) return false;
        const Operand& layer = call.args.front();
        const std::string_view name = leaf(call.name.str());
        if (layer.shape == Shape::module && name == "forward") return true;
        if (name == "__call__") return layer.name.str().starts_with("self.");
        // An attribute of the class that no method of it explains.
        return is_self(f, layer.param) && !context_.program.definition(call.callee) &&
               call.name.str().starts_with(f.parent_class.str());
    }

    // No argument has another dtype.
    bool keeps_dtype(const Function& f, const Call& call) {
        constexpr std::array<std::string_view, 34> kOps{
            "add",         "sub",     "mul",     "div",     "neg",        "matmul",     "bmm",
            "mm",          "baddbmm", "linear",  "relu",    "gelu",       "tanh",       "sigmoid",
            "softmax",     "clamp",   "clone",   "detach",  "dropout",    "transpose",  "permute",
            "masked_fill", "view",    "reshape", "flatten", "contiguous", "squeeze",    "unsqueeze",
            "index_fill",  "expand",  "repeat",  "chunk",   "split",      "__getitem__"};
        if (!any_of(call.op.known() ? call.op.name() : leaf(call.name.str()), kOps)) return false;
        return std::ranges::none_of(call.args, [&](const Operand& argument) {
            const bool tensor = argument.shape == Shape::tensor || argument.shape == Shape::other;
            return argument.keyword.str() == "dtype" ||
                   (tensor && argument.constant.empty() && is_wide(dtypes_.of(f, argument).dtype));
        });
    }

    const RuleContext& context_;
    const Classes& classes_;
    TensorDTypes dtypes_;
    std::vector<ModelCast> casts_;
};

}  // namespace

std::vector<ConstantUse> overflows_in_cast_models(const RuleContext& context) {
    std::vector<std::pair<const Function*, const Call*>> fills;
    const auto may = [](std::string_view op) { return fill_op(op) != nullptr; };
    for_each_call_or_op(context.program, is_item_assignment, may, [&](const Function& f, const Call& call) {
        if (is_python(f) && overflowing_fill(call)) fills.emplace_back(&f, &call);
    });
    std::vector<ConstantUse> uses;
    if (fills.empty()) return uses;
    ModelFills finder(context);
    for (const auto& [f, call] : fills) finder.look_at(*f, *call, uses);
    return uses;
}

}  // namespace mp::lint
