// The rules that are not "the same op on the shadows". Each comment gives the twin's action and the reason.

#include <optional>

#include "instrument/torch/sample.hpp"
#include "instrument/torch/tensors.hpp"
#include "instrument/torch/test_hooks.hpp"
#include "instrument/torch/thread_state.hpp"
#include "instrument/torch/twin.hpp"

namespace mp::twin {
namespace {

const IValue* argument(const Call& call, const char* name) {
    const auto& arguments = call.op.schema().arguments();
    for (std::size_t i = 0; i < arguments.size(); ++i)
        if (arguments[i].name() == name) return &call.real[i];
    return nullptr;
}

const IValue& result(const Call& call, std::size_t index) {
    const std::size_t count = call.op.schema().returns().size();
    return (*call.stack)[call.stack->size() - count + index];
}

// The generator an op draws from: its argument, else the default one of the first tensor's device.
at::Generator generator_of(const Call& call) {
    const IValue* own = argument(call, "generator");
    if (own && own->isGenerator()) return own->toGenerator();
    at::Device device = at::kCPU;
    for (const IValue& value : call.real)
        if (value.isTensor() && value.toTensor().defined()) {
            device = value.toTensor().device();
            break;
        }
    return at::globalContext().defaultGenerator(device);
}

// How many autograd nodes the op has made: they keep what their backward reads.
std::size_t nodes_made(const Call& call) {
    bool gradients = false;
    for (const IValue& value : call.real)
        for_each_tensor(value, [&](const at::Tensor& t) { gradients |= t.requires_grad(); });
    return gradients && at::GradMode::is_enabled() ? 1 : 0;
}

// The numbers that a generator of the program has now, to be drawn again. Its methods hold the generator's lock.
class Draws {
public:
    explicit Draws(const at::Generator& generator) : generator_(generator) {
        const std::lock_guard<std::mutex> lock(generator_.mutex());
#if MP_TORCH_AT_LEAST(2, 4)
        if (is_exchanged()) {
            copy_ = generator_.getIntrusivePtr()->clone();
            return;
        }
#endif
        state_ = state();
    }

    template <typename Draw>
    bool again(const Draw& draw) {
        exchange();
        try {
            const bool drawn = draw();
            exchange();
            return drawn;
        } catch (...) {  // no memory: the program goes on with its own numbers
            exchange();
            throw;
        }
    }

private:
    // A new state of a generator of CUDA would make recurrent layers of cuDNN begin their dropout anew, from a seed
    // that they draw. Exchanging its state for another one does not.
    bool is_exchanged() const { return generator_.device().is_cuda(); }

    at::Tensor state() const {
        return at::Tensor(c10::intrusive_ptr<c10::TensorImpl>(generator_.getIntrusivePtr()->get_state()));
    }

    void exchange() {
        const std::lock_guard<std::mutex> lock(generator_.mutex());
#if MP_TORCH_AT_LEAST(2, 4)
        if (is_exchanged()) {
            const c10::intrusive_ptr<c10::GeneratorImpl> now =
                generator_.getIntrusivePtr()->graphsafe_get_state();
            generator_.getIntrusivePtr()->graphsafe_set_state(copy_);
            copy_ = now;
            return;
        }
#endif
        const at::Tensor now = state();
        generator_.set_state(state_);
        state_ = now;
    }

