#include "instrument/torch/sample.hpp"

#include <algorithm>

#include "instrument/torch/thread_state.hpp"

namespace mp::twin {
namespace {

constexpr std::int64_t kMostElements = 64 << 20;  // of one call; LOC takes 4 bytes of memory for each

// Casts and moves introduce at most one rounding, which does not depend on the layer.
bool has_local(const Call& call) {
    return call.info.rule == Rule::generic && !call.bytes && !call.info.moves_bytes &&
           call.info.base != "_to_copy";
}

bool changes_in_place(const OpInfo& info) {
    static constexpr std::string_view kNames[] = {
        "add", "sub", "mul", "lerp", "addcmul", "addcdiv", "_foreach_add", "_foreach_mul", "_foreach_lerp"};
    return std::find(std::begin(kNames), std::end(kNames), info.base) != std::end(kNames);
}

// In an optimizer a product decays weights or averages, which are told apart: only weights are counted.
bool counts_absorption(const Parts& parts, const OpInfo& info, const Site& site, const at::Tensor& target) {
    if (site.phase != Phase::optimizer || (info.base != "mul" && info.base != "_foreach_mul")) return true;
    return parts.parameters.is_parameter(target);
}

bool is_sum(const OpInfo& info) { return !info.writes && (info.base == "add" || info.base == "sub"); }

void flatten(const IValue& value, std::vector<at::Tensor>& into) {
    for_each_tensor(value, [&](const at::Tensor& t) { into.push_back(t); });
}

bool any_low(const Call& call) {
    bool low = false;
    const auto look = [&](const at::Tensor& t) { low |= is_low_precision(t.scalar_type()); };
    if (call.info.writes) {
        for (std::size_t i = 0; i < call.real.size(); ++i)
            if (call.info.arguments[i].write) for_each_tensor(call.real[i], look);
        return low;
    }
    const std::size_t results = call.op.schema().returns().size();
    for (std::size_t i = 0; i < results; ++i)
        for_each_tensor((*call.stack)[call.stack->size() - results + i], look);
    return low;
}

std::int64_t elements_of(const Call& call) {
    std::int64_t elements = 0;
    for (std::size_t i = 0; i < call.real.size(); ++i)
        if (call.info.arguments[i].tensor)
            for_each_tensor(call.real[i], [&](const at::Tensor& t) { elements += t.numel(); });
    return elements;
}

}  // namespace

void Sample::prepare(Call& call) {
    if (!call.possible || call.local || !any_low(call) || elements_of(call) > kMostElements) return;
    const TwinScope scope;
    if (call.info.writes && changes_in_place(call.info)) keep_targets(call);
    if (!has_local(call)) return;
    local_.emplace(call.info, call.op, call.below, call.stack);
    local_->local = true;
    local_->real = call.real;
    arguments_.prepare(*local_);
    if (!local_->possible) local_.reset();
}

void Sample::keep_targets(Call& call) {
    for (const Call::Pair& pair : call.written_floats)
        if (is_low_precision(pair.real.scalar_type()) && !pair.apart)
            call.kept.push_back({pair.real, pair.real.clone(), pair.shadow.clone()});
}

void Sample::finish(Call& call, const Stack& results) {
    const TwinScope scope;
    Stack local;
    if (local_) {
        try {
            local.assign(local_->shadow.begin(), local_->shadow.end());
            call.op.redispatchBoxed(call.below, &local);
        } catch (const std::exception&) {
            local_.reset();  // an op that exists in 16 bits only: LOC is not sampled
        }
    }
    measure(call, results, local);
    measure_sums(call);
    const Site& site = thread_state().site;
    for (const Call::Kept& kept : call.kept)
        for (const Call::Pair& pair : call.written_floats)
            if (pair.real.is_same(kept.target) && counts_absorption(parts_, call.info, site, kept.target))
                measure_absorption(parts_, site, call.info, kept.before, kept.target, kept.twin_before,
                                   pair.shadow);
}

void Sample::measure(const Call& call, const Stack& results, const Stack& local) const {
    const Site& site = thread_state().site;
    const auto measure_one = [&](const at::Tensor& real, const at::Tensor& twin, const at::Tensor& fp32) {
        if (has_plain_memory(real) && carries_floats(real))
            measure_result(parts_, site, call.info, call, {real, twin, fp32});
    };
    for (std::size_t i = 0; i < results.size(); ++i) {
        std::vector<at::Tensor> reals, twins, locals;
        flatten((*call.stack)[call.stack->size() - results.size() + i], reals);
        flatten(results[i], twins);
        if (local_ && i < local.size()) flatten(local[i], locals);
        for (std::size_t k = 0; k < reals.size() && k < twins.size(); ++k)
            if (!shares_memory(call, reals[k]))
                measure_one(reals[k], twins[k], k < locals.size() ? locals[k] : at::Tensor());
    }
    for (std::size_t k = 0; k < call.written_floats.size(); ++k) {
        const bool has = local_ && k < local_->written_floats.size();
        measure_one(call.written_floats[k].real, call.written_floats[k].shadow,
                    has ? local_->written_floats[k].shadow : at::Tensor());
    }
}

// result = running value + addend: counts the elements that did not change although something was added.
void Sample::measure_sums(const Call& call) const {
    if (!is_sum(call.info) || call.real.size() < 2 || !call.real[0].isTensor() || !call.real[1].isTensor())
        return;
    const at::Tensor result = (*call.stack)[call.stack->size() - 1].toTensor();
    const at::Tensor running = call.real[0].toTensor(), addend = call.real[1].toTensor();
    const auto is_number = [](const at::Tensor& t) { return t.unsafeGetTensorImpl()->is_wrapped_number(); };
    if (!is_low_precision(result.scalar_type()) || running.scalar_type() != result.scalar_type() ||
        addend.scalar_type() != result.scalar_type() || is_number(running) || is_number(addend))
        return;
    measure_sum(parts_, thread_state().site, call.info, running, addend, result);
}

}  // namespace mp::twin
