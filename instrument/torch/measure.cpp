#include "instrument/torch/measure.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "instrument/torch/cuda_device.hpp"
#include "instrument/torch/thread_state.hpp"
#include "runtime/trace/op_stats.hpp"

namespace mp::twin {

// The last result of the layer that runs. Held weakly, so that measuring extends no lifetime.
struct Boundary {
    std::optional<c10::weak_intrusive_ptr<c10::TensorImpl>> real;
    const OpInfo* op = nullptr;
    Site site;
    bool glanced = false;  // on a device: if it turns out to be non-finite, it is measured already
};

static void raise_error(double& largest, const Divergence& d) {
    if (std::isfinite(relative_l2(d))) largest = std::max(largest, relative_l2(d));
}

struct Inputs {
    bool finite = true;
    bool without_nan = true;
    double amax = 0;

    void add(const TensorStats& stats) {
        finite &= stats.nonfinite() == 0;
        without_nan &= stats.nan == 0;
        amax = std::max(amax, stats.amax);
    }
};

// Figures of the inputs of an op whose result may be non-finite, or far from the twin's.
struct LateInputs {
    std::vector<Figure<TensorStats>> stats;
    std::vector<Figure<Divergence>> divergences;
    bool finite_numbers = true;

    Inputs inputs() const {
        Inputs all;
        all.finite = finite_numbers;
        for (const auto& s : stats) all.add(*s);
        return all;
    }
    double error() const {
        double largest = 0;
        for (const auto& d : divergences) raise_error(largest, *d);
        return largest;
    }
};

namespace {

template <typename Visit>
void for_each_input_pair(const Call& call, const Visit& visit) {
    for (std::size_t i = 0; i < call.real.size() && i < call.shadow.size(); ++i)
        if (call.real[i].isTensor() && call.shadow[i].isTensor() && !call.info.arguments[i].write)
            visit(call.real[i].toTensor(), call.shadow[i].toTensor());
    for (const Call::Kept& kept : call.kept) visit(kept.before, kept.twin_before);
}

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

// Whether the errors of all values that go into the result can be asked. A target in place is overwritten by then, so
// it must have been kept.
bool knows_its_inputs(const Call& call) {
    return call.kept.size() == call.written_floats.size() ||
           std::ranges::none_of(call.info.arguments,
                                [](const Argument& a) { return a.write && !a.overwrite; });
}

// Largest relative L2 to the twin among the float inputs; 0 if it is not known.
double input_error(const Call& call) {
    double largest = 0;
    if (!knows_its_inputs(call)) return largest;
    for_each_input_pair(call, [&](const at::Tensor& x, const at::Tensor& y) {
        cpu::TensorView real, twin;
        Divergence d;
        if (view_for_kernels(x, real) && view_for_kernels(y, twin) && cpu::divergence(real, twin, d))
            raise_error(largest, d);
    });
    return largest;
}

// Calls `visit` with each tensor that the op reads.
template <typename Visit>
void for_each_input(const OpInfo& op, const std::vector<IValue>& arguments, const Visit& visit) {
    for (std::size_t i = 0; i < arguments.size(); ++i)
        if (op.arguments[i].tensor && !op.arguments[i].write) for_each_tensor(arguments[i], visit);
}

// An infinity that the caller gives as a number, as to masked_fill(), is no overflow.
bool numbers_are_finite(const std::vector<IValue>& arguments) {
    return std::none_of(arguments.begin(), arguments.end(),
                        [](const IValue& v) { return v.isDouble() && !std::isfinite(v.toDouble()); });
}

Inputs inputs_of(const OpInfo& op, const std::vector<IValue>& arguments) {
    Inputs inputs;
    inputs.finite = numbers_are_finite(arguments);
    for_each_input(op, arguments, [&](const at::Tensor& t) {
        cpu::TensorView view;
        TensorStats stats;
        if (view_for_kernels(t, view) && cpu::statistics(view, stats)) inputs.add(stats);
    });
    return inputs;
}

// Whether this call may have made a non-finite value that is not there on purpose. The twin may have it too: the judge
// knows what became of the losses.
bool is_origin(const OpInfo& op, const TensorStats& stats, const Divergence& cum, bool has_twin) {
    if (places_constants(op)) return has_twin && cum.nonfinite_real > 0;
    if (!has_twin) return stats.nan > 0 || is_arithmetic(op);
    return cum.nonfinite_real > 0 || stats.nan > 0 || is_arithmetic(op) || op.traits.has(Trait::domain);
}

bool comparable(const at::Tensor& a, const at::Tensor& b) {
    return b.defined() && a.sizes() == b.sizes() && !b.is_complex();
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

// The figures of one result. Without a twin, or without an fp32 op on the real inputs, theirs stay empty.
struct Outcome {
    TensorStats stats;
    Divergence cum, loc, prop;
    bool has_twin = false, has_local = false;
    const ExponentHistogram* exponents = nullptr;
    bool is_fp32_op = false;  // see is_fp32_op()
};

// Whether the op itself is the fp32 op on the real inputs, so that all of its error came in: an op of single elements
// whose result is wide. Sums, products and norms are not asked what they make of their inputs' error, nor are
// differences: what is left of nearly equal values is often a small correction of a larger one.
bool is_fp32_op(const OpInfo& op, const Site& site, const at::Tensor& result) {
    return op.is_of_one_element && (site.phase == Phase::forward || site.phase == Phase::data) &&
           !is_low_precision(result.scalar_type());
}

double inherited_by(const Outcome& o) {
    if (!o.has_twin) return 0;
    if (o.has_local) return relative_l2(o.prop);
    return o.is_fp32_op ? relative_l2(o.cum) : 0;
}

bool may_be_origin(const OpInfo& op, const Outcome& o, bool target_was_finite) {
    return target_was_finite && o.stats.nonfinite() > 0 && is_origin(op, o.stats, o.cum, o.has_twin);
}

// What an outcome says together with the op's inputs.
struct Verdict {
    double input_error = 0;
    double amplification = 0;
    std::optional<Inputs> origin;  // the inputs, if the op made the first non-finite value
};

// `inputs_of` and `error_of` measure the op's inputs and are asked only if it matters.
template <typename InputsOf, typename ErrorOf>
Verdict judge(const OpInfo& op, const Outcome& o, bool target_was_finite, const InputsOf& inputs_of,
              const ErrorOf& error_of) {
    Verdict verdict;
    const double inherited = inherited_by(o);
    if (inherited > kLargeError && std::isfinite(inherited)) verdict.input_error = error_of();
    if (verdict.input_error > 0 && o.has_local) verdict.amplification = inherited / verdict.input_error;
    if (!may_be_origin(op, o, target_was_finite)) return verdict;
    const Inputs inputs = inputs_of();
    // A NaN that the twin has too does not come from an overflow. -inf * 0 can make it, as 0 / 0 can.
    const bool shared = o.has_twin && o.stats.nan > 0 && o.cum.nonfinite_real == 0;
    if (inputs.finite || (shared && inputs.without_nan)) verdict.origin = inputs;
    return verdict;
}

void put_outcome(trace::OpRecord& r, std::uint64_t ordinal, const Outcome& o, const Verdict& verdict,
                 std::string source = {}) {
    if (!source.empty() && r.origins == 0) r.source = std::move(source);
    ++r.calls;
    trace::add_result(r, o.stats);
    if (o.exponents) r.exponents.add(0, o.exponents->bins);
    if (o.has_twin) put_total(r, o.cum);
    if (o.has_local) put_local(r, o.loc, o.prop);
    r.input_error = std::max(r.input_error, verdict.input_error);
    r.amplification = std::max(r.amplification, verdict.amplification);
    if (verdict.origin) put_origin(r, ordinal, *verdict.origin);
}

// The place of a call that may be a finding's: a layer, or the program outside of layers, may run an op at several
// places.
std::string source_of_suspect(Parts& parts, const Site& site, const OpInfo& op, at::ScalarType dtype,
                              const Outcome& o, const Verdict& verdict) {
    constexpr double kMoreThanOneRounding = 1.2;  // floors; few calls have more
    if (site.phase == Phase::backward) return {};
    if (verdict.origin) return source_of(site);
    const double floors = o.has_local ? floor_ratio(relative_l2(o.loc), dtype_of(dtype)) : 0;
    return floors > kMoreThanOneRounding ? parts.sources.of_worst(site, op, dtype, floors) : std::string();
}

bool measures_exponents(const Ledger& ledger, const at::Tensor& t) {
    return ledger.sampled() && is_low_precision(t.scalar_type());
}

// Without a twin: an op that makes a non-finite result from finite inputs is an origin, unless it places constants.
template <typename InputsOf>
Verdict judge_watched(const OpInfo& op, const TensorStats& stats, bool target_was_finite,
                      const InputsOf& inputs_of) {
    if (stats.nonfinite() == 0 || !target_was_finite || places_constants(op) ||
        !is_origin(op, stats, {}, false))
        return {};
    const Inputs inputs = inputs_of();
    return inputs.finite ? Verdict{0, 0, inputs} : Verdict{};
}

// Whether cuBLAS may round fp32 inputs to TF32, as torch's products ask it. Since torch 2.9 the older question refuses
// settings that were made both ways.
template <class C, class P, class B, class O>
bool is_tf32(P (C::*precision)(B, O) const, const C& context) {
    if constexpr (std::is_enum_v<P>)
        return (context.*precision)(B{1}, O{3}) == P{2};  // Float32Backend::CUDA, Float32Op::MATMUL, TF32
    else
        return (context.*precision)("cuda", "matmul") == "tf32";
}
template <class C = at::Context>
bool products_allow_tf32(const C& context = at::globalContext()) {
    if constexpr (requires { &C::float32Precision; })
        return is_tf32(&C::float32Precision, context);
    else
        return context.allowTF32CuBLAS();
}

// Whether a product of cuBLAS rounded its fp32 inputs to TF32. Of convolutions that is not known: the library that runs
// them chooses.
bool rounds_to_tf32(const OpInfo& op, const at::Tensor& result) {
    static constexpr std::array<std::string_view, 4> kProducts = {"mm", "bmm", "addmm", "baddbmm"};
    if (result.scalar_type() != at::kFloat || std::ranges::find(kProducts, op.base) == kProducts.end())
        return false;
    static const char* const override = std::getenv("NVIDIA_TF32_OVERRIDE");
    if (override && std::string_view(override) == "0") return false;
    try {
        return products_allow_tf32() && has_tf32(result.device());
    } catch (const std::exception&) {
        return false;  // torch refuses settings that contradict each other
    }
}

// Figures of a device that are not there yet.
struct LateOutcome {
    Figure<TensorStats> stats;
    Figure<Divergence> cum, loc, prop;
    Figure<ExponentHistogram> exponents;

    Outcome outcome() const {
        Outcome o{*stats, {}, {}, {}, cum != nullptr, loc != nullptr, exponents.get()};
        if (cum) o.cum = *cum;
        if (loc) o.loc = *loc;
        if (prop) o.prop = *prop;
        return o;
    }
};

// Makes the entry now, because only now the place in the program is known. `fill` gets it with the figures of the step.
template <typename Fill>
void fill_later(Parts& parts, const Site& site, const OpInfo& op, at::ScalarType dtype, Fill fill) {
    parts.ledger.add(site, op, dtype, [](trace::OpRecord&) {});
    parts.late.then([key = Ledger::key_of(site, op, dtype), fill = std::move(fill)](LateStep& step) {
        if (const auto entry = step.ops.find(key); entry != step.ops.end()) fill(entry->second);
    });
}

std::shared_ptr<const LateInputs> measure_inputs_late(Late& late, const OpInfo& op,
                                                      const std::vector<IValue>& arguments) {
    auto inputs = std::make_shared<LateInputs>();
    inputs->finite_numbers = numbers_are_finite(arguments);
    for_each_input(op, arguments, [&](const at::Tensor& t) {
        if (auto s = late.serves(t) ? late.input_statistics(t) : nullptr)
            inputs->stats.push_back(std::move(s));
    });
    return inputs;
}

// A call with its twin has the inputs' errors too. One measurement serves all results of the call.
std::shared_ptr<const LateInputs> measure_inputs_late(Late& late, const OpInfo& op, const Call& call,
                                                      bool errors) {
    if (call.late_inputs) return call.late_inputs;
    auto inputs = std::make_shared<LateInputs>(*measure_inputs_late(late, op, call.real));
    if (errors && knows_its_inputs(call))
        for_each_input_pair(call, [&](const at::Tensor& x, const at::Tensor& y) {
            if (auto d = late.serves(x) ? late.divergence(x, y) : nullptr)
                inputs->divergences.push_back(std::move(d));
        });
    return call.late_inputs = std::move(inputs);
}

LateOutcome measure_late(Late& late, const Measured& m, bool exponents) {
    LateOutcome o;
    o.stats = late.statistics(m.real, exponents ? &o.exponents : nullptr);
    const bool has_twin = comparable(m.real, m.twin), has_local = comparable(m.real, m.local);
    if (has_twin) o.cum = late.divergence(m.real, m.twin);
    if (has_local) o.loc = late.divergence(m.real, m.local);
    if (has_local && has_twin) o.prop = late.divergence(m.local, m.twin);
    return o;
}

// `glance`: fills the entry only if the result turns out to be non-finite.
void measure_result_late(Parts& parts, const Site& site, const OpInfo& op, const Call& call,
                         const Measured& m, bool glance) {
    Late& late = parts.late;
    const LateOutcome figures = measure_late(late, m, !glance && measures_exponents(parts.ledger, m.real));
    if (!figures.stats) return;
    if (!op.writes) late.remember(m.real, figures.stats);
    const auto inputs = measure_inputs_late(late, op, call, figures.prop != nullptr);
    fill_later(parts, site, op, m.real.scalar_type(),
               [figures, inputs, glance, &op, ordinal = site.ordinal, targets = call.late_targets,
                finite = call.target_was_finite, tf32 = rounds_to_tf32(op, m.real)](trace::OpRecord& r) {
                   if (glance && figures.stats->nonfinite() == 0) return;
                   bool target_was_finite = finite;
                   for (const auto& target : targets) target_was_finite &= target->nonfinite() == 0;
                   const Outcome o = figures.outcome();
                   r.tf32 += tf32;
                   put_outcome(r, ordinal, o,
                               judge(
                                   op, o, target_was_finite, [&] { return inputs->inputs(); },
                                   [&] { return inputs->error(); }));
               });
}

}  // namespace

void measure_result(Parts& parts, const Site& site, const OpInfo& op, const Call& call, const Measured& m) {
    if (parts.late.serves(m.real)) return measure_result_late(parts, site, op, call, m, false);
    cpu::TensorView real, twin, local;
    if (m.real.numel() == 0 || !view_for_kernels(m.real, real)) return;
    Outcome o;
    o.has_twin = comparable(m.real, m.twin) && view_for_kernels(m.twin, twin);
    o.has_local = comparable(m.real, m.local) && view_for_kernels(m.local, local);
    std::optional<ExponentHistogram> exponents;
    if (measures_exponents(parts.ledger, m.real)) o.exponents = &exponents.emplace();
    ExponentHistogram* const bins = exponents ? &*exponents : nullptr;
    if (o.has_twin)
        cpu::statistics_and_divergence(real, twin, o.stats, o.cum, bins);
    else
        cpu::statistics(real, o.stats, bins);
    if (o.has_local) cpu::divergence(real, local, o.loc);
    if (o.has_local && o.has_twin) cpu::divergence(local, twin, o.prop);
    o.is_fp32_op = is_fp32_op(op, site, m.real);
    const Verdict verdict = judge(
        op, o, call.target_was_finite, [&] { return inputs_of(op, call.real); },
        [&] { return input_error(call); });
    if (!o.has_local && verdict.input_error > 0) {
        o.has_local = cpu::divergence(real, real, o.loc);
        o.prop = o.cum;
    }
    std::string source = source_of_suspect(parts, site, op, m.real.scalar_type(), o, verdict);
    parts.ledger.add(site, op, m.real.scalar_type(), [&](trace::OpRecord& r) {
        put_outcome(r, site.ordinal, o, verdict, std::move(source));
    });
}

void glance_at_result(Parts& parts, const Site& site, const OpInfo& op, const Call& call,
                      const at::Tensor& real, const at::Tensor& twin) {
    const bool may_end_here = may_leave_format(op, real.scalar_type()) || has_a_domain(op, site.phase);
    const bool late = may_end_here && parts.late.serves(real);
    const bool measured = may_end_here && !late && any_nonfinite(real);
    if (late) measure_result_late(parts, site, op, call, {real, twin, {}}, true);
    if (measured) measure_result(parts, site, op, call, {real, twin, {}});
    if (site.phase != Phase::forward || site.layer == 0) return;
    Boundary*& boundary = thread_state().boundary;
    if (!boundary) boundary = new Boundary();
    *boundary = {};
    if (!measured)
        *boundary = {c10::weak_intrusive_ptr<c10::TensorImpl>(real.getIntrusivePtr()), &op, site, late};
}

bool targets_are_finite(Parts& parts, const OpInfo& op, const std::vector<IValue>& arguments) {
    const TwinScope scope;
    bool finite = true;
    for (std::size_t i = 0; i < arguments.size() && finite; ++i)
        if (op.arguments[i].write && !op.arguments[i].overwrite)
            for_each_tensor(arguments[i], [&](const at::Tensor& t) {
                if (has_plain_memory(t) && carries_floats(t) && !parts.late.serves(t))
                    finite &= !any_nonfinite(t);
            });
    return finite;
}

void watch_results(Parts& parts, const Site& site, const OpInfo& op, const std::vector<IValue>& arguments,
                   bool target_was_finite, const Stack& stack, std::size_t results) {
    const TwinScope scope;
    std::shared_ptr<const LateInputs> inputs;
    const auto watch_late = [&](const at::Tensor& t) {
        const Figure<TensorStats> stats = parts.late.statistics(t);
        if (!stats) return;
        if (!op.writes) parts.late.remember(t, stats);
        if (!inputs) inputs = measure_inputs_late(parts.late, op, arguments);
        fill_later(parts, site, op, t.scalar_type(),
                   [&op, ordinal = site.ordinal, stats, inputs, target_was_finite,
                    tf32 = rounds_to_tf32(op, t)](trace::OpRecord& r) {
                       r.tf32 += tf32;
                       put_outcome(
                           r, ordinal, {*stats, {}, {}, {}, false, false, nullptr},
                           judge_watched(op, *stats, target_was_finite, [&] { return inputs->inputs(); }));
                   });
    };
    const auto watch = [&](const at::Tensor& t) {
        if (parts.late.serves(t)) return watch_late(t);
        cpu::TensorView view;
        TensorStats stats;
        if (t.numel() == 0 || !view_for_kernels(t, view) || !cpu::statistics(view, stats)) return;
        const Verdict verdict =
            judge_watched(op, stats, target_was_finite, [&] { return inputs_of(op, arguments); });
        std::string source = source_of_suspect(parts, site, op, t.scalar_type(), {}, verdict);
        parts.ledger.add(site, op, t.scalar_type(), [&](trace::OpRecord& r) {
            put_outcome(r, site.ordinal, {stats, {}, {}, {}, false, false, nullptr}, verdict,
                        std::move(source));
        });
    };
    for (std::size_t i = 0; i < results; ++i) for_each_tensor(stack[stack.size() - results + i], watch);
}

namespace {

void measure_boundary(Parts& parts, const Boundary& boundary, const at::Tensor& real,
                      const at::Tensor& twin) {
    const auto put = [](trace::OpRecord& r, const TensorStats& stats, const Divergence& cum) {
        ++r.calls;
        trace::add_result(r, stats);
        put_total(r, cum);
    };
    const at::ScalarType dtype = real.scalar_type();
    if (parts.late.serves(real)) {
        const LateOutcome figures = measure_late(parts.late, {real, twin, {}}, false);
        if (!figures.stats || !figures.cum) return;
        return fill_later(parts, boundary.site, *boundary.op, dtype,
                          [figures, put, glanced = boundary.glanced](trace::OpRecord& r) {
                              if (!glanced || figures.stats->nonfinite() == 0)
                                  put(r, *figures.stats, *figures.cum);
                          });
    }
    cpu::TensorView view, shadow;
    if (!view_for_kernels(real, view) || !view_for_kernels(twin, shadow)) return;
    TensorStats stats;
    Divergence cum;
    if (!cpu::statistics_and_divergence(view, shadow, stats, cum)) return;
    parts.ledger.add(boundary.site, *boundary.op, dtype, [&](trace::OpRecord& r) { put(r, stats, cum); });
}

}  // namespace

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
        measure_boundary(parts, boundary, real, found.shadow);
    } catch (const std::exception& e) {
        parts.faults.measuring("layer boundary", e.what());
    }
}

