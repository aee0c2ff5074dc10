#include "instrument/torch/twin.hpp"

#include <algorithm>

#include "instrument/torch/measure.hpp"
#include "instrument/torch/sample.hpp"
#include "instrument/torch/thread_state.hpp"

namespace mp::twin {
namespace {

Twin* g_twin = nullptr;

bool is_wrapped_number(const at::Tensor& t) {
    return t.unsafeGetTensorImpl()->is_wrapped_number() && !rule_disabled("wrapped_number");
}

std::uint64_t bytes_of(const at::Tensor& t) {
    return static_cast<std::uint64_t>(t.numel()) * t.element_size();
}

// Every float result is memory that an argument already had, and nothing was written: a view that its
// schema does not declare (_unsafe_view, _reshape_alias).
bool only_views(const Call& call, const Stack& stack, std::size_t results) {
    bool all = results > 0;
    for (std::size_t i = 0; i < results; ++i)
        for_each_tensor(stack[stack.size() - results + i],
                        [&](const at::Tensor& t) { all &= shares_memory(call, t); });
    return all;
}

IValue low_precision_to_fp32(const IValue& dtype) {
    if (!dtype.isInt()) return dtype;
    const auto type = static_cast<at::ScalarType>(dtype.toInt());
    return IValue(static_cast<std::int64_t>(twin_dtype(type)));
}

// The first line of a torch error: the rest is a C++ stack trace.
std::string first_line(const std::exception& e) {
    const std::string_view what = e.what();
    return std::string(what.substr(0, std::min<std::size_t>(what.find('\n'), 200)));
}

}  // namespace

bool shares_memory(const Call& call, const at::Tensor& t) {
    bool shared = false;
    for (const IValue& argument : call.real)
        for_each_tensor(argument, [&](const at::Tensor& a) {
            shared |= a.has_storage() && t.has_storage() &&
                      a.storage().unsafeGetStorageImpl() == t.storage().unsafeGetStorageImpl();
        });
    return shared;
}

Twin* twin() noexcept { return g_twin; }
void set_twin(Twin* twin) noexcept { g_twin = twin; }

// The real op's own errors are the program's and pass through. An error of ours costs the twin this op.
void Twin::run(const OpInfo& info, const c10::OperatorHandle& op, c10::DispatchKeySet below, Stack* stack) {
    Call call(info, op, below, stack);
    try {
        take_arguments(call);
        follow(call);
    } catch (const std::exception& e) {
        if (call.state == Call::Real::running) throw;
        session_.internal_fault(info.name, first_line(e));
        if (call.state == Call::Real::pending) run_real(call);
        lose_results(call);
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
        case Rule::leak:
            return leak(call);
    }
}

at::Tensor Twin::value(const at::Tensor& real) {
    const TwinScope scope;
    if (!has_plain_memory(real)) return real.clone();
    const ShadowMap::Lookup found = shadows_.find(real);
    if (found.found == ShadowMap::Found::hit) return found.shadow.clone();
    return carries_floats(real) ? real.detach().to(twin_dtype(real.scalar_type()), false, true)
                                : real.clone();
}

// ---- Steps that every rule is made of. ------------------------------------------------------------

void Twin::take_arguments(Call& call) {
    const std::size_t count = call.info.arguments.size();
    call.real.assign(call.stack->end() - static_cast<std::ptrdiff_t>(count), call.stack->end());
    call.local = session_.local();
}

void Twin::prepare(Call& call) {
    if (rule_disabled("prepare") || (rule_disabled("after_two") && session_.steps() > 1))
        throw std::runtime_error("switched off by a test");
    const TwinScope scope;
    call.bytes = call.info.moves_bytes && moves_floats_as_bytes(call);
    call.shadow.reserve(call.real.size());
    for (std::size_t i = 0; i < call.real.size(); ++i)
        call.shadow.push_back(convert(call, call.info.arguments[i], call.real[i]));
}

void Twin::run_real(Call& call) {
    const Internal internal;
    call.state = Call::Real::running;
    call.op.redispatchBoxed(call.below, call.stack);
    call.state = Call::Real::done;
}

// Arguments of the right shapes without values, for a collective that this rank can only attend.
void Twin::prepare_blanks(Call& call) {
    const TwinScope scope;
    call.shadow = call.real;
    call.written_floats.clear();
    for (IValue& value : call.shadow) {
        const auto blank = [](const at::Tensor& t) {
            return carries_floats(t) ? at::zeros(t.sizes(), t.options().dtype(twin_dtype(t.scalar_type())))
                                     : t.clone();
        };
        if (value.isTensor() && value.toTensor().defined()) value = blank(value.toTensor());
        if (!value.isTensorList()) continue;
        std::vector<at::Tensor> blanks;
        for_each_tensor(value, [&](const at::Tensor& t) { blanks.push_back(blank(t)); });
        value = IValue(blanks);
    }
}

bool Twin::run_shadow(Call& call, Stack& results) {
    try {
        const TwinScope scope;
        results.assign(call.shadow.begin(), call.shadow.end());
        call.op.redispatchBoxed(call.below, &results);  // the shadows live where the real tensors live
        return true;
    } catch (const std::exception& e) {
        session_.count_failed(call.info.name, first_line(e), result_bytes(call));
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
        // An out= argument that was resized has other memory than its shadow was made for.
        if (pair.apart || !shadows_.has(pair.real)) {
            if (pair.real.sizes() == pair.shadow.sizes())
                shadows_.bind(pair.real, pair.shadow);
            else
                shadows_.lose(pair.real);
        }
        shadows_.written(pair.real);
    }
    for (const Call::Pair& pair : call.written_integers) compare_integers(pair.real, pair.shadow);
}

void Twin::lose_results(Call& call) {
    const TwinScope scope;
    const std::size_t count = call.op.schema().returns().size();
    const auto lose = [&](const at::Tensor& t) {
        if (has_plain_memory(t) && carries_floats(t)) shadows_.lose(t);
    };
    for (std::size_t i = 0; i < count; ++i) {
        const IValue& result = (*call.stack)[call.stack->size() - count + i];
        for_each_tensor(result, [&](const at::Tensor& t) {
            if (!shares_memory(call, t)) lose(t);
        });
    }
    for (std::size_t i = 0; i < call.real.size(); ++i)
        if (call.info.arguments[i].write) for_each_tensor(call.real[i], lose);
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

// ---- Arguments. -------------------------------------------------------------------------------------

bool Twin::moves_floats_as_bytes(const Call& call) {
    bool found = false;
    for (std::size_t i = 0; i < call.real.size(); ++i) {
        if (!call.info.arguments[i].tensor) continue;
        for_each_tensor(call.real[i], [&](const at::Tensor& t) {
            if (found || !has_plain_memory(t) || t.scalar_type() != at::kByte) return;
            if (call.info.arguments[i].overwrite) return;
            found = shadows_.lanes(t, false).defined();
        });
    }
    return found;
}

IValue Twin::convert(Call& call, const Argument& argument, const IValue& value) {
    if (argument.dtype) return low_precision_to_fp32(value);
    if (argument.half_to_float) return IValue(false);
    if (!argument.tensor || value.isNone()) return value;
    if (value.isTensor()) return convert_tensor(call, argument, value.toTensor());
    if (!value.isList()) return value;
    const c10::List<IValue> list = value.toList();
    c10::impl::GenericList converted(list.elementType());
    converted.reserve(list.size());
    for (std::size_t i = 0; i < list.size(); ++i) converted.push_back(convert(call, argument, list.get(i)));
    return converted;
}

at::Tensor Twin::convert_tensor(Call& call, const Argument& argument, const at::Tensor& t) {
    if (!t.defined() || argument.keep_real || is_wrapped_number(t)) return t;
    if (!has_plain_memory(t)) {
        call.possible = false;
        call.why_not = t.is_sparse()      ? "sparse tensor"
                       : t.is_quantized() ? "quantized tensor"
                                          : "tensor without plain memory";
        return t;
    }
    return carries_floats(t) ? shadow_of_float(call, argument, t) : shadow_of_integer(call, argument, t);
}

at::Tensor Twin::shadow_of_float(Call& call, const Argument& argument, const at::Tensor& t) {
    using Found = ShadowMap::Found;
    at::Tensor shadow;
    const bool apart = !call.local && argument.out && t.numel() == 0;
    if (call.local) {
        shadow = at::empty_like(t, t.options().dtype(twin_dtype(t.scalar_type()))).copy_(t);
    } else if (apart) {
        shadow = at::empty({0}, t.options().dtype(twin_dtype(t.scalar_type())));
    } else {
        const ShadowMap::Lookup found = shadows_.find(t);
        shadow = found.shadow;
        if (!shadow.defined()) {
            shadow = shadows_.seed(t, argument.overwrite);
            // Whole-tensor writes need no history; everything else now starts from the program's values.
            const Session::Seed why = found.found == Found::stale  ? Session::Seed::stale
                                      : found.found == Found::lost ? Session::Seed::lost
                                                                   : Session::Seed::external;
            if (!argument.overwrite && t.numel() > 0) session_.count_seed(call.info.name, why, bytes_of(t));
            shadows_.written(t);
        }
    }
    if (argument.write) call.written_floats.push_back({t, shadow, apart});
    return shadow;
}

at::Tensor Twin::shadow_of_integer(Call& call, const Argument& argument, const at::Tensor& t) {
    if (call.bytes && t.scalar_type() == at::kByte) {
        if (argument.write) call.written_floats.push_back({t, t});
        return shadows_.lanes(t, true);
    }
    if (call.local) return argument.write ? t.clone() : t;
    const ShadowMap::Lookup found = shadows_.find(t);
    if (argument.real_mask && !session_.options().free_ints) return t;
    if (found.shadow.defined()) {
        if (argument.write) call.written_integers.push_back({t, found.shadow});
        return found.shadow;
    }
    if (!argument.write) return t;
    at::Tensor copy = t.clone();
    call.written_integers.push_back({t, copy});
    return copy;
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
    if (!real.defined() || !has_plain_memory(real) || shares_memory(call, real)) return;
    if (!carries_floats(real)) {
        if (call.bytes && real.scalar_type() == at::kByte) {
            shadows_.lanes(real, true).copy_(shadow);
            return shadows_.written(real);
        }
        return compare_integers(real, shadow);
    }
    if (!shadow.defined() || shadow.sizes() != real.sizes()) {
        shadows_.lose(real);
        return session_.count_failed(call.info.name, "the twin's result has another shape", bytes_of(real));
    }
    shadows_.bind(real, shadow);
    shadows_.written(real);
}

// Booleans follow the twin where they differ; indices follow the program, unless the user asked for free
// integers, because they decide which samples, experts or tokens the rest of the step is about.
void Twin::compare_integers(const at::Tensor& real, const at::Tensor& shadow) {
    if (!shadow.defined() || shadow.scalar_type() != real.scalar_type() || shadow.sizes() != real.sizes())
        return;
    if (rule_disabled("integer")) return;
    if (at::equal(real, shadow)) return;
    session_.count_flips(static_cast<std::uint64_t>(real.ne(shadow).sum().item<std::int64_t>()));
    if (real.scalar_type() == at::kBool || session_.options().free_ints) shadows_.bind(real, shadow);
}

void Twin::measure_local(Call& call, const Stack& results) {
    const TwinScope scope;
    const auto compare = [&](const at::Tensor& real, const at::Tensor& twin) {
        if (real.defined() && twin.defined() && has_plain_memory(real) && carries_floats(real) &&
            real.sizes() == twin.sizes() && !c10::isComplexType(real.scalar_type()))
            measure_result(session_, current_site(), call.info, call, {real, {}, twin});
    };
    for (std::size_t i = 0; i < results.size(); ++i) {
        const IValue& real = (*call.stack)[call.stack->size() - results.size() + i];
        if (!real.isTensor() || !results[i].isTensor()) continue;
        if (!shares_memory(call, real.toTensor())) compare(real.toTensor(), results[i].toTensor());
    }
    for (const Call::Pair& pair : call.written_floats) compare(pair.real, pair.shadow);
}

// A value that was not finite before the op is not the op's doing. fp32 targets are judged in sampled steps only.
void Twin::look_at_targets(Call& call) const {
    const bool sampled = session_.ledger().sampled();
    for (std::size_t i = 0; i < call.real.size() && call.target_was_finite; ++i) {
        const Argument& argument = call.info.arguments[i];
        if (!argument.write || argument.overwrite) continue;
        for_each_tensor(call.real[i], [&](const at::Tensor& t) {
            if (has_plain_memory(t) && (sampled || is_low_precision(t.scalar_type())))
                call.target_was_finite &= !any_nonfinite(t);
        });
    }
}

void Twin::prepare_sample(Call& call, Sample& sample) {
    try {
        sample.prepare(*this, call);
    } catch (const std::exception& e) {
        session_.measuring_fault(call.info.name, first_line(e));
    }
}

// The results of an op, once the twin has its own. An error here is ours and costs the figures only.
void Twin::measure(Call& call, const Stack& results, Sample& sample) {
    if (rule_disabled("measure")) return;
    try {
        if (session_.ledger().sampled()) return sample.finish(call, results);
        const TwinScope scope;
        const Site& site = current_site();
        const auto glance = [&](const at::Tensor& real, const at::Tensor& twin) {
            if (has_plain_memory(real) && carries_floats(real))
                glance_at_result(session_, site, call.info, call, real, twin);
        };
        for (std::size_t i = 0; i < results.size(); ++i) {
            const IValue& real = (*call.stack)[call.stack->size() - results.size() + i];
            if (real.isTensor() && results[i].isTensor() && real.toTensor().defined() &&
                !shares_memory(call, real.toTensor()))
                glance(real.toTensor(), results[i].toTensor());
        }
        for (const Call::Pair& pair : call.written_floats) glance(pair.real, pair.shadow);
    } catch (const std::exception& e) {
        session_.measuring_fault(call.info.name, first_line(e));
    }
}

// ---- Rules. -----------------------------------------------------------------------------------------

void Twin::generic(Call& call) {
    const std::size_t results = call.op.schema().returns().size();
    Sample sample(session_);
    const bool sampled = session_.ledger().sampled();
    if (call.info.writes) {
        const TwinScope scope;
        prepare(call);  // before the old values are gone
        look_at_targets(call);
        if (sampled) prepare_sample(call, sample);
    }
    run_real(call);
    const TwinScope scope;
    if (!call.info.writes) {
        if (only_views(call, *call.stack, results)) return;
        prepare(call);
        if (sampled) prepare_sample(call, sample);
    }
    const std::uint64_t bytes = result_bytes(call);
    if (!call.possible) {
        lose_results(call);
        return session_.count_unshadowed(call.info.name, call.why_not, bytes);
    }
    Stack shadow;
    if (!run_shadow(call, shadow)) return;
    if (call.local) return measure_local(call, shadow);
    bind_results(call, shadow);
    after_writes(call);
    session_.count_shadowed(bytes);
    measure(call, shadow, sample);
    if (!call.info.writes || call.bytes) return;
    // An integer write into memory that carries floats ends the twin's history of it.
    for (std::size_t i = 0; i < call.real.size(); ++i) {
        if (!call.info.arguments[i].write || rule_disabled("bytes")) continue;
        for_each_tensor(call.real[i], [&](const at::Tensor& t) {
            if (has_plain_memory(t) && !carries_floats(t)) shadows_.lose_floats(t);
        });
    }
}

// The twin sees the same sample: its value is the program's, widened.
void Twin::sampler(Call& call) {
    run_real(call);
    if (session_.local()) return;
    const TwinScope scope;
    const auto take_over = [&](const at::Tensor& t) {
        if (!has_plain_memory(t) || !carries_floats(t)) return;
        const ShadowMap::Lookup found = shadows_.find(t);
        if (found.shadow.defined())
            found.shadow.copy_(t);
        else
            shadows_.seed(t, false);
        shadows_.written(t);
    };
    for (std::size_t i = 0; i < call.real.size(); ++i)
        if (call.info.arguments[i].write) for_each_tensor(call.real[i], take_over);
    const std::size_t results = call.op.schema().returns().size();
    for (std::size_t i = 0; i < results; ++i)
        for_each_tensor((*call.stack)[call.stack->size() - results + i], take_over);
    session_.count_shadowed(result_bytes(call));
}

void Twin::no_shadow(Call& call) {
    run_real(call);
    if (!session_.local()) lose_results(call);
}

void Twin::not_observed(Call& call) {
    run_real(call);
    std::uint64_t bytes = 0;
    const TwinScope scope;
    for (std::size_t i = 0; i < call.real.size(); ++i)
        if (call.info.arguments[i].tensor)
            for_each_tensor(call.real[i], [&](const at::Tensor& t) {
                bytes += bytes_of(t);
                if (call.info.base != "send" && has_plain_memory(t) && carries_floats(t)) shadows_.lose(t);
            });
    session_.count_unshadowed(call.info.name, "point-to-point messages are not followed", bytes);
}

}  // namespace mp::twin
