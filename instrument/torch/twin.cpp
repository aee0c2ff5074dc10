#include "instrument/torch/twin.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "instrument/torch/fp32_kernels.hpp"
#include "instrument/torch/sample.hpp"
#include "instrument/torch/tensors.hpp"
#include "instrument/torch/test_hooks.hpp"
#include "instrument/torch/thread_state.hpp"

namespace mp::twin {
namespace {

// Whether every float result is memory of an argument and nothing was written. Such an op makes a view that its schema
// does not declare (_unsafe_view, _reshape_alias).
bool only_views(const Call& call, const Stack& stack, std::size_t results) {
    bool all = results > 0;
    for (std::size_t i = 0; i < results; ++i)
        for_each_tensor(stack[stack.size() - results + i],
                        [&](const at::Tensor& t) { all &= shares_memory(call, t); });
    return all;
}

// Later ops read the copy in place of the weight. Called outside a TwinScope.
bool is_kept_by_autocast(const Call& call) {
    return call.info.base == "copy" && !rule_disabled("cast_source") &&
           autocast_keeps(call.real[0].toTensor(), call.real[1].toTensor());
}

// A cast, which an fp32 run does not make, lays the elements out otherwise than its source: the copy of a slice lies
// together. Torch may then take another op for it. linear() of a slice is mm and add, of the copy addmm, and their
// gradients of the bias are added in another order.
bool casts_to_another_layout(const Call& call) {
    if (call.info.base != "copy") return false;
    const at::Tensor& copy = call.real[0].toTensor();
    const at::Tensor& source = call.real[1].toTensor();
    if (!has_plain_memory(copy) || !has_plain_memory(source) || !carries_floats(copy) ||
        !carries_floats(source))
        return false;
    return is_low_precision(copy.scalar_type()) != is_low_precision(source.scalar_type()) &&
           copy.sizes() == source.sizes() && has_other_order(source, copy);
}

// Whether single values of several dtypes are joined. So does clip_grad_norm_, which since torch 2.0 sorts the norms of
// the gradients by dtype; in an fp32 run they have the order of the parameters.
bool joins_dtypes(const Call& call) {
#if MP_TORCH_AT_LEAST(2, 0)
    if (call.info.base != "stack" || thread_state().site.phase != Phase::optimizer) return false;
    bool single = true, several = false, low = false;
    std::optional<at::ScalarType> first;
    for_each_tensor(call.real[0], [&](const at::Tensor& t) {
        single &= t.numel() == 1;
        several |= t.scalar_type() != first.value_or(t.scalar_type());
        low |= is_low_precision(t.scalar_type());
        first = t.scalar_type();
    });
    return single && several && low;
#else
    (void)call;
    return false;
#endif
}

// Whether a device had no memory for the twin: the program would be the next to find none. A twin without a history
// frees its memory after each op.
bool ends_the_twin(const Call& call, const std::exception& e) {
    return !call.local && dynamic_cast<const c10::OutOfMemoryError*>(&e) != nullptr;
}

// Bytes that only the op's own kernels can read. Those of 16 bits and of fp32 have nothing in common.
bool is_opaque(const Call& call, const at::Tensor& t) {
    return call.info.traits.has(Trait::own_integers) && has_plain_memory(t) && t.scalar_type() == at::kByte;
}

// The first line of a torch error: the rest is a C++ stack trace.
std::string first_line(const std::exception& e) {
    const std::string_view what = e.what();
    return std::string(what.substr(0, std::min<std::size_t>(what.find('\n'), 200)));
}

}  // namespace

// New results, and arguments that the op has written.
template <typename Visit>
void Twin::for_each_result(const Call& call, const Visit& visit) {
    const std::size_t count = call.op.schema().returns().size();
    for (std::size_t i = 0; i < count; ++i)
        for_each_tensor((*call.stack)[call.stack->size() - count + i], [&](const at::Tensor& t) {
            if (!shares_memory(call, t)) visit(t);
        });
    for (std::size_t i = 0; i < call.real.size(); ++i)
        if (call.info.arguments[i].write) for_each_tensor(call.real[i], visit);
}

// Errors of the real op belong to the program and pass through. After our own error the twin loses this op.
void Twin::run(const OpInfo& info, const c10::OperatorHandle& op, c10::DispatchKeySet below, Stack* stack) {
    Call call(info, op, below, stack);
    try {
        take_arguments(call);
        follow(call);
    } catch (const GivenUp&) {
        return;
    } catch (const std::exception& e) {
        if (call.state == Call::Real::running) throw;
        if (ends_the_twin(call, e)) {
            parts_.shortage.give_up();
            if (call.state == Call::Real::pending) run_real(call);
            return;
        }
        parts_.faults.internal(info.name, first_line(e));
        if (call.state == Call::Real::pending) run_real(call);
        lose_results(call);
    }
}

// The op runs only when the program replays its CUDA graph, and replays are not seen.
void Twin::leave(const OpInfo& info, const c10::OperatorHandle& op, c10::DispatchKeySet below, Stack* stack) {
    Call call(info, op, below, stack);
    try {
        take_arguments(call);
        run_real(call);
        if (info.is_view || !parts_.control.twin_active() || parts_.control.local()) return;
        for_each_result(call, [&](const at::Tensor& t) {
            if (has_plain_memory(t)) parts_.shadows.leave(t);
        });
        parts_.coverage.unshadowed(info.name, "recorded in a CUDA graph, whose replays are not seen",
                                   result_bytes(call));
    } catch (const GivenUp&) {
        return;
    } catch (const std::exception& e) {
        if (call.state != Call::Real::done) throw;
        parts_.faults.internal(info.name, first_line(e));
    }
}

void Twin::follow(Call& call) {
    switch (call.info.rule) {
        case Rule::generic:
            return generic(call);
        case Rule::sampler:
            return sampler(call);
        case Rule::random:
            return random(call);
        case Rule::dropout:
            return dropout(call);
        case Rule::unscale:
            return unscale(call);
        case Rule::follow_real:
            return follow_real(call);
        case Rule::by_index:
            return by_index(call);
        case Rule::no_shadow:
            return no_shadow(call);
        case Rule::collective:
            return collective(call);
        case Rule::not_observed:
            return not_observed(call);
        case Rule::foreign:
            return foreign(call);
        case Rule::leak:
            return leak(call);
    }
}

// ---- Steps that every rule is made of. ------------------------------------------------------------

void Twin::take_arguments(Call& call) {
    const std::size_t count = call.info.arguments.size();
    call.real.assign(call.stack->end() - static_cast<std::ptrdiff_t>(count), call.stack->end());
    call.local = parts_.control.local();
}

void Twin::run_real(Call& call) {
    const Internal internal;
    const std::size_t below = call.stack->size() - call.real.size();
    call.state = Call::Real::running;
    try {
        call.op.redispatchBoxed(call.below, call.stack);
        call.state = Call::Real::done;
        return;
    } catch (const c10::OutOfMemoryError&) {
        if (!parts_.shortage.give_up() || !only_makes_results(call.info, call.op, call.real)) throw;
    }
    put_back(*call.stack, below, call.real);
    call.op.redispatchBoxed(call.below, call.stack);
    call.state = Call::Real::done;
    throw GivenUp();
}

bool Twin::run_shadow(Call& call, Stack& results) {
    try {
        if (rule_disabled(call.info.base)) throw std::runtime_error("switched off by a test");
        const TwinScope scope;
        if (has_own_fp32_kernel(call.info)) {
            results = run_in_fp32(call);
        } else {
            results.assign(call.shadow.begin(), call.shadow.end());
            call.op.redispatchBoxed(call.below,
                                    &results);  // the shadows are on the device of the real tensors
        }
        return true;
    } catch (const std::exception& e) {
        if (ends_the_twin(call, e)) throw;
        parts_.coverage.failed(call.info.name, first_line(e), result_bytes(call));
        lose_results(call);
        return false;
    }
}

void Twin::bind_results(Call& call, const Stack& results) {
    const TwinScope scope;
    const std::size_t count = results.size();
    for (std::size_t i = 0; i < count; ++i)
        bind_result(call, (*call.stack)[call.stack->size() - count + i], results[i]);
}

// In-place and out= arguments: most need nothing, because the twin's op wrote the shadow's own memory.
void Twin::after_writes(Call& call) {
    const TwinScope scope;
    for (const Call::Pair& pair : call.written_floats) {
        if (pair.real.storage().nbytes() == 0) continue;
        if (parts_.shadows.written(pair.real) && !pair.apart) continue;
        // An out= argument that was resized has different memory from the one its shadow was made for.
        if (pair.real.sizes() == pair.shadow.sizes())
            parts_.shadows.bind(pair.real, pair.shadow);
        else
            parts_.shadows.lose(pair.real);
    }
    for (const Call::Pair& pair : call.written_integers) keep_integers(call, pair.real, pair.shadow);
}

void Twin::lose_results(Call& call) {
    const TwinScope scope;
    for_each_result(call, [&](const at::Tensor& t) {
        if (has_plain_memory(t) && carries_floats(t)) parts_.shadows.lose(t);
        if (is_opaque(call, t) && !shares_memory(call, t)) parts_.shadows.bind_others(t, {}, call.info);
        if (has_sparse_floats(t) && !shares_memory(call, t._values())) parts_.shadows.lose(t._values());
    });
}

std::uint64_t Twin::result_bytes(const Call& call) const {
    std::uint64_t bytes = 0;
    const std::size_t count = call.op.schema().returns().size();
    for (std::size_t i = 0; i < count; ++i)
        for_each_tensor((*call.stack)[call.stack->size() - count + i], [&](const at::Tensor& t) {
            if (carries_floats(t)) bytes += bytes_of(t);
        });
    if (count == 0)
        for (const Call::Pair& pair : call.written_floats) bytes += bytes_of(pair.real);
    return bytes;
}

// ---- Results. ---------------------------------------------------------------------------------------

void Twin::bind_result(Call& call, const IValue& real, const IValue& shadow) {
    if (real.isTensor() && shadow.isTensor()) return bind_tensor(call, real.toTensor(), shadow.toTensor());
    if (!real.isList() || !shadow.isList()) return;
    const c10::List<IValue> reals = real.toList();
    const c10::List<IValue> shadows = shadow.toList();
    for (std::size_t i = 0; i < reals.size() && i < shadows.size(); ++i)
        bind_result(call, reals.get(i), shadows.get(i));
}

void Twin::bind_tensor(Call& call, const at::Tensor& real, const at::Tensor& shadow) {
    if (has_sparse_floats(real) && shadow.defined() && shadow.is_sparse())
        return bind_tensor(call, real._values(), shadow._values());
    if (!real.defined() || !has_plain_memory(real) || shares_memory(call, real)) return;
    if (!carries_floats(real)) {
        if (call.bytes && real.scalar_type() == at::kByte) {
            parts_.shadows.lanes(real, true).copy_(shadow);
            parts_.shadows.written(real);
            return;
        }
        return keep_integers(call, real, shadow);
    }
    if (!shadow.defined() || shadow.sizes() != real.sizes()) {
        parts_.shadows.lose(real);
        return parts_.coverage.failed(call.info.name, "the twin's result has another shape", bytes_of(real));
    }
    parts_.shadows.bind(real, shadow);
}

// Counts the elements that differ. Returns whether any may: on a device that is known only when the step is complete.
bool Twin::count_flips(const at::Tensor& real, const at::Tensor& twin) {
    if (parts_.late.serves(real)) {
        const Late::Value flips = parts_.late.value(real.ne(twin).sum());
        if (flips.known())
            parts_.late.then([flips](LateStep& step) {
                step.record.coverage.flips += static_cast<std::uint64_t>(flips.get());
            });
        return true;
    }
    if (at::equal(real, twin)) return false;
    parts_.coverage.flips(static_cast<std::uint64_t>(real.ne(twin).sum().item<std::int64_t>()));
    return true;
}

// Booleans that differ follow the twin, and so do integers that belong to other results. Other integers follow the
// program, because they decide which samples, experts or tokens the rest of the step uses; the backward of the op that
// made them reads the twin's. With free integers all of them follow the twin.
void Twin::keep_integers(const Call& call, const at::Tensor& real, const at::Tensor& twin) {
    using Readers = ShadowMap::Readers;
    if (rule_disabled("integer")) return;
    if (!twin.defined() || twin.scalar_type() != real.scalar_type() || twin.sizes() != real.sizes())
        return parts_.shadows.bind_others(real, twin, call.info);
    const bool own = call.info.traits.has(Trait::own_integers), opaque = is_opaque(call, real);
    if (!opaque && (call.local || !count_flips(real, twin))) return;
    const bool everyone = own || real.scalar_type() == at::kBool || parts_.control.options().free_ints;
    parts_.shadows.bind_integers(real, twin, call.info, everyone ? Readers::everyone : Readers::own_backward);
}

void Twin::remember_cast(const Call& call) {
    parts_.shadows.is_cast_of(call.real[0].toTensor(), call.real[1].toTensor());
}

void Twin::report_sorted_norms() {
    const std::string layer = parts_.layers.name(thread_state().site.layer);
    if (layer == "(clipping)") parts_.coverage.regrouped(layer, "the norms are sorted by dtype");
}

void Twin::measure_local(Call& call, const Stack& results) {
    const TwinScope scope;
    const auto compare = [&](const at::Tensor& real, const at::Tensor& twin) {
        if (has_plain_memory(real) && !carries_floats(real)) return keep_integers(call, real, twin);
        if (real.defined() && twin.defined() && has_plain_memory(real) && carries_floats(real) &&
            real.sizes() == twin.sizes() && !c10::isComplexType(real.scalar_type()))
            measure_result(parts_, thread_state().site, call.info, call, {real, {}, twin});
    };
    for (std::size_t i = 0; i < results.size(); ++i) {
        const IValue& real = (*call.stack)[call.stack->size() - results.size() + i];
        if (!real.isTensor() || !results[i].isTensor()) continue;
        if (!shares_memory(call, real.toTensor())) compare(real.toTensor(), results[i].toTensor());
    }
    for (const Call::Pair& pair : call.written_floats) compare(pair.real, pair.shadow);
}

// An op did not make a non-finite value that existed before it. fp32 targets are searched in sampled steps, and where a
// domain makes the results worth a look in every step: a sum over ranks that overflowed is divided afterwards.
void Twin::look_at_targets(Call& call) const {
    const bool any_dtype = parts_.ledger.sampled() || call.info.traits.has(Trait::domain);
    for (std::size_t i = 0; i < call.real.size() && call.target_was_finite; ++i) {
        const Argument& argument = call.info.arguments[i];
        if (!argument.write || argument.overwrite) continue;
        for_each_tensor(call.real[i], [&](const at::Tensor& t) {
            if (!has_plain_memory(t) || !(any_dtype || is_low_precision(t.scalar_type()))) return;
            if (!parts_.late.serves(t))
                call.target_was_finite &= !any_nonfinite(t);
            else if (const Figure<TensorStats> stats = parts_.late.statistics(t))
                call.late_targets.push_back(stats);
        });
    }
}

void Twin::prepare_sample(Call& call, Sample& sample) {
    try {
        sample.prepare(call);
    } catch (const std::exception& e) {
        parts_.faults.measuring(call.info.name, first_line(e));
    }
}

// Measures the results of an op after the twin's op. An error here is ours and only loses the figures.
void Twin::measure(Call& call, const Stack& results, Sample& sample) {
    if (rule_disabled("measure")) return;
    try {
        if (parts_.ledger.sampled()) return sample.finish(call, results);
        const TwinScope scope;
        const Site& site = thread_state().site;
        const auto glance = [&](const at::Tensor& real, const at::Tensor& twin) {
            if (has_plain_memory(real) && carries_floats(real))
                glance_at_result(parts_, site, call.info, call, real, twin);
        };
        for (std::size_t i = 0; i < results.size(); ++i) {
            const IValue& real = (*call.stack)[call.stack->size() - results.size() + i];
            if (real.isTensor() && results[i].isTensor() && real.toTensor().defined() &&
                !shares_memory(call, real.toTensor()))
                glance(real.toTensor(), results[i].toTensor());
        }
        for (const Call::Pair& pair : call.written_floats) glance(pair.real, pair.shadow);
    } catch (const std::exception& e) {
        parts_.faults.measuring(call.info.name, first_line(e));
    }
}

// ---- Rules. -----------------------------------------------------------------------------------------

void Twin::generic(Call& call) {
    const std::size_t results = call.op.schema().returns().size();
    Sample sample(parts_, arguments_);
    const bool sampled = parts_.ledger.sampled();
    if (call.info.writes) {
        const TwinScope scope;
        arguments_.prepare(call);  // before the real op overwrites the old values
        look_at_targets(call);
        if (sampled) prepare_sample(call, sample);
    }
    run_real(call);
    const bool kept = is_kept_by_autocast(call);
    const TwinScope scope;
    if (!call.info.writes) {
        if (only_views(call, *call.stack, results)) return;
        arguments_.prepare(call);
        if (sampled) prepare_sample(call, sample);
    }
    const std::uint64_t bytes = result_bytes(call);
    if (!call.possible) {
        lose_results(call);
        return parts_.coverage.unshadowed(call.info.name, call.why_not, bytes);
    }
    Stack shadow;
    if (!run_shadow(call, shadow)) return;
    if (call.local) return measure_local(call, shadow);
    bind_results(call, shadow);
    after_writes(call);
    if (kept) remember_cast(call);
    if (joins_dtypes(call)) report_sorted_norms();
    if (casts_to_another_layout(call)) parts_.coverage.relaid();
    parts_.coverage.shadowed(bytes);
    measure(call, shadow, sample);
    if (!call.info.writes || call.bytes) return;
    // An integer write into memory that carries floats ends the twin's history of it.
    for (std::size_t i = 0; i < call.real.size(); ++i) {
        if (!call.info.arguments[i].write || rule_disabled("bytes")) continue;
        for_each_tensor(call.real[i], [&](const at::Tensor& t) {
            if (has_plain_memory(t) && !carries_floats(t)) parts_.shadows.lose_floats(t);
        });
    }
}

// The twin uses the same sample: the program's value, widened.
namespace {

// Whether a run in fp32 would have drawn other numbers. PyTorch's CPU kernels take as many random bits as the format
// holds (at::uniform_real_distribution), and every format rounds what it draws. Whole numbers (bernoulli) are the same
// in every format. On a device the numbers are not waited for.
bool depend_on_format(const at::Tensor& t) {
    constexpr std::int64_t kMost = 64;
    if (!is_low_precision(t.scalar_type()) || !t.device().is_cpu() || t.numel() == 0) return false;
    const at::Tensor first = t.detach().reshape({-1}).narrow(0, 0, std::min(t.numel(), kMost)).to(at::kFloat);
    const float* const values = first.data_ptr<float>();
    return std::any_of(values, values + first.numel(), [](float v) { return v != std::floor(v); });
}

}  // namespace

void Twin::sampler(Call& call) {
    run_real(call);
    if (parts_.control.local()) return;
    const TwinScope scope;
    const Phase phase = thread_state().site.phase;
    const bool in_model = phase == Phase::forward || phase == Phase::backward;
    // In the first step what is drawn elsewhere may be an initialisation.
    const bool in_training = in_model || (parts_.now.number > 0 && !parts_.now.in_optimizer);
    bool drawn = false;
    const auto take_over = [&](const at::Tensor& t) {
        if (!has_plain_memory(t) || !carries_floats(t)) return;
        if (in_training && !drawn && depend_on_format(t)) {
            drawn = true;
            parts_.coverage.drawn(call.info.name, name_of(dtype_of(t.scalar_type())));
        }
        const ShadowMap::Lookup found = parts_.shadows.find(t);
        if (found.shadow.defined())
            found.shadow.copy_(t);
        else
            parts_.shadows.seed(t, false);
        parts_.shadows.written(t);
    };
    for (std::size_t i = 0; i < call.real.size(); ++i)
        if (call.info.arguments[i].write) for_each_tensor(call.real[i], take_over);
    const std::size_t results = call.op.schema().returns().size();
    for (std::size_t i = 0; i < results; ++i)
        for_each_tensor((*call.stack)[call.stack->size() - results + i], take_over);
    parts_.coverage.shadowed(result_bytes(call));
}

void Twin::no_shadow(Call& call) {
    run_real(call);
    if (!parts_.control.local()) lose_results(call);
}

void Twin::not_observed(Call& call) {
    run_real(call);
    std::uint64_t bytes = 0;
    const TwinScope scope;
    for (std::size_t i = 0; i < call.real.size(); ++i)
        if (call.info.arguments[i].tensor)
            for_each_tensor(call.real[i], [&](const at::Tensor& t) {
                bytes += bytes_of(t);
                if (call.info.base != "send" && has_plain_memory(t) && carries_floats(t))
                    parts_.shadows.lose(t);
            });
    parts_.coverage.unshadowed(call.info.name, "point-to-point messages are not followed", bytes);
}

// An op in Python, or one that calls torch's, was followed through the ops that it is made of. What other code computed
// has no shadow, or one that no longer fits.
void Twin::foreign(Call& call) {
    call.state = Call::Real::running;
    call.op.redispatchBoxed(call.below, call.stack);
    call.state = Call::Real::done;
    if (call.local) return;
    const TwinScope scope;
    std::uint64_t bytes = 0;
    for_each_result(call, [&](const at::Tensor& t) {
        if (!has_plain_memory(t) || !carries_floats(t) || parts_.shadows.find(t).shadow.defined()) return;
        parts_.shadows.lose(t);
        bytes += bytes_of(t);
    });
    if (bytes > 0) parts_.coverage.outside(call.info.name + ": computed by another library", bytes);
}

}  // namespace mp::twin
