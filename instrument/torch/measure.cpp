#include "instrument/torch/measure.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <utility>

#include "instrument/torch/thread_state.hpp"

namespace mp::twin {

// The last result of the layer that runs. Held weakly, so that measuring extends no lifetime.
struct Boundary {
    std::optional<c10::weak_intrusive_ptr<c10::TensorImpl>> real;
    const OpInfo* op = nullptr;
    Site site;
};

namespace {

constexpr double kLargeError = 0.1;  // inherited errors from here on are traced to the inputs

// Whether the op writes constants or moves values. An infinity in its result is intended.
bool places_constants(const OpInfo& op) {
    return op.moves_bytes || op.base == "_to_copy" || op.traits.has(Trait::writes_constants);
}

// Whether the op can make a non-finite result from finite inputs. Moving values cannot, nor can a cast to a format
// with the range of fp32.
bool may_leave_format(const OpInfo& op, at::ScalarType dtype) {
    if (!is_low_precision(dtype)) return false;
    if (!places_constants(op)) return true;
    return dtype != at::kBFloat16 && (op.base == "copy" || op.base == "_to_copy");
}

// Ops with a domain are rare in forward and backward, but an optimizer runs them for every tensor.
bool has_a_domain(const OpInfo& op, Phase phase) {
    return (phase == Phase::forward || phase == Phase::backward) && op.traits.has(Trait::domain);
}

bool is_arithmetic(const OpInfo& op) { return op.traits.has(Trait::arithmetic); }

// Largest relative L2 to the twin among the float inputs.
double input_error(const Call& call) {
    double largest = 0;
    for (std::size_t i = 0; i < call.real.size() && i < call.shadow.size(); ++i) {
        if (!call.real[i].isTensor() || !call.shadow[i].isTensor() || call.info.arguments[i].write) continue;
        cpu::TensorView real, twin;
        Divergence d;
        if (view_for_kernels(call.real[i].toTensor(), real) &&
            view_for_kernels(call.shadow[i].toTensor(), twin) && cpu::divergence(real, twin, d) &&
            std::isfinite(relative_l2(d)))
            largest = std::max(largest, relative_l2(d));
    }
    return largest;
}

struct Inputs {
    bool finite = true;
    bool without_nan = true;
    double amax = 0;
};

Inputs inputs_of(const OpInfo& op, const std::vector<IValue>& arguments) {
    Inputs inputs;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        if (!op.arguments[i].tensor || op.arguments[i].write) continue;
        for_each_tensor(arguments[i], [&](const at::Tensor& t) {
            cpu::TensorView view;
            TensorStats stats;
            if (!view_for_kernels(t, view) || !cpu::statistics(view, stats)) return;
            inputs.finite &= stats.nonfinite() == 0;
            inputs.without_nan &= stats.nan == 0;
            inputs.amax = std::max(inputs.amax, stats.amax);
        });
    }
    return inputs;
}

// Whether this call made a non-finite value from finite ones and fp32 would not have made it.
bool is_origin(const OpInfo& op, const TensorStats& stats, const Divergence& cum, bool has_twin) {
    if (places_constants(op)) return has_twin && cum.nonfinite_real > 0;
    if (!has_twin) return stats.nan > 0 || is_arithmetic(op);
    return cum.nonfinite_real > 0 || stats.nan > 0 || is_arithmetic(op);
}

bool comparable(const at::Tensor& a, const at::Tensor& b) {
    return b.defined() && a.sizes() == b.sizes() && !b.is_complex();
}

void put_stats(trace::OpRecord& r, const TensorStats& s) {
    ++r.calls;
    r.elements += s.count;
    r.nan += s.nan;
    r.pos_inf += s.pos_inf;
    r.neg_inf += s.neg_inf;
    r.zeros += s.zero;
    r.subnormals += s.subnormal;
    r.amax = std::max(r.amax, s.amax);
    if (s.amin > 0) r.amin = r.amin > 0 ? std::min(r.amin, s.amin) : s.amin;
}

void put_total(trace::OpRecord& r, const Divergence& d) {
    r.compared += d.compared;
    r.nonfinite_real += d.nonfinite_real;
    r.nonfinite_twin += d.nonfinite_twin;
    r.twin_amax = std::max(r.twin_amax, d.twin_amax);
    r.error_squares += d.ee;
    r.twin_squares += d.yy;
    r.flushed_abs += d.flushed_abs;
    r.twin_abs += d.abs_y;
}

void put_local(trace::OpRecord& r, const Divergence& loc, const Divergence& prop) {
    r.loc_compared += loc.compared;
    r.loc_error_squares += loc.ee;
    r.loc_squares += loc.yy;
    r.loc_dot += loc.xy - loc.yy;
    const double relative = relative_l2(loc);
    if (std::isfinite(relative)) r.loc_worst = std::max(r.loc_worst, relative);
    r.loc_nonfinite += loc.nonfinite_real;
    r.prop_error_squares += prop.ee;
}

void put_origin(trace::OpRecord& r, std::uint64_t ordinal, const Inputs& inputs) {
    if (r.origins++ > 0) return;
    r.first_origin = ordinal;
    r.input_amax = inputs.amax;
}

}  // namespace