namespace {

void put_absorption(trace::OpRecord& r, const cpu::Stagnation& still) {
    r.added += still.meant_to_move;
    r.absorbed += still.unmoved;
}

}  // namespace

void measure_absorption(Parts& parts, const Site& site, const OpInfo& op, const at::Tensor& before,
                        const at::Tensor& after, const at::Tensor& twin_before,
                        const at::Tensor& twin_after) {
    cpu::TensorView views[4];
    const at::Tensor* const tensors[] = {&before, &after, &twin_before, &twin_after};
    for (const at::Tensor* tensor : tensors)
        if (!comparable(after, *tensor)) return;
    const at::ScalarType dtype = after.scalar_type();
    if (parts.late.serves(after)) {
        const Figure<cpu::Stagnation> still = parts.late.stagnation(before, after, twin_before, twin_after);
        if (!still) return;
        return fill_later(parts, site, op, dtype, [still](trace::OpRecord& r) { put_absorption(r, *still); });
    }
    for (int i = 0; i < 4; ++i)
        if (!view_for_kernels(*tensors[i], views[i])) return;
    cpu::Stagnation still;
    if (!cpu::stagnation(views[0], views[1], views[2], views[3], still) || still.meant_to_move == 0) return;
    parts.ledger.add(site, op, dtype, [&](trace::OpRecord& r) { put_absorption(r, still); });
}

