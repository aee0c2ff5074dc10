#include "analyzer/analyses/python_counts.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/model_casts.hpp"
#include "analyzer/analyses/numbers.hpp"
#include "analyzer/analyses/python_code.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/tensor_dtypes.hpp"
#include "analyzer/region/calls.hpp"
#include "kernels/numerics/op_traits.hpp"

namespace mp::lint {
namespace {

// Calls whose result counts or points: its values are as large as the data is long.
bool counts(const Call& call) {
    constexpr std::array<std::string_view, 3> kNames{"torch.arange", "torch.randint", "torch.randperm"};
    const bool is_count = traits_of(call.op).has(Trait::indices) && call.op.name() != "one_hot";
    return is_count || any_of(call.name.str(), kNames);
}

// The size of torch.randint(low, high, size): its last positional argument.
bool is_size(const Call& call, const Operand& value) {
    return call.name.str() == "torch.randint" && value.keyword.empty() && number_of(value) == std::nullopt;
}

// The largest number of the positional arguments bounds arange and randint; nothing when one of them is
// not a number, and a value that is not an integer makes no positions.
struct Bound {
    bool integers = true;
    std::optional<double> largest;
};
Bound bound_of(const Call& call) {
    Bound bound{.integers = true, .largest = 0.0};
    if (call.op.known()) return {};
    for (const Operand& value : call.args) {
        if (!value.keyword.empty() && value.keyword.str() != "end" && value.keyword.str() != "high") continue;
        if (value.shape == Shape::dtype || is_size(call, value)) continue;
        const auto number = number_of(value);
        if (number && *number != std::floor(*number)) bound.integers = false;
        if (!number) bound.largest.reset();
        if (number && bound.largest) bound.largest = std::max(*bound.largest, std::fabs(*number));
    }
    return bound;
}

// torch.arange(0, dim, 2): the even numbers, exact twice as far. They index the frequencies of a rotary table, one for
// two features, and not positions.
bool takes_every_second(const Call& call) {
    return call.name.str() == "torch.arange" && call.args.size() > 2 && call.args[2].keyword.empty() &&
           number_of(call.args[2]) == 2.0;
}

bool makes_positions(std::string_view name) { return name == "torch.arange"; }

bool converts(std::string_view name) {
    constexpr std::array<std::string_view, 5> kNames{"to", "half", "bfloat16", "type", "type_as"};
    return any_of(leaf(name), kNames);
}

constexpr std::array<std::string_view, 6> kLastParts{"arange", "to", "half", "bfloat16", "type", "type_as"};
bool may_hold_positions(std::string_view name) { return makes_positions(name) || converts(name); }

class Judge {
public:
    Judge(const RuleContext& context, Findings& out) : context_(context), dtypes_(context), out_(out) {}

    void look_at(const Function& f, const Call& call) {
        if (makes_positions(call.name.str()))
            made(f, call);
        else if (call.kind == CallKind::method && !call.args.empty())
            converted(f, call);
    }

private:
    // torch.arange(n, dtype=h.dtype)
    void made(const Function& f, const Call& call) {
        const Operand* dtype = keyword_argument(call, "dtype");
        if (!dtype) return;
        TensorDType is{.dtype = call.result.dtype, .proven = true, .chain = {}};
        if (is.dtype == DType::unknown) is = dtypes_.of(f, *dtype);
        if (is.dtype == DType::unknown) return follows_buffer(f, call, call, *dtype);
        judge(f, call, call, std::move(is));
    }

    // torch.arange(n).to(h.dtype), positions.type_as(h)
    void converted(const Function& f, const Call& call) {
        const Call* source = producer(f, call.args.front());
        if (!source || !counts(*source)) return;
        if (is_float(source->result.dtype)) return;
        TensorDType is{.dtype = call.result.dtype, .proven = true, .chain = {}};
        const bool as = leaf(call.name.str()) == "type_as" && call.args.size() > 1;
        if (is.dtype == DType::unknown && as) is = dtypes_.of(f, call.args[1]);
        if (is.dtype == DType::unknown && call.args.size() > 1)
            return follows_buffer(f, call, *source, call.args[1]);
        judge(f, call, *source, std::move(is));
    }

