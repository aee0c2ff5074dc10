// MP104 disabled-region-without-upcast
//
// What   Inside autocast(enabled=False), a half tensor from outside is used as it is by an op that
//        the region was switched off for.
// Why    Disabling autocast casts nothing back: the op runs in half, where autocast would at least
//        have chosen fp32 for the ops on its list.
// Fix    .float() on what comes from outside.
// Silent Values already fp32; values cast to half on purpose; dtypes that are not known; values
//        made inside the block.
// Tests  testdata/lint/MP104.md, tests/analyzer/rules/disabled_region_without_upcast_test.cpp

#include <algorithm>
#include <array>
#include <unordered_set>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/autocast_calls.hpp"
#include "analyzer/analyses/regions.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/tensor_dtypes.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

bool can_be_tensor(const Operand& value) {
    return value.shape == Shape::tensor || (value.shape == Shape::other && value.constant.empty());
}

bool may_set_region(std::string_view name) {
    const std::string_view function = leaf(name);
    return is_within(name, "at::autocast") && function.starts_with("set_") && function.ends_with("enabled") &&
           !mentions(function, "cache");
}

bool is_setter(const Call& call) { return !call.args.empty() && may_set_region(call.name.str()); }

bool is_hmp_island(std::string_view name) { return name.find("hmp.disable_casts") != std::string_view::npos; }

bool may_disable(std::string_view name) {
    return leaf(name) == "autocast" || is_hmp_island(name) || may_set_region(name);
}

// In C++ a region is disabled and set back by two calls.
Reached inside_setter(const RuleContext& context, const Function& f, const Call& call) {
    if (!is_setter(call) || call.args.back().constant.str() != "false" ||
        !context.program.enabled_context(f, call))
        return {};
    const std::ptrdiff_t index = &call - f.calls.data();
    const bool is_set_back = std::any_of(f.calls.begin() + index, f.calls.end(), [](const Call& later) {
        return is_setter(later) && later.args.back().constant.str() != "false";
    });
    if (!is_set_back) return {};
    return calls_until(f, static_cast<std::size_t>(index), is_setter);
}

std::vector<std::size_t> inside(const RuleContext& context, const Function& f, const Call& call) {
    const auto region = autocast_call(call);
    const bool is_island =
        region ? is_disabled(*region) : call.kind == CallKind::constructor && is_hmp_island(call.name.str());
    if (!is_island) return inside_setter(context, f, call).calls;
    const std::int32_t enter = enter_of(f, call);
    return enter == kNone ? std::vector<std::size_t>{} : calls_inside(f, static_cast<std::size_t>(enter));
}

// An op that is meant to gain from fp32: on the fp32 list, or a product.
bool wants_fp32(const RuleContext& context, const Call& call) {
    if (!call.op.known() || call.in_place || keyword_argument(call, "dtype")) return false;
    const Category category = context.policy("cuda")->category(call.op);
    return category == Category::lower || casts_to_fp32(category);
}

bool is_cast(const Call& call) {
    constexpr std::array<std::string_view, 7> kCasts{"to",   "half",    "bfloat16", "toType",
                                                     "type", "type_as", "_to_copy"};
    return any_of(leaf(call.name.str()), kCasts);
}

class Islands {
public:
    Islands(const RuleContext& context, Findings& out) : context_(context), dtypes_(context), out_(out) {}

    void check(const Function& f, const Call& start) {
        const std::vector<std::size_t> calls = inside(context_, f, start);
        const std::unordered_set<std::size_t> made_inside(calls.begin(), calls.end());
        for (const std::size_t index : calls) {
            const Call& call = f.calls[index];
            if (!wants_fp32(context_, call) || context_.program.enabled_context(f, call)) continue;
            std::vector<const Operand*> low;
            for (const Operand& value : call.args)
                if (comes_in_half(f, value, made_inside)) low.push_back(&value);
            if (!low.empty() && reported_.insert(&call).second) report(f, start, call, low);
        }
    }

private:
    bool comes_in_half(const Function& f, const Operand& value,
                       const std::unordered_set<std::size_t>& made_inside) {
        if (!can_be_tensor(value)) return false;
        const Call* source = call_of(f, value);
        if (source && (is_cast(*source) || made_inside.contains(static_cast<std::size_t>(value.call))))
            return false;
        return is_low_precision(dtypes_.of(f, value).dtype);
    }

    void report(const Function& f, const Call& island, const Call& call,
                const std::vector<const Operand*>& low) {
        const TensorDType is = dtypes_.of(f, *low.front());
        Finding finding{.rule = "MP104",
                        .severity = Severity::warning,
                        .span = call.span,
                        .message = std::string(call.op.name()) + " runs in " + std::string(label(is.dtype)) +
                                   " although autocast is disabled:" +
                                   (naming(*low.front()).empty() ? std::string(" its input")
                                                                 : quoted(naming(*low.front()))) +
                                   " comes from outside in half",
                        .fix = "call .float() on what comes from outside the block",
                        .notes = {{island.span, "autocast is disabled here"}},
                        .function = {}};
        finding.notes.insert(finding.notes.end(), is.chain.begin(), is.chain.end());
        finding.edits = upcasts(low);
        finding.safe_edits = !finding.edits.empty();
        emit(context_, f, std::move(finding), out_);
    }

    // `q @ k` becomes `q.float() @ k.float()` when both are plain names.
    static std::vector<Edit> upcasts(const std::vector<const Operand*>& low) {
        std::vector<Edit> edits;
        for (const Operand* value : low) {
            const bool is_name = value->span.known() && value->span.end_column != 0 && !value->name.empty() &&
                                 value->name == value->text && value->keyword.empty();
            if (!is_name) return {};
            SourceSpan at = value->span;
            at.line = at.end_line;
            at.column = at.end_column;
            edits.push_back({at, ".float()"});
        }
        return edits;
    }

    const RuleContext& context_;
    TensorDTypes dtypes_;
    Findings& out_;
    std::unordered_set<const Call*> reported_;
};

void check(const RuleContext& context, Findings& out) {
    Islands islands(context, out);
    for_each_call(context.program, may_disable,
                  [&](const Function& f, const Call& call) { islands.check(f, call); });
}

}  // namespace

extern constinit const Rule kDisabledRegionWithoutUpcast{.id = "MP104",
                                                         .name = "disabled-region-without-upcast",
                                                         .severity = Severity::warning,
                                                         .on_by_default = true,
                                                         .confirmed_by = "MPT060",
                                                         .triggers = {kLowDtypes, kRegions, kEngines},
                                                         .check = check};

}  // namespace mp::lint
