#include "kernels/cpu/walk.hpp"

#include <cstring>

#include "kernels/numerics/float_format.hpp"

namespace mp::cpu {
namespace {

std::int64_t magnitude(std::int64_t stride) { return stride < 0 ? -stride : stride; }

template <std::size_t Width>
void copy_strided(const char* from, std::int64_t stride, std::size_t n, unsigned char* out) {
    for (std::size_t i = 0; i < n; ++i, from += stride, out += Width) std::memcpy(out, from, Width);
}

}  // namespace

std::size_t width_of(DType dtype) noexcept {
    const FloatFormat* format = dtype == DType::tf32 ? nullptr : format_of(dtype);
    return format ? static_cast<std::size_t>(format->width()) / 8 : 0;
}

// Not in measure.cpp, which brings the kernels with it.
TensorView contiguous(const void* data, DType dtype, std::int64_t elements) noexcept {
    TensorView view{data, dtype, 1, {}, {}};
    view.sizes[0] = elements;
    view.strides[0] = 1;
    return view;
}

bool usable(const TensorView& view) noexcept {
    if (width_of(view.dtype) == 0 || view.dims < 0 || view.dims > kMaxDims) return false;
    bool empty = false;
    for (int i = 0; i < view.dims; ++i) {
        if (view.sizes[i] < 0) return false;
        empty = empty || view.sizes[i] == 0;
    }
    return empty || view.data != nullptr;
}

bool same_sizes(const TensorView& a, const TensorView& b) noexcept {
    if (a.dims != b.dims) return false;
    for (int i = 0; i < a.dims; ++i)
        if (a.sizes[i] != b.sizes[i]) return false;
    return true;
}

Layout::Layout(const TensorView* const* tensors, int tensor_count, Order order) noexcept
    : count(tensor_count), dims(tensors[0]->dims) {
    for (int t = 0; t < count; ++t) {
        width[t] = width_of(tensors[t]->dtype);
        for (int i = 0; i < dims; ++i)
            axes[i].strides[t] = tensors[t]->strides[i] * static_cast<std::int64_t>(width[t]);
    }
    for (int i = 0; i < dims; ++i) elements *= axes[i].size = tensors[0]->sizes[i];
    if (elements == 0) return;
    drop_ones();
    if (order == Order::memory) sort();
    join_neighbours();
    contiguous = dims == 0;
    if (dims != 1) return;
    contiguous = true;
    for (int t = 0; t < count; ++t)
        contiguous = contiguous && axes[0].strides[t] == static_cast<std::int64_t>(width[t]);
}

void Layout::drop_ones() noexcept {
    int kept = 0;
    for (int i = 0; i < dims; ++i)
        if (axes[i].size != 1) axes[kept++] = axes[i];
    dims = kept;
}

// Sorts by falling stride of the first tensor; equal strides keep their order.
void Layout::sort() noexcept {
    for (int i = 1; i < dims; ++i) {
        const Axis axis = axes[i];
        int at = i;
        for (; at > 0 && magnitude(axes[at - 1].strides[0]) < magnitude(axis.strides[0]); --at)
            axes[at] = axes[at - 1];
        axes[at] = axis;
    }
}

// Joins two axes when, in every tensor, one step of the outer equals all steps of the inner.
void Layout::join_neighbours() noexcept {
    int last = 0;
    for (int i = 1; i < dims; ++i) {
        bool joins = true;
        for (int t = 0; t < count; ++t)
            joins = joins && axes[last].strides[t] == axes[i].strides[t] * axes[i].size;
        if (!joins) {
            axes[++last] = axes[i];
            continue;
        }
        const std::int64_t size = axes[last].size * axes[i].size;
        axes[last] = axes[i];
        axes[last].size = size;
    }
    if (dims > 0) dims = last + 1;
}

Walk::Walk(const TensorView* const* tensors, int count) noexcept
    : layout_(tensors, count, Layout::Order::memory) {
    for (int t = 0; t < count; ++t) data_[t] = static_cast<const char*>(tensors[t]->data);
}

void Walk::copy_run(int t, const std::int64_t* index, std::size_t run, unsigned char* out) const noexcept {
    const char* from = data_[t];
    for (int i = 0; i < layout_.dims; ++i) from += index[i] * layout_.axes[i].strides[t];
    const std::int64_t stride = layout_.axes[layout_.dims - 1].strides[t];
    if (stride == static_cast<std::int64_t>(layout_.width[t])) {
        std::memcpy(out, from, run * layout_.width[t]);
        return;
    }
    switch (layout_.width[t]) {
        case 1:
            return copy_strided<1>(from, stride, run, out);
        case 2:
            return copy_strided<2>(from, stride, run, out);
        case 4:
            return copy_strided<4>(from, stride, run, out);
        default:
            return copy_strided<8>(from, stride, run, out);
    }
}

// Copies the elements first, first + 1, ... in the order of the axes.
void Walk::gather(std::int64_t first, std::size_t elements, unsigned char* const* buffers) const noexcept {
    std::int64_t index[kMaxDims] = {};
    for (int i = layout_.dims - 1; i >= 0; --i) {
        index[i] = first % layout_.axes[i].size;
        first /= layout_.axes[i].size;
    }
    const int inner = layout_.dims - 1;
    for (std::size_t done = 0; done < elements;) {
        const auto left = static_cast<std::size_t>(layout_.axes[inner].size - index[inner]);
        const std::size_t run = left < elements - done ? left : elements - done;
        for (int t = 0; t < layout_.count; ++t) copy_run(t, index, run, buffers[t] + done * layout_.width[t]);
        done += run;
        index[inner] += static_cast<std::int64_t>(run);
        for (int i = inner; i > 0 && index[i] == layout_.axes[i].size; --i) {
            index[i] = 0;
            ++index[i - 1];
        }
    }
}

}  // namespace mp::cpu