    at::Generator generator_;
    at::Tensor state_;
    c10::intrusive_ptr<c10::GeneratorImpl> copy_;
};

}  // namespace

// A function of its inputs that also draws (SDPA with dropout, rrelu). Both runs draw the same numbers, and the
// program's generator keeps the state after the real run.
void Twin::random(Call& call) {
    std::optional<Draws> draws;
    {
        const TwinScope scope;
        draws.emplace(generator_of(call));
    }
    if (call.info.writes) arguments_.prepare(call);
    run_real(call);
    if (!call.info.writes) arguments_.prepare(call);
    const std::uint64_t bytes = result_bytes(call);
    if (!call.possible) {
        lose_results(call);
        return parts_.coverage.unshadowed(call.info.name, call.why_not, bytes);
    }
    Stack results;
    const TwinScope scope;
    if (!draws->again([&] { return run_shadow(call, results); })) return;
    if (parts_.control.local()) return measure_local(call, results);
    bind_results(call, results);
    after_writes(call);
    parts_.coverage.shadowed(bytes);
    Sample sample(parts_, arguments_);
    measure(call, results, sample);
}

// native_dropout(input, p, train) -> (output, mask): the real mask on the twin's input, with the scale
// and the order of products of the fp32 kernel.
void Twin::dropout(Call& call) {
    run_real(call);
    arguments_.prepare(call);
    const double p = call.real[1].toDouble();
    const bool train = call.real[2].isNone() || call.real[2].toBool();
    const TwinScope scope;
    const at::Tensor real = call.real[0].toTensor(), input = call.shadow[0].toTensor();
    // A thread of CUDA's kernel draws for as many neighbours as fit in 16 bytes.
    if (train && p > 0 && p < 1 && real.is_cuda() && is_low_precision(real.scalar_type()))
        parts_.coverage.drawn(call.info.name, name_of(dtype_of(real.scalar_type())));
    const at::Tensor mask = result(call, 1).toTensor();
    // Kernels of devices divide in fp32.
    const double scale = p == 1                    ? 0
                         : input.device().is_cpu() ? 1 / (1 - p)
                                                   : 1.0F / static_cast<float>(1 - p);
    Stack results{train ? input.mul(mask).mul_(scale) : input.clone(), mask};
    if (parts_.control.local()) return measure_local(call, results);
    bind_results(call, results);
    parts_.coverage.shadowed(result_bytes(call));
    Sample sample(parts_, arguments_);
    measure(call, results, sample);
}

// _amp_foreach_non_finite_check_and_unscale_(grads, found_inf, inv_scale): the twin's gradients carry the
// real scale, so the real inverse removes it. The program decides whether the step is skipped.
void Twin::unscale(Call& call) {
    arguments_.prepare(call);
    run_real(call);
    if (parts_.control.local()) return;
    const TwinScope scope;
    const at::Tensor inverse = call.real[2].toTensor();
    for_each_tensor(call.shadow[0],
                    [&](const at::Tensor& gradient) { gradient.mul_(inverse.to(gradient.scalar_type())); });
    after_writes(call);
    parts_.shadows.seed(call.real[1].toTensor(), false);
    parts_.shadows.written(call.real[1].toTensor());
    parts_.coverage.shadowed(result_bytes(call));
}

// The twin uses the program's loss scale and growth tracker.
void Twin::follow_real(Call& call) {
    run_real(call);
    if (parts_.control.local()) return;
    const TwinScope scope;
    for (std::size_t i = 0; i < call.real.size(); ++i) {
        if (!call.info.arguments[i].write) continue;
        for_each_tensor(call.real[i], [&](const at::Tensor& t) {
            if (!has_plain_memory(t) || !carries_floats(t)) return;
            parts_.shadows.seed(t, false);
            parts_.shadows.written(t);
        });
    }
}

// The values at the program's indices.
at::Tensor Twin::picked(const Call& call) {
    const at::Tensor input = call.shadow[0].toTensor();
    at::Tensor indices = result(call, 1).toTensor();
    if (call.info.base.find("pool") != std::string::npos) {
        const std::int64_t spatial = call.info.base.find("3d") != std::string::npos ? 3 : 2;
        return input.flatten(-spatial).gather(-1, indices.flatten(-spatial)).view(indices.sizes());
    }
    if (input.dim() == 0) return input.clone();
    const IValue* const dim_value = argument(call, "dim");
    const std::int64_t dim = dim_value && dim_value->isInt() ? dim_value->toInt() : -1;
    const bool dropped = indices.dim() < input.dim();
    const at::Tensor values = input.gather(dim, dropped ? indices.unsqueeze(dim) : indices);
    return dropped ? values.squeeze(dim) : values;
}

// Values chosen by indices. Where the program can read the indices, they pick from the twin's values too, so that both
// runs use the same tokens and experts. Where it cannot, as in max_pool2d or x.max(1)[0], the twin chooses for itself.
// Which of the two it is shows when the values are read first. With free integers the twin always chooses.
void Twin::by_index(Call& call) {
    const bool pairs = call.op.schema().returns().size() == 2 && !call.info.writes;
    if (parts_.control.local() || parts_.control.options().free_ints || !pairs || rule_disabled("locked"))
        return generic(call);
    run_real(call);
    arguments_.prepare(call);
    const std::uint64_t bytes = result_bytes(call);
    if (!call.possible) {
        lose_results(call);
        return parts_.coverage.unshadowed(call.info.name, call.why_not, bytes);
    }
    Stack own;
    if (!run_shadow(call, own)) return;
    try {
        const TwinScope scope;
        const at::Tensor values = result(call, 0).toTensor(), indices = result(call, 1).toTensor();
        const at::Tensor chosen = own[1].toTensor();
        if (chosen.sizes() != indices.sizes() || !carries_floats(values) || !count_flips(indices, chosen)) {
            bind_results(call, own);
        } else {
            bind_tensor(call, values, picked(call));
            if (!rule_disabled("choice"))
                parts_.shadows.offer(values, indices,
                                     {own[0].toTensor(), chosen, call.info, nodes_made(call)});
        }
        parts_.coverage.shadowed(bytes);
    } catch (const std::exception& e) {
        parts_.coverage.failed(call.info.name, e.what(), bytes);
        lose_results(call);
    }
}

// A value becomes a number of the program, which the twin cannot follow. A value that differs is counted, and by a
// boolean or an integer that differs the program takes a branch that the twin would not take.
void Twin::leak(Call& call) {
    run_real(call);
    if (parts_.control.local() || call.real.empty() || !call.real[0].isTensor()) return;
    const at::Tensor t = call.real[0].toTensor();
    if (call.info.base != "_local_scalar_dense" || !has_plain_memory(t) || t.is_complex()) return;
    const TwinScope scope;
    const ShadowMap::Lookup found = parts_.shadows.find(t);
    const bool decides = !carries_floats(t);
    if (!found.shadow.defined() || (decides && !found.maker)) return;
    const auto differ = [](double real, double twin) {
        return real != twin && !(real != real && twin != twin);
    };
    const double real = call.stack->back().toScalar().toDouble();
    CoverageCounters& coverage = parts_.coverage;
    if (!parts_.late.serves(t)) {
        const double twin = scalar_of(found.shadow);
        if (!differ(real, twin)) return;
        if (decides)
            coverage.decision(found.maker->name);
        else
            coverage.leak(call.info.name, real, twin);
        return;
    }
    const Late::Value twin = parts_.late.value(found.shadow);
    if (!twin.known()) return;
    parts_.late.then([=, &coverage, &info = decides ? *found.maker : call.info](LateStep& step) {
        if (!differ(real, twin.get())) return;
        if (decides)
            coverage.decision(info.name);
        else
            coverage.leak(step.record, info.name, real, twin.get());
    });
}

}  // namespace mp::twin