    void judge(const Function& f, const Call& call, const Call& source, TensorDType is) {
        const Bound bound = bound_of(source);
        const bool evens = takes_every_second(source);
        const auto limit = static_cast<double>(first_inexact_integer(is.dtype)) * (evens ? 2 : 1);
        if (!is_low_precision(is.dtype) || !bound.integers) return;
        if (bound.largest && *bound.largest <= limit) return;
        if (is_dtype_guarded(f, call.block)) return;
        report(f, call, evens && !bound.largest ? Severity::note : severity_of(bound, is),
               "positions are held in " + std::string(label(is.dtype)) + ": integers are exact only up to " +
                   stalls_at(is.dtype) + and_overflows(is.dtype),
               std::move(is.chain));
    }

    // dtype=self.inv_freq.dtype: a buffer takes the dtype of the model it is in.
    void follows_buffer(const Function& f, const Call& call, const Call& source, const Operand& like) {
        std::string_view name = like.name.str();
        if (name.ends_with(".dtype")) name.remove_suffix(6);
        if (!name.starts_with("self.") || !bound_of(source).integers) return;
        const Call* buffer = registers(f, name.substr(5));
        if (!buffer) return;
        std::vector<Note> notes = half_models_of(context_).of(f);
        const Severity severity = notes.empty() ? Severity::note : Severity::warning;
        notes.push_back({buffer->span, "the buffer is registered here"});
        report(f, call, severity,
               "positions take the dtype of the buffer '" + std::string(name) +
                   "', which a cast of the model makes half: integers are then exact only up to " +
                   stalls_at(DType::lowp),
               std::move(notes));
    }

    // An error needs a range that is known to be too long. Most sequences are longer than the 256 positions that bf16
    // counts, but not than the 2048 of fp16.
    static Severity severity_of(const Bound& bound, const TensorDType& is) {
        if (!bound.largest && is.dtype == DType::fp16) return Severity::note;
        return is.proven && bound.largest ? error_if_proven(is.dtype) : Severity::warning;
    }

    static bool is_attribute(const Operand& value, std::string_view attribute) {
        std::string_view name = value.name.str();
        if (!name.starts_with("self.")) return false;
        return name.substr(5) == attribute;
    }

    // Where the class registers the buffer; nullptr too when it makes it again.
    const Call* registers(const Function& f, std::string_view attribute) const {
        const Call* found = nullptr;
        if (f.parent_class.empty()) return found;
        for (const Function* other : context_.program.functions()) {
            if (other->parent_class != f.parent_class) continue;
            for (const Call& call : other->calls) {
                if (leaf(other->name.str()) != "__init__" && is_attribute(call.result, attribute))
                    return nullptr;  // made again after the cast
                const Operand* name =
                    leaf(call.name.str()) == "register_buffer" ? argument(call, 0, "name") : nullptr;
                if (name && spelled(*name) == attribute) found = &call;
            }
        }
        return found;
    }

    void report(const Function& f, const Call& call, Severity severity, std::string message,
                std::vector<Note> notes) {
        emit(context_, f,
             {.rule = "MP306",
              .severity = severity,
              .span = call.span,
              .message = std::move(message),
              .fix = "keep positions in fp32 or as integers, and convert what is computed from them",
              .notes = std::move(notes),
              .function = {}},
             out_);
    }

    const RuleContext& context_;
    TensorDTypes dtypes_;
    Findings& out_;
};

}  // namespace

void python_int_in_half(const RuleContext& context, Findings& out) {
    Judge judge(context, out);
    const NameQuestion question = last_part_in(kLastParts, may_hold_positions);
    for_each_call(context.program, question, [&](const Function& f, const Call& call) {
        if (is_python(f)) judge.look_at(f, call);
    });
}

}  // namespace mp::lint
