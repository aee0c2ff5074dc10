#include "instrument/torch/parameters.hpp"

#include <cmath>
#include <type_traits>

#include "instrument/torch/safetensors.hpp"
#include "instrument/torch/shadow_map.hpp"
#include "instrument/torch/thread_state.hpp"

namespace mp::twin {
namespace {

constexpr std::int64_t kBlock = 1024;
constexpr int kLanes = 16;

struct BlockSums {
    double error[kLanes] = {}, twin[kLanes] = {};
    std::uint32_t differ[kLanes] = {};
    std::uint32_t exponent_full = 0;  // whether a NaN or an infinity was met; then the sums mean nothing
};

// Lanes so that the compiler may use vectors without changing the order of any sum: the result is the same
// on every machine.
__attribute__((optimize("O3"), target_clones("avx2", "default"))) void add_block(const float* real, const float* twin,
                                                                                BlockSums& sums) {
    constexpr std::uint32_t kExponent = 0x7F800000;
    for (std::int64_t i = 0; i < kBlock; i += kLanes) {
        for (int lane = 0; lane < kLanes; ++lane) {
            const float x = real[i + lane], y = twin[i + lane];
            const double e = static_cast<double>(x) - static_cast<double>(y);
            sums.error[lane] += e * e;
            sums.twin[lane] += static_cast<double>(y) * static_cast<double>(y);
            sums.differ[lane] += x != y;
            const std::uint32_t bx = __builtin_bit_cast(std::uint32_t, x), by = __builtin_bit_cast(std::uint32_t, y);
            sums.exponent_full |= ((bx & kExponent) == kExponent) | ((by & kExponent) == kExponent);
        }
    }
}

template <typename Real, typename Other>
void add_slowly(const Real* real, const Other* twin, std::int64_t elements, Difference& d) {
    for (std::int64_t i = 0; i < elements; ++i) {
        const double x = static_cast<double>(real[i]);
        const double y = static_cast<double>(twin[i]);
        const bool finite_x = std::isfinite(x), finite_y = std::isfinite(y);
        d.nonfinite_real += !finite_x;
        d.nonfinite_twin += !finite_y;
        d.differ += x != y && !(x != x && y != y);
        if (!finite_x || !finite_y) continue;
        d.compared += 1;
        d.error_squares += (x - y) * (x - y);
        d.twin_squares += y * y;
    }
}

template <typename Real>
Difference difference_of(const Real* real, const float* twin, std::int64_t elements) {
    Difference d;
    d.elements = static_cast<std::uint64_t>(elements);
    std::int64_t at = 0;
    for (; at + kBlock <= elements; at += kBlock) {
        float widened[kBlock];
        const float* x = widened;
        if constexpr (std::is_same_v<Real, float>) x = real + at;
        else for (std::int64_t i = 0; i < kBlock; ++i) widened[i] = static_cast<float>(real[at + i]);
        BlockSums sums;
        add_block(x, twin + at, sums);
        if (sums.exponent_full) {
            add_slowly(real + at, twin + at, kBlock, d);
            continue;
        }
        d.compared += kBlock;
        for (int lane = 0; lane < kLanes; ++lane) {
            d.error_squares += sums.error[lane];
            d.twin_squares += sums.twin[lane];
            d.differ += sums.differ[lane];
        }
    }
    add_slowly(real + at, twin + at, elements - at, d);
    return d;
}

template <typename Real>
Difference against(const at::Tensor& real, const at::Tensor& twin) {
    if (twin.scalar_type() != at::kDouble)
        return difference_of(real.data_ptr<Real>(), twin.data_ptr<float>(), real.numel());
    Difference d;
    d.elements = static_cast<std::uint64_t>(real.numel());
    add_slowly(real.data_ptr<Real>(), twin.data_ptr<double>(), real.numel(), d);
    return d;
}

std::string kind_prefix(trace::TensorKind kind) {
    switch (kind) {
        case trace::TensorKind::gradient: return "grad/";
        case trace::TensorKind::optimizer_state: return "optim/";
        case trace::TensorKind::buffer: return "buffer/";
        case trace::TensorKind::parameter: break;
    }
    return "";
}

// The gradient of a parameter without touching its graph; undefined when there is none.
at::Tensor gradient_of(const at::Tensor& t) {
    const c10::TensorImpl* const impl = t.unsafeGetTensorImpl();
    return impl->autograd_meta() ? impl->grad() : at::Tensor();
}

}  // namespace

void Difference::merge(const Difference& o) {
    elements += o.elements;
    compared += o.compared;
    nonfinite_real += o.nonfinite_real;
    nonfinite_twin += o.nonfinite_twin;
    differ += o.differ;
    error_squares += o.error_squares;
    twin_squares += o.twin_squares;
}

Difference difference(const at::Tensor& real, const at::Tensor& twin) {
    const at::Tensor x = real.detach().cpu().contiguous();
    at::Tensor y = twin.detach().cpu().contiguous();
    if (y.scalar_type() != at::kDouble && y.scalar_type() != at::kFloat) y = y.to(at::kFloat);
    switch (x.scalar_type()) {
        case at::kFloat: return against<float>(x, y);
        case at::kDouble: return against<double>(x, y.to(at::kDouble));
        case at::kHalf: return against<at::Half>(x, y);
        case at::kBFloat16: return against<at::BFloat16>(x, y);
        default: return against<float>(x.to(at::kFloat), y);
    }
}

DType dtype_of(at::ScalarType type) {
    switch (type) {
        case at::kDouble: return DType::fp64;
        case at::kFloat: return DType::fp32;
        case at::kHalf: return DType::fp16;
        case at::kBFloat16: return DType::bf16;
        case at::kLong: return DType::int64;
        case at::kInt: return DType::int32;
        case at::kShort: return DType::int16;
        case at::kChar: return DType::int8;
        case at::kByte: return DType::uint8;
        case at::kBool: return DType::boolean;
#if MP_TORCH_AT_LEAST(2, 4)
        case at::kFloat8_e4m3fn: return DType::e4m3;
        case at::kFloat8_e5m2: return DType::e5m2;
#endif
        default: return DType::unknown;
    }
}

void Parameters::add(trace::TensorKind kind, std::string_view name, const at::Tensor& t) {
    if (!t.defined()) return;
    Named named{kind, std::string(name),
                c10::weak_intrusive_ptr<c10::TensorImpl>(t.getIntrusivePtr()), keep_ ? t : at::Tensor()};
    const std::string key = kind_prefix(kind) + named.name;
    const auto [it, fresh] = by_name_.emplace(key, named_.size());
    if (fresh) named_.push_back(std::move(named));
    else named_[it->second] = std::move(named);
}

void Parameters::add_leaf(const at::Tensor& t) {
    if (!t.has_storage()) return;
    const c10::StorageImpl* storage = t.storage().unsafeGetStorageImpl();
    if (leaves_.count(storage)) return;
    leaves_.emplace(storage, named_.size());
    add(trace::TensorKind::parameter, "parameter" + std::to_string(leaves_.size() - 1), t);
}

bool Parameters::is_leaf_storage(const c10::StorageImpl* storage) const { return leaves_.count(storage) != 0; }
bool Parameters::is_gradient_storage(const c10::StorageImpl* storage) const { return gradients_.count(storage) != 0; }

void Parameters::refresh_gradient_storages() {
    gradients_.clear();
    for (const Live& l : live()) {
        if (l.kind != trace::TensorKind::parameter) continue;
        const at::Tensor gradient = gradient_of(l.tensor);
        if (gradient.defined() && gradient.has_storage())
            gradients_.emplace(gradient.storage().unsafeGetStorageImpl(), gradients_.size());
    }
}

std::uint64_t Parameters::leaves_fingerprint() const {
    std::uint64_t hash = 0;
    for (const Live& l : live())
        if (l.kind == trace::TensorKind::parameter && has_plain_memory(l.tensor))
            hash = hash * 31 + fingerprint_of(l.tensor);
    return hash;
}

std::vector<Parameters::Live> Parameters::live() const {
    std::vector<Live> alive;
    for (const Named& named : named_)
        if (auto tensor = named.tensor.lock()) alive.push_back({named.kind, named.name, at::Tensor(std::move(tensor))});
    return alive;
}

std::uint64_t Parameters::elements() const {
    std::uint64_t total = 0;
    for (const Live& l : live())
        if (l.kind == trace::TensorKind::parameter) total += static_cast<std::uint64_t>(l.tensor.numel());
    return total;
}

std::vector<trace::TensorRecord> Parameters::measure(ShadowMap& shadows, trace::TensorKind wanted) const {
    const TwinScope scope;
    std::vector<trace::TensorRecord> records;
    const auto measure_one = [&](trace::TensorKind kind, const std::string& name, const at::Tensor& t) {
        if (!has_plain_memory(t) || !carries_floats(t) || t.is_complex()) return;
        const ShadowMap::Lookup found = shadows.find(t);
        if (!found.shadow.defined()) return;
        const Difference d = difference(t, found.shadow);
        records.push_back({kind, name, dtype_of(t.scalar_type()), d.elements, d.compared, d.nonfinite_real,
                           d.nonfinite_twin, d.differ, d.error_squares, d.twin_squares});
    };
    for (const Live& l : live()) {
        if (l.kind == wanted) measure_one(l.kind, l.name, l.tensor);
        if (l.kind != trace::TensorKind::parameter || wanted != trace::TensorKind::gradient) continue;
        const at::Tensor gradient = gradient_of(l.tensor);
        if (gradient.defined()) measure_one(trace::TensorKind::gradient, l.name, gradient);
    }
    return records;
}

std::string Parameters::save(const std::string& path, ShadowMap& shadows, bool twin,
                             const std::vector<double>& losses) const {
    const TwinScope scope;
    std::vector<NamedTensor> tensors;
    const auto add_one = [&](const std::string& name, const at::Tensor& t) {
        if (!has_plain_memory(t) || !carries_floats(t) || t.is_complex()) return;
        at::Tensor value = t;
        if (twin) {
            const ShadowMap::Lookup found = shadows.find(t);
            if (found.shadow.defined()) value = found.shadow;
        }
        tensors.push_back({name, value.detach().cpu().to(at::kFloat).contiguous()});
    };
    for (const Live& l : live()) {
        add_one(kind_prefix(l.kind) + l.name, l.tensor);
        if (l.kind != trace::TensorKind::parameter) continue;
        const at::Tensor gradient = gradient_of(l.tensor);
        const bool own = by_name_.count("grad/" + l.name) == 0;
        if (gradient.defined() && own) add_one("grad/" + l.name, gradient);
    }
    at::Tensor curve = at::empty({static_cast<std::int64_t>(losses.size())}, at::kDouble);
    std::copy(losses.begin(), losses.end(), curve.data_ptr<double>());
    tensors.push_back({"losses", curve});
    return write_safetensors(path, tensors);
}

}  // namespace mp::twin
