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

Walk::Walk(const TensorView* const* tensors, int count) noexcept : count_(count), dims_(tensors[0]->dims) {
    for (int t = 0; t < count; ++t) {
        data_[t] = static_cast<const char*>(tensors[t]->data);
        width_[t] = width_of(tensors[t]->dtype);
        for (int i = 0; i < dims_; ++i)
            axes_[i].strides[t] = tensors[t]->strides[i] * static_cast<std::int64_t>(width_[t]);
    }
    for (int i = 0; i < dims_; ++i) elements_ *= axes_[i].size = tensors[0]->sizes[i];
    if (elements_ == 0) return;
    drop_ones_and_sort();
    join_neighbours();
    contiguous_ = dims_ == 0;
    if (dims_ != 1) return;
    contiguous_ = true;
    for (int t = 0; t < count_; ++t)
        contiguous_ = contiguous_ && axes_[0].strides[t] == static_cast<std::int64_t>(width_[t]);
}

// Sorts by falling stride of the first tensor; equal strides keep their order.
void Walk::drop_ones_and_sort() noexcept {
    int kept = 0;
    for (int i = 0; i < dims_; ++i) {
        if (axes_[i].size == 1) continue;
        const Axis axis = axes_[i];
        int at = kept++;
        for (; at > 0 && magnitude(axes_[at - 1].strides[0]) < magnitude(axis.strides[0]); --at)
            axes_[at] = axes_[at - 1];
        axes_[at] = axis;
    }
    dims_ = kept;
}

// Joins two axes when, in every tensor, one step of the outer equals all steps of the inner.
void Walk::join_neighbours() noexcept {
    int last = 0;
    for (int i = 1; i < dims_; ++i) {
        bool joins = true;
        for (int t = 0; t < count_; ++t)
            joins = joins && axes_[last].strides[t] == axes_[i].strides[t] * axes_[i].size;
        if (!joins) {
            axes_[++last] = axes_[i];
            continue;
        }
        const std::int64_t size = axes_[last].size * axes_[i].size;
        axes_[last] = axes_[i];
        axes_[last].size = size;
    }
    if (dims_ > 0) dims_ = last + 1;
}

void Walk::copy_run(int t, const std::int64_t* index, std::size_t run, unsigned char* out) const noexcept {
    const char* from = data_[t];
    for (int i = 0; i < dims_; ++i) from += index[i] * axes_[i].strides[t];
    const std::int64_t stride = axes_[dims_ - 1].strides[t];
    if (stride == static_cast<std::int64_t>(width_[t])) {
        std::memcpy(out, from, run * width_[t]);
        return;
    }
    switch (width_[t]) {
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
    for (int i = dims_ - 1; i >= 0; --i) {
        index[i] = first % axes_[i].size;
        first /= axes_[i].size;
    }
    const int inner = dims_ - 1;
    for (std::size_t done = 0; done < elements;) {
        const auto left = static_cast<std::size_t>(axes_[inner].size - index[inner]);
        const std::size_t run = left < elements - done ? left : elements - done;
        for (int t = 0; t < count_; ++t) copy_run(t, index, run, buffers[t] + done * width_[t]);
        done += run;
        index[inner] += static_cast<std::int64_t>(run);
        for (int i = inner; i > 0 && index[i] == axes_[i].size; --i) {
            index[i] = 0;
            ++index[i - 1];
        }
    }
}

}  // namespace mp::cpu