void watch_counters(Parts& parts, const Site& site, const OpInfo& op,
                    const std::vector<Counters::Counter>& counters) {
    for (const auto& [tensor, before] : counters) {
        const std::string after = bytes_in(tensor);
        const std::size_t size = tensor.element_size();
        cpu::Stagnation still;
        for (std::size_t at = 0; at < after.size(); at += size) {
            ++still.meant_to_move;
            still.unmoved += after.compare(at, size, before, at, size) == 0;
        }
        parts.ledger.add(site, op, tensor.scalar_type(),
                         [&](trace::OpRecord& r) { put_absorption(r, still); });
    }
}

void measure_sum(Parts& parts, const Site& site, const OpInfo& op, const at::Tensor& left,
                 const at::Tensor& right, const at::Tensor& result) {
    const auto in_fp32 = [&](const at::Tensor& t) { return t.to(at::kFloat).expand(result.sizes()); };
    const at::Tensor zero = at::zeros({}, result.options().dtype(at::kFloat)).expand(result.sizes());
    if (!parts.late.serves(result)) {
        cpu::TensorView views[2];
        TensorStats stats[2];
        if (!view_for_kernels(left, views[0]) || !view_for_kernels(right, views[1])) return;
        cpu::statistics(views[0], stats[0]);
        cpu::statistics(views[1], stats[1]);
        const bool swapped = stats[1].amax > stats[0].amax;
        const at::Tensor &running = swapped ? right : left, &addend = swapped ? left : right;
        return measure_absorption(parts, site, op, running.expand(result.sizes()), result, zero,
                                  in_fp32(addend));
    }
    // Which one is the running sum shows later, so both are measured.
    const Figure<TensorStats> stats[] = {parts.late.statistics(left), parts.late.statistics(right)};
    const Figure<cpu::Stagnation> still[] = {
        parts.late.stagnation(left.expand(result.sizes()), result, zero, in_fp32(right)),
        parts.late.stagnation(right.expand(result.sizes()), result, zero, in_fp32(left))};
    if (!stats[0] || !stats[1] || !still[0] || !still[1]) return;
    fill_later(parts, site, op, result.scalar_type(),
               [left = stats[0], right = stats[1], first = still[0], second = still[1]](trace::OpRecord& r) {
                   put_absorption(r, right->amax > left->amax ? *second : *first);
               });
}

}  // namespace mp::twin