void measure_result(Ledger& ledger, const Site& site, const OpInfo& op, const Call& call, const Measured& m) {
    cpu::TensorView real, twin, local;
    if (m.real.numel() == 0 || !view_for_kernels(m.real, real)) return;
    const bool has_twin = comparable(m.real, m.twin) && view_for_kernels(m.twin, twin);
    const bool has_local = comparable(m.real, m.local) && view_for_kernels(m.local, local);
    TensorStats stats;
    Divergence cum, loc, prop;
    std::optional<ExponentHistogram> exponents;
    if (ledger.sampled() && is_low_precision(m.real.scalar_type())) exponents.emplace();
    if (has_twin)
        cpu::statistics_and_divergence(real, twin, stats, cum, exponents ? &*exponents : nullptr);
    else
        cpu::statistics(real, stats, exponents ? &*exponents : nullptr);
    if (has_local) cpu::divergence(real, local, loc);
    if (has_local && has_twin) cpu::divergence(local, twin, prop);
    Inputs inputs;
    bool origin = call.target_was_finite && stats.nonfinite() > 0 && is_origin(op, stats, cum, has_twin);
    if (origin) {
        inputs = inputs_of(op, call.real);
        // A NaN that the twin has too does not come from an overflow. -inf * 0 can make it, as 0 / 0 can.
        const bool shared = has_twin && stats.nan > 0 && cum.nonfinite_real == 0;
        origin = inputs.finite || (shared && inputs.without_nan);
    }
    const double inherited = has_local && has_twin ? relative_l2(prop) : 0;
    const double from = inherited > kLargeError && std::isfinite(inherited) ? input_error(call) : 0;
    ledger.add(site, op, m.real.scalar_type(), [&](trace::OpRecord& r) {
        put_stats(r, stats);
        if (exponents) r.exponents.add(0, exponents->bins);
        if (has_twin) put_total(r, cum);
        if (has_local) put_local(r, loc, prop);
        r.input_error = std::max(r.input_error, from);
        if (origin) put_origin(r, site.ordinal, inputs);
    });
}

void glance_at_result(Ledger& ledger, const Site& site, const OpInfo& op, const Call& call,
                      const at::Tensor& real, const at::Tensor& twin) {
    const bool may_end_here = may_leave_format(op, real.scalar_type()) || has_a_domain(op, site.phase);
    if (may_end_here && any_nonfinite(real)) return measure_result(ledger, site, op, call, {real, twin, {}});
    if (site.phase != Phase::forward || site.layer == 0) return;
    Boundary*& boundary = thread_state().boundary;
    if (!boundary) boundary = new Boundary();
    *boundary = {c10::weak_intrusive_ptr<c10::TensorImpl>(real.getIntrusivePtr()), &op, site};
}

void watch_results(Ledger& ledger, const Site& site, const OpInfo& op, const std::vector<IValue>& arguments,
                   const Stack& stack, std::size_t results) {
    const TwinScope scope;
    const auto watch = [&](const at::Tensor& t) {
        cpu::TensorView view;
        TensorStats stats;
        if (t.numel() == 0 || !view_for_kernels(t, view) || !cpu::statistics(view, stats)) return;
        Inputs inputs;
        bool origin = stats.nonfinite() > 0 && !places_constants(op);
        if (origin) {
            inputs = inputs_of(op, arguments);
            origin = inputs.finite && is_origin(op, stats, {}, false);
        }
        ledger.add(site, op, t.scalar_type(), [&](trace::OpRecord& r) {
            put_stats(r, stats);
            if (origin) put_origin(r, site.ordinal, inputs);
        });
    };
    for (std::size_t i = 0; i < results; ++i) for_each_tensor(stack[stack.size() - results + i], watch);
}

void layer_ends(Parts& parts, LayerId layer) noexcept {
    Boundary* const last = thread_state().boundary;
    if (!parts.control.twin_active() || !last || !last->real) return;
    try {
        const Boundary boundary = std::exchange(*last, {});
        auto impl = boundary.real->lock();
        if (boundary.site.layer != layer || !impl) return;
        const TwinScope scope;
        const at::Tensor real(std::move(impl));
        if (!has_plain_memory(real) || !carries_floats(real)) return;
        const ShadowMap::Lookup found = parts.shadows.find(real);
        if (!found.shadow.defined()) return;
        cpu::TensorView view, shadow;
        if (!view_for_kernels(real, view) || !view_for_kernels(found.shadow, shadow)) return;
        TensorStats stats;
        Divergence cum;
        if (!cpu::statistics_and_divergence(view, shadow, stats, cum)) return;
        parts.ledger.add(boundary.site, *boundary.op, real.scalar_type(), [&](trace::OpRecord& r) {
            put_stats(r, stats);
            put_total(r, cum);
        });
    } catch (const std::exception& e) {
        parts.faults.measuring("layer boundary", e.what());
    }
}

void measure_absorption(Ledger& ledger, const Site& site, const OpInfo& op, const at::Tensor& before,
                        const at::Tensor& after, const at::Tensor& twin_before,
                        const at::Tensor& twin_after) {
    cpu::TensorView views[4];
    const at::Tensor* const tensors[] = {&before, &after, &twin_before, &twin_after};
    for (int i = 0; i < 4; ++i)
        if (!comparable(after, *tensors[i]) || !view_for_kernels(*tensors[i], views[i])) return;
    cpu::Standstill still;
    if (!cpu::standstill(views[0], views[1], views[2], views[3], still) || still.meant_to_move == 0) return;
    ledger.add(site, op, after.scalar_type(), [&](trace::OpRecord& r) {
        r.added += still.meant_to_move;
        r.absorbed += still.unmoved;
    });
}

}  // namespace mp::twin
