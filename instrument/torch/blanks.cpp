#include "instrument/torch/blanks.hpp"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <bit>
#include <limits>
#include <utility>

#include "instrument/torch/tensors.hpp"
#include "instrument/torch/thread_state.hpp"

namespace mp::twin {
namespace {

constexpr std::size_t kAlignment = 512;  // as that of torch's own allocator
constexpr auto kLaneOfNaN = std::bit_cast<std::int32_t>(std::numeric_limits<float>::quiet_NaN());

bool has_lanes(const Call& call, const at::Tensor& t) { return call.bytes && t.scalar_type() == at::kByte; }

at::ScalarType blank_type(const Call& call, const at::Tensor& t) {
    return has_lanes(call, t) ? at::kInt : twin_dtype(t.scalar_type());
}

// In a buffer.
std::size_t room_of(const at::Tensor& t, at::ScalarType type) {
    const std::size_t bytes = static_cast<std::size_t>(t.numel()) * c10::elementSize(type);
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// A tensor of the device over memory of the host that it reaches.
at::Tensor tensor_at(void* begin, const at::Tensor& like, at::ScalarType type) {
    const std::size_t bytes = static_cast<std::size_t>(like.numel()) * c10::elementSize(type);
    c10::Storage storage(c10::Storage::use_byte_size_t(), bytes, c10::DataPtr(begin, like.device()), nullptr,
                         false);
    at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), like.key_set(),
                                                               c10::scalarTypeToTypeMeta(type));
    made.unsafeGetTensorImpl()->set_sizes_contiguous(like.sizes());
    return made;
}

template <typename Change>
IValue changed(const IValue& value, const Change& change) {
    if (value.isTensor()) return value.toTensor().defined() ? IValue(change(value.toTensor())) : value;
    if (!value.isList()) return value;
    const c10::List<IValue> list = value.toList();
    c10::impl::GenericList all(list.elementType());
    all.reserve(list.size());
    for (std::size_t i = 0; i < list.size(); ++i) all.push_back(changed(list.get(i), change));
    return all;
}

}  // namespace

// A buffer that became too small stays: the device may still use it. Each is at least twice as large as the one before.
Blanks::Buffer Blanks::of_stream(const c10::Stream& stream, std::size_t bytes) {
    {
        const std::lock_guard lock(mutex_);
        const Buffer known = buffers_[stream];
        if (known.bytes >= bytes) return known;
    }
    const std::size_t size = std::bit_ceil(bytes);
    const Buffer fresh{static_cast<std::byte*>(late_.pin(size)), size};
    if (!fresh.begin) return {};
    const std::lock_guard lock(mutex_);
    return buffers_[stream] = fresh;
}

// Empty where the arguments are not on a device, or the host has no memory left.
Blanks::Room Blanks::room_for(const Call& call) {
    std::size_t bytes = 0;
    at::Tensor one;
    for (const IValue& value : call.real)
        for_each_tensor(value, [&](const at::Tensor& t) {
            if (!late_.serves(t)) return;
            bytes += room_of(t, blank_type(call, t));
            one = t;
        });
    if (bytes == 0) return {};
    return of_stream(c10::impl::VirtualGuardImpl(one.device().type()).getStream(one.device()), bytes);
}

void Blanks::prepare(Call& call) {
    const TwinScope scope;
    call.bytes = gathers_bytes(call);
    Room room = room_for(call);
    const auto blank = [&](const at::Tensor& t) {
        const at::ScalarType type = blank_type(call, t);
        const std::size_t wanted = room_of(t, type);
        const bool fits = late_.serves(t) && t.numel() > 0 && wanted <= room.bytes;
        at::Tensor made =
            fits ? tensor_at(room.begin, t, type) : at::empty(t.sizes(), t.options().dtype(type));
        if (fits) room = {room.begin + wanted, room.bytes - wanted};
        if (has_lanes(call, t)) return made.fill_(kLaneOfNaN);
        if (carries_floats(t) && !call.local) return made.fill_(std::numeric_limits<double>::quiet_NaN());
        return made.copy_(t);
    };
    call.written_floats.clear();
    call.written_integers.clear();
    call.shadow.clear();
    for (const IValue& value : call.real) call.shadow.push_back(changed(value, blank));
}

}  // namespace mp::twin
