#include "instrument/torch/integers.hpp"

#include <algorithm>
#include <cmath>

#include "instrument/torch/tensors.hpp"

namespace mp::twin {
namespace {

constexpr std::int64_t kMost = 1 << 16;  // elements

double rounded(double value, at::ScalarType dtype) {
    const auto narrow = static_cast<float>(value);
    return dtype == at::kHalf ? static_cast<float>(c10::Half(narrow))
                              : static_cast<float>(c10::BFloat16(narrow));
}

// Stops at the first value that is not an integer: most casts are of other values.
template <typename At>
std::uint64_t count_lost(std::int64_t elements, at::ScalarType dtype, const At& value_at) {
    std::uint64_t lost = 0;
    for (std::int64_t i = 0; i < std::min(elements, kMost); ++i) {
        const double value = value_at(i);
        if (value != std::trunc(value)) return 0;
        lost += rounded(value, dtype) != value;
    }
    return lost;
}

// start, end and step are known, so the memory of a device is not read.
std::uint64_t lost_by_range(const std::vector<IValue>& arguments, const at::Tensor& result) {
    const auto number = [&](std::size_t i, double otherwise) {
        return arguments.size() > 3 && arguments[i].isScalar() ? arguments[i].toScalar().toDouble()
                                                               : otherwise;
    };
    const double start = number(0, 0), step = number(2, 1);
    if (start != std::trunc(start)) return 0;
    return count_lost(result.numel(), result.scalar_type(),
                      [&](std::int64_t i) { return start + static_cast<double>(i) * step; });
}

template <typename T>
std::uint64_t lost_by_cast(const at::Tensor& source, at::ScalarType dtype) {
    const auto* const values = static_cast<const T*>(source.data_ptr());
    return count_lost(source.numel(), dtype, [&](std::int64_t i) { return static_cast<double>(values[i]); });
}

std::uint64_t lost_by_cast(const at::Tensor& source, at::ScalarType dtype) {
    if (!source.defined() || !has_plain_memory(source) || !source.device().is_cpu() ||
        !source.is_contiguous())
        return 0;
    switch (source.scalar_type()) {
        case at::kLong:
            return lost_by_cast<std::int64_t>(source, dtype);
        case at::kInt:
            return lost_by_cast<std::int32_t>(source, dtype);
        case at::kFloat:
            return lost_by_cast<float>(source, dtype);
        case at::kDouble:
            return lost_by_cast<double>(source, dtype);
        default:
            return 0;
    }
}

}  // namespace

std::uint64_t integers_lost_by(const OpInfo& op, const std::vector<IValue>& arguments,
                               const at::Tensor& result) {
    const at::ScalarType dtype = result.scalar_type();
    if (dtype != at::kBFloat16 && dtype != at::kHalf) return 0;
    if (op.base == "arange") return lost_by_range(arguments, result);
    const IValue& source = arguments[op.base == "copy" ? 1 : 0];
    return source.isTensor() ? lost_by_cast(source.toTensor(), dtype) : 0;
}

}  // namespace mp::twin
