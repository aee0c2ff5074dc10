#include "analyzer/analyses/loss_scales.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "analyzer/analyses/support.hpp"
#include "analyzer/region/calls.hpp"
#include "kernels/numerics/op_traits.hpp"

namespace mp::lint {
namespace {

std::size_t receivers(const Call& call) { return call.kind == CallKind::method ? 1 : 0; }

// The parameter whose value this call through a pointer runs.
std::int32_t called_parameter(const Function& f, const Call& call) {
    if (!call.callee.empty() || call.kind != CallKind::function) return kNone;
    const auto named = std::ranges::find(f.params, call.name, &Parameter::name);
    return named == f.params.end() ? kNone : static_cast<std::int32_t>(named - f.params.begin());
}

std::optional<double> number_in(Symbol text) {
    Operand number;
    number.constant = text;
    return number_of(number);
}

}  // namespace

bool ScaleValues::is_one() const {
    const auto one = [](const ScaleValue& v) { return v.value == 1; };
    const auto zero = [](const ScaleValue& v) { return v.value == 0; };
    return complete && std::ranges::any_of(values, one) &&
           std::ranges::all_of(values, [&](const ScaleValue& v) { return one(v) || zero(v); });
}

LossScales::LossScales(const Program& program) : program_(program) {
    for (const Function* f : program.functions())
        for (const Call& call : f->calls) {
            if (!call.callee.empty()) callers_[call.callee].emplace_back(f, &call);
            for (const Symbol given : call.lambdas) passed_[given].emplace_back(f, &call);
        }
}

void LossScales::follow(const Function& f, const Call& call, const Operand& given, std::vector<Slot>& pending,
                        ScaleValues& out) const {
    std::optional<double> value = number_of(given);
    if (!value) value = number_in(given.alternative);
    if (!value && given.param != kNone) return pending.emplace_back(&f, given.param), void();
    if (!value) return void(out.complete = false);
    ScaleValue found{.value = *value, .function = &f, .span = call.span};
    // A function that gives the number is where it is written.
    const auto index = static_cast<std::size_t>(given.call);
    const Function* source = given.call == kNone ? nullptr : program_.definition(f.calls[index].callee);
    if (source && !source->returned.empty()) found = {*value, source, source->span};
    const auto same = [&](const ScaleValue& v) { return v.span == found.span && v.value == *value; };
    if (std::ranges::none_of(out.values, same)) out.values.push_back(found);
}

// run(kernel, a, b) { kernel<<<1, 1>>>(a, b); }: an argument of `run` becomes an argument of `kernel`.
bool LossScales::forwarded(const Site& site, const Slot& slot, std::vector<Slot>& pending,
                           ScaleValues& out) const {
    const auto& [f, call] = site;
    const Function* through = program_.definition(call->callee);
    if (!through) return false;
    const auto index = static_cast<std::size_t>(slot.second);
    bool found = false;
    for (const Call& inner : through->calls) {
        if (called_parameter(*through, inner) == kNone || index >= inner.args.size()) continue;
        const Operand& handed = inner.args[index];
        const std::size_t at = static_cast<std::size_t>(handed.param) + receivers(*call);
        found = true;
        if (handed.param == kNone || at >= call->args.size())
            follow(*through, inner, handed, pending, out);
        else
            follow(*f, *call, call->args[at], pending, out);
    }
    return found;
}

void LossScales::follow_callers(const Slot& slot, std::vector<Slot>& pending, ScaleValues& out) const {
    const auto& [f, param] = slot;
    std::vector<Symbol> names = f->overrides;
    names.push_back(f->usr);
    bool called = false;
    for (const Symbol name : names) {
        if (const auto sites = callers_.find(name); sites != callers_.end())
            for (const auto& [caller, call] : sites->second) {
                const std::size_t at = static_cast<std::size_t>(param) + receivers(*call);
                if (at >= call->args.size()) continue;
                called = true;
                follow(*caller, *call, call->args[at], pending, out);
            }
        if (const auto sites = passed_.find(name); sites != passed_.end())
            for (const Site& site : sites->second) called = forwarded(site, slot, pending, out) || called;
    }
    if (!called) out.complete = false;
}

ScaleValues LossScales::of(const Function& f, const Scaling& scaling) const {
    ScaleValues out;
    if (const auto written = number_of(scaling.factor)) out.values.push_back({*written, &f, scaling.span});
    std::vector<Slot> pending;
    if (out.values.empty()) pending.emplace_back(&f, scaling.factor.param);
    for (std::size_t next = 0; next < pending.size(); ++next) {
        const Slot slot = pending[next];
        const auto before = pending.begin() + static_cast<std::ptrdiff_t>(next);
        if (slot.second == kNone || std::find(pending.begin(), before, slot) != before) continue;
        follow_callers(slot, pending, out);
    }
    if (scaling.divides)
        for (ScaleValue& v : out.values) v.value = 1 / v.value;
    return out;
}

bool has_scalings(const Program& program) {
    return std::ranges::any_of(program.functions(), [](const Function* f) { return !f->scalings.empty(); });
}

bool tests_finite(const Function& f) {
    // What replaces or counts such values asks for them too.
    constexpr std::array<std::string_view, 2> kOthers{"non_finite", "nan_to_num_"};
    return std::ranges::any_of(f.calls, [&](const Call& c) {
        // Gradients and their norms are not fp64; what parsers of numbers ask about is.
        if (!c.args.empty() && c.args[0].dtype == DType::fp64) return false;
        const std::string_view name = leaf(c.name.str());
        if (spells_finite_test(name) || traits_of(c.op).has(Trait::finite_test)) return true;
        return std::ranges::any_of(kOthers, [&](std::string_view test) {
            return name.find(test) != std::string_view::npos || c.op.name() == test;
        });
    });
}

bool tests_finite(const Program& program, Code code) {
    return std::ranges::any_of(program.functions(), [&](const Function* f) {
        const bool on_device = f->kind == FunctionKind::device || f->kind == FunctionKind::kernel ||
                               f->kind == FunctionKind::host_device;
        return (code == Code::any || on_device) && tests_finite(*f);
    });
}

}  // namespace mp::lint
