#include "instrument/cuda/weights.hpp"

#include <algorithm>
#include <utility>

#include "kernels/cpu/walk.hpp"

namespace mp::raw {
namespace {

cpu::TensorView view_of(const void* data, const NamedTensor& t) {
    return cpu::contiguous(data, t.dtype, t.elements);
}

std::uint64_t bytes_of(const NamedTensor& t) {
    return static_cast<std::uint64_t>(t.elements) * cpu::width_of(t.dtype);
}

}  // namespace

void Weights::name(NamedTensor tensor) {
    if (tensor.role != kParameter && tensor.role != kMaster) return;
    if (!is_float(tensor.dtype)) return;
    has_masters_ = has_masters_ || tensor.role == kMaster;
    Weight& weight = weights_[tensor.data];
    weight.copied = weight.copied && weight.tensor.elements == tensor.elements;
    weight.device = Meter::allocation_of(tensor.data).device;
    weight.tensor = std::move(tensor);
}

bool Weights::is_working_copy(const Weight& w) const {
    return has_masters_ && w.tensor.role == kParameter && is_low_precision(w.tensor.dtype);
}

std::uint64_t Weights::too_large() const {
    return static_cast<std::uint64_t>(
        std::ranges::count_if(weights_, [](const auto& entry) { return entry.second.too_large; }));
}

bool Weights::copy(Meter& meter, abi::Stream stream, int device) {
    bool any = false;
    for (auto& [data, w] : weights_) {
        if (!is_on(w, device)) continue;
        w.copied = w.too_large = false;
        if (is_working_copy(w)) continue;
        const std::uint64_t bytes = bytes_of(w.tensor);
        w.extent = Meter::extent_of(data, bytes);
        if (w.extent == 0) {
            ++gone_;
            continue;
        }
        if (w.copy.bytes() < bytes) {
            if (bytes_ + bytes <= kMostBytes) w.copy = meter.memory(stream, bytes);
            if (w.copy.bytes() < bytes) {
                w.too_large = true;
                continue;
            }
            bytes_ += bytes;
        }
        w.copied = meter.copy(stream, w.copy, data, bytes);
        any = any || w.copied;
    }
    return any;
}

trace::TensorRecord Weights::record_of(const Weight& w) const {
    trace::TensorRecord record;
    record.kind =
        w.tensor.role == kMaster ? trace::TensorKind::optimizer_state : trace::TensorKind::parameter;
    record.name = w.tensor.name;
    record.dtype = w.tensor.dtype;
    record.elements = static_cast<std::uint64_t>(w.tensor.elements);
    if (is_working_copy(w)) record.mastered = record.elements;
    return record;
}

std::vector<Weights::Compared> Weights::compare(Meter& meter, abi::Stream stream, Slots& slots, int device) {
    std::vector<cpu::TensorView> before, after;
    std::vector<Compared> compared;
    std::vector<std::size_t> figured;  // in `compared`
    for (auto& [data, w] : weights_) {
        if (!is_on(w, device)) continue;
        compared.push_back({record_of(w), nullptr});
        if (w.copied && Meter::extent_of(data, bytes_of(w.tensor)) != w.extent) {
            w.copied = false;
            ++gone_;
        }
        if (!w.copied) continue;
        figured.push_back(compared.size() - 1);
        before.push_back(view_of(w.copy.data(), w.tensor));
        after.push_back(view_of(data, w.tensor));
    }
    const auto count = static_cast<int>(before.size());
    auto* figures = count > 0 ? slots.take<cpu::Stagnation>(count) : nullptr;
    if (!figures || !meter.stagnation(stream, before.data(), after.data(), count, figures)) return {};
    for (const std::size_t at : figured) compared[at].figure = figures++;
    return compared;
}

}  // namespace mp::raw
