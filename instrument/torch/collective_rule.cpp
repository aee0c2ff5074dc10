// The rule of collectives: the twin runs its own on the shadows.

#include <atomic>
#include <memory>
#include <utility>

#include "instrument/torch/collectives.hpp"
#include "instrument/torch/tensors.hpp"
#include "instrument/torch/test_hooks.hpp"
#include "instrument/torch/thread_state.hpp"
#include "instrument/torch/twin.hpp"

namespace mp::twin {

// A low-precision reduction beside the fp32 reduction of the same inputs. Whether it runs depends only on the op and
// its dtype, which all ranks share, because every rank must take part.
struct Twin::Reduction {
    trace::CollectiveRecord like;
    std::vector<at::Tensor> real, exact;
    bool measured = false;
};

std::shared_ptr<Twin::Reduction> Twin::begin_reduction(const Call& call) {
    const trace::CollectiveRecord like = describe_collective(call.info, call.op, *call.stack);
    if (like.reduction.empty() || !is_low_precision(like.dtype)) return nullptr;
    Call exact(call.info, call.op, call.below, call.stack);
    exact.real = call.real;
    exact.local = true;
    const bool prepared = prepare_or_blank(exact);
    try {
        const TwinScope scope;
        Stack results(exact.shadow.begin(), exact.shadow.end());
        call.op.callBoxed(&results);
        wait_for_work(results);
        if (!prepared || parts_.control.attends_only()) return nullptr;  // the figures would not be used
        auto reduction = std::make_shared<Reduction>();
        reduction->like = like;
        for (const Call::Pair& pair : exact.written_floats) {
            reduction->real.push_back(pair.real);
            reduction->exact.push_back(pair.shadow);
        }
        return reduction;
    } catch (const std::exception& e) {
        parts_.faults.measuring(call.info.name, e.what());
        return nullptr;
    }
}

void Twin::measure_reduction(const trace::CollectiveRecord& like, const at::Tensor& real,
                             const at::Tensor& exact) {
    if (!parts_.late.serves(real)) {
        cpu::TensorView x, y;
        Divergence d;
        if (view_for_kernels(real, x) && view_for_kernels(exact, y) && cpu::divergence(x, y, d))
            parts_.collectives.add_figures(like, d);
        return;
    }
    const Figure<Divergence> late = parts_.late.divergence(real, exact);
    if (!late) return;
    // It is freed while the device still reads it, and was made on the stream of the collective's caller.
    record_use(exact.storage());
    parts_.late.then([like, late](LateStep& step) {
        for (trace::CollectiveRecord& record : step.record.collectives)
            if (same_kind(record, like)) return add_figures(record, *late);
    });
}

// The function to call after the program has waited for the result.
std::function<void()> Twin::finisher_of(std::shared_ptr<Reduction> reduction) {
    if (!reduction) return {};
    return [this, reduction] {
        if (std::exchange(reduction->measured, true)) return;
        const TwinScope scope;
        for (std::size_t i = 0; i < reduction->real.size(); ++i)
            measure_reduction(reduction->like, reduction->real[i], reduction->exact[i]);
        reduction->real.clear();
        reduction->exact.clear();
    };
}

// Makes the shadow arguments of a collective. If this rank has no shadows, or no memory for them, they are blank and
// false is returned.
bool Twin::prepare_or_blank(Call& call) {
    try {
        if (!parts_.control.attends_only()) {
            arguments_.prepare(call);
            return true;
        }
    } catch (const c10::OutOfMemoryError&) {
        parts_.shortage.give_up();
    } catch (const std::exception& e) {
        if (call.local)
            parts_.faults.measuring(call.info.name, e.what());
        else
            parts_.faults.internal(call.info.name, e.what());
    }
    parts_.blanks.prepare(call);
    return false;
}

namespace {

bool moves_floats(const Call& call) {
    bool any = call.bytes;
    for (std::size_t i = 0; i < call.real.size() && !any; ++i)
        if (call.info.arguments[i].tensor)
            for_each_tensor(call.real[i], [&](const at::Tensor& t) { any |= carries_floats(t); });
    return any;
}

}  // namespace

// Runs the same collective on the shadows, before the real one. It runs on every rank, whatever
// happened there before, because the other ranks would wait for ever for a missing rank.
void Twin::collective(Call& call) {
    if (parts_.control.local()) {
        run_real(call);
        return;
    }
    const std::size_t results = call.op.schema().returns().size();
    // First, because blanks of both would share their memory.
    const std::shared_ptr<Reduction> reduction = begin_reduction(call);
    const bool prepared = prepare_or_blank(call);
    const bool any_float = moves_floats(call);
    bool followed = false;
    if (any_float) {
        try {
            const TwinScope scope;
            Stack shadow(call.shadow.begin(), call.shadow.end());
            call.op.callBoxed(&shadow);
            wait_for_work(shadow);
            followed = prepared;
        } catch (const std::exception& e) {
            parts_.coverage.failed(call.info.name, e.what(), 0);
        }
    }
    run_real(call);
    const std::function<void()> finish = finisher_of(reduction);
    const auto chained = std::make_shared<std::atomic<bool>>(false);
    if (finish) parts_.collectives.finish_later(finish, chained);
    if (!rule_disabled("work")) hide_work(*call.stack, results, finish, chained);
    if (!prepared) return lose_results(call);
    const TwinScope scope;
    std::uint64_t bytes = 0;
    for (const Call::Pair& pair : call.written_floats) {
        bytes += static_cast<std::uint64_t>(pair.real.numel()) * pair.real.element_size();
        if (!followed)
            parts_.shadows.lose(pair.real);
        else
            parts_.shadows.written(pair.real, /*later=*/true);
    }
    if (!followed && any_float) return;
    for (const Call::Pair& pair : call.written_integers) parts_.shadows.lose_floats(pair.real);
    if (any_float) parts_.coverage.shadowed(bytes);
}

}  // namespace mp::twin
