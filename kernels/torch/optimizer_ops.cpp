// torch.ops.mp: the optimizer steps of kernels/cpu, and optimizer state in 8 bits, as ops of PyTorch. A library of its
// own for each torch, which mp_optim loads.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>
#include <torch/version.h>

#include <array>
#include <atomic>
#include <mutex>
#include <vector>

#include "kernels/cpu/blockwise.hpp"
#include "kernels/cpu/optimizer.hpp"
#include "kernels/cuda/optimizer.hpp"
#include "kernels/torch/native_stream.hpp"

#define MP_TORCH_AT_LEAST(major, minor) \
    (TORCH_VERSION_MAJOR > (major) || (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))

namespace mp {
namespace {

using at::Tensor;
using at::TensorList;
#if MP_TORCH_AT_LEAST(2, 4)
template <class T>
using Optional = std::optional<T>;
#else
template <class T>
using Optional = c10::optional<T>;
#endif

constexpr std::int64_t kPiece = std::int64_t{1} << 16;  // elements that a thread takes at once

DType dtype_of(const Tensor& t, const char* what) {
    switch (t.scalar_type()) {
        case at::kFloat:
            return DType::fp32;
        case at::kHalf:
            return DType::fp16;
        case at::kBFloat16:
            return DType::bf16;
        default:
            TORCH_CHECK(false, "mp: ", what, " must be float32, bfloat16 or float16, not ", t.scalar_type());
    }
}

// The lists of one call, weight by weight. An empty list means that there are no such tensors.
struct Weights {
    TensorList masters, gradients, states, squares, copies;

    std::size_t size() const { return gradients.size(); }
    const Tensor& kept(std::size_t i) const { return masters.empty() ? copies[i] : masters[i]; }
};

void check_list(TensorList list, const Weights& all, bool may_be_empty, const char* what) {
    if (list.empty() && may_be_empty) return;
    TORCH_CHECK(list.size() == all.size(), "mp: ", list.size(), " ", what, " for ", all.size(), " gradients");
    for (std::size_t i = 0; i < list.size(); ++i) {
        const Tensor& kept = all.kept(i);
        TORCH_CHECK(list[i].device() == all.gradients[0].device(), "mp: ", what, " must be on one device");
        TORCH_CHECK(list[i].sizes() == kept.sizes() && list[i].strides() == kept.strides() &&
                        list[i].is_non_overlapping_and_dense(),
                    "mp: weight ", i, ": ", what,
                    " must have the sizes and strides of the weight, without gaps");
    }
}

void check_fp32(TensorList list, const char* what) {
    for (const Tensor& t : list) TORCH_CHECK(t.scalar_type() == at::kFloat, "mp: ", what, " must be float32");
}

void check(const Weights& all, bool with_states, bool with_squares) {
    TORCH_CHECK(!all.masters.empty() || !all.copies.empty() || all.size() == 0, "mp: there are no weights");
    check_list(all.masters, all, true, "masters");
    check_list(all.copies, all, true, "copies");
    check_list(all.gradients, all, false, "gradients");
    check_list(all.states, all, !with_states, "states");
    check_list(all.squares, all, !with_squares, "squares");
    check_fp32(all.masters, "masters");
    check_fp32(all.states, "states");
    check_fp32(all.squares, "squares");
}

template <class T>
T* data(TensorList list, std::size_t i) {
    return list.empty() ? nullptr : static_cast<T*>(list[i].data_ptr());
}

// A whole weight. An fp32 copy without a master is the weight; with one it is written afterwards.
cpu::OptimizerRange range_of(const Weights& all, std::size_t i) {
    cpu::OptimizerRange r;
    r.elements = all.gradients[i].numel();
    r.master = data<float>(all.masters, i);
    if (!all.copies.empty() && dtype_of(all.copies[i], "copies") != DType::fp32) {
        r.copy = data<void>(all.copies, i);
        r.copy_dtype = dtype_of(all.copies[i], "copies");
    } else if (all.masters.empty()) {
        r.master = data<float>(all.copies, i);
    }
    r.gradient = data<void>(all.gradients, i);
    r.gradient_dtype = dtype_of(all.gradients[i], "gradients");
    r.state = data<float>(all.states, i);
    r.squares = data<float>(all.squares, i);
    return r;
}

// Elements [from, to) of a weight.
cpu::OptimizerRange part_of(cpu::OptimizerRange r, std::int64_t from, std::int64_t to) {
    const auto width = [](DType dtype) { return dtype == DType::fp32 ? 4 : 2; };
    r.elements = to - from;
    r.first = from;
    if (r.master) r.master += from;
    if (r.copy) r.copy = static_cast<char*>(r.copy) + from * width(r.copy_dtype);
    r.gradient = static_cast<const char*>(r.gradient) + from * width(r.gradient_dtype);
    if (r.state) r.state += from;
    if (r.squares) r.squares += from;
    return r;
}

struct Piece {
    std::size_t weight;
    std::int64_t from, to;
};

std::vector<Piece> pieces_of(const Weights& all) {
    std::vector<Piece> pieces;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const std::int64_t n = all.gradients[i].numel();
        for (std::int64_t at = 0; at < n; at += kPiece) pieces.push_back({i, at, std::min(at + kPiece, n)});
    }
    return pieces;
}

// What autograd must know of a tensor that a kernel has written.
void written(TensorList list) {
    for (const Tensor& t : list)
        if (!t.is_inference()) t.unsafeGetTensorImpl()->bump_version();
}

// What a step is given besides its constants.
struct Setting {
    bool stochastic;
    std::int64_t seed;
    const Optional<Tensor>& grad_scale;
    const Optional<Tensor>& found_inf;
};

std::vector<cpu::OptimizerRange> ranges_of(const Weights& all) {
    std::vector<cpu::OptimizerRange> ranges;
    for (std::size_t i = 0; i < all.size(); ++i) ranges.push_back(range_of(all, i));
    return ranges;
}

template <class Step>
optim::StepCounts step_on_cpu(const Step& step, const Weights& all, const Setting& setting) {
    cpu::OptimizerPass pass;
    pass.stochastic = setting.stochastic;
    if (setting.grad_scale.has_value()) pass.loss_scale = setting.grad_scale->item<float>();
    const std::vector<cpu::OptimizerRange> ranges = ranges_of(all);
    const std::vector<Piece> pieces = pieces_of(all);
    std::vector<optim::StepCounts> counts(pieces.size());
    std::atomic<bool> refused{false};
    const auto run = [&](std::int64_t from, std::int64_t to) {
        for (auto k = static_cast<std::size_t>(from); k < static_cast<std::size_t>(to); ++k) {
            const Piece& piece = pieces[k];
            cpu::OptimizerPass own = pass;
            own.seed = optim::seed_of(static_cast<std::uint64_t>(setting.seed), piece.weight);
            const cpu::OptimizerRange part = part_of(ranges[piece.weight], piece.from, piece.to);
            if (!cpu::optimize(step, part, own, counts[k])) refused = true;
        }
    };
    at::parallel_for(0, static_cast<std::int64_t>(pieces.size()), 1, run);
    TORCH_CHECK(!refused, "mp: the optimizer step refused its tensors");
    optim::StepCounts sum;
    for (const auto& c : counts) {
        sum.elements += c.elements;
        sum.meant_to_move += c.meant_to_move;
        sum.stagnated += c.stagnated;
    }
    return sum;
}

// The kernels, loaded at the first step on a device.
const cuda::Optimizer& optimizer_on(c10::Device device) {
    static std::array<cuda::Optimizer, 64> loaded;
    static std::mutex mutex;
    const auto index = static_cast<std::size_t>(device.index());
    TORCH_CHECK(index < loaded.size(), "mp: there is no support for device ", index);
    const std::lock_guard lock(mutex);
    const cuda::Outcome outcome = loaded[index].load();
    TORCH_CHECK(outcome, "mp: the optimizers' kernels are not loaded: ", name_of(outcome.status));
    return loaded[index];
}

cuda::Stream stream_on(c10::Device device) {
    const auto& streams = *c10::impl::getDeviceGuardImpl(c10::DeviceType::CUDA);
    return native_stream(streams, streams.getStream(device));
}

// Adds to `counts`, on the device, what the step does there.
template <class Step>
void step_on_cuda(const Step& step, const Weights& all, const Setting& setting, Tensor& counts) {
    const c10::Device device = all.gradients[0].device();
    const c10::DeviceGuard guard(device);
    const auto scalar = [&](const Optional<Tensor>& t) -> const float* {
        if (!t.has_value()) return nullptr;
        TORCH_CHECK(t->device() == device && t->scalar_type() == at::kFloat && t->numel() == 1,
                    "mp: grad_scale and found_inf must be float32 numbers on the weights' device");
        return t->data_ptr<float>();
    };
    cuda::DevicePass pass;
    pass.loss_scale = scalar(setting.grad_scale);
    pass.found_inf = scalar(setting.found_inf);
    pass.counts = reinterpret_cast<cuda::OptimizerCounts*>(counts.data_ptr<std::int64_t>() + 1);
    pass.stochastic = setting.stochastic;
    pass.seed = static_cast<std::uint64_t>(setting.seed);
    const std::vector<cpu::OptimizerRange> ranges = ranges_of(all);
    const cuda::Outcome outcome = optimizer_on(device).step(stream_on(device), step, ranges.data(),
                                                            static_cast<int>(ranges.size()), pass);
    TORCH_CHECK(outcome, "mp: the optimizer step was not launched: ", name_of(outcome.status), " (",
                outcome.code, ")");
}

// Runs the step on all weights and returns elements, meant to move, stagnated, on the device of the weights.
template <class Step>
Tensor run(const Step& step, const Weights& all, const Setting& setting) {
    Tensor counts = at::zeros({3}, all.gradients[0].options().dtype(at::kLong));
    if (all.gradients[0].is_cpu()) {
        if (setting.found_inf.has_value() && setting.found_inf->item<float>() != 0) return counts;
        const optim::StepCounts sum = step_on_cpu(step, all, setting);
        auto* out = counts.data_ptr<std::int64_t>();
        out[0] = static_cast<std::int64_t>(sum.elements);
        out[1] = static_cast<std::int64_t>(sum.meant_to_move);
        out[2] = static_cast<std::int64_t>(sum.stagnated);
    } else {
        std::int64_t elements = 0;
        for (const Tensor& g : all.gradients) elements += g.numel();
        counts[0].fill_(elements);
        step_on_cuda(step, all, setting, counts);
    }
    if (!all.masters.empty())
        for (std::size_t i = 0; i < all.copies.size(); ++i)
            if (all.copies[i].scalar_type() == at::kFloat) all.copies[i].copy_(all.masters[i]);
    written(all.masters);
    written(all.copies);
    written(all.states);
    written(all.squares);
    return counts;
}

Tensor adamw(TensorList masters, TensorList copies, TensorList gradients, TensorList exp_avgs,
             TensorList exp_avg_sqs, double step, double lr, double beta1, double beta2, double weight_decay,
             double eps, bool decoupled, bool maximize, bool stochastic, std::int64_t seed,
             const Optional<Tensor>& grad_scale, const Optional<Tensor>& found_inf) {
    const Weights all{masters, gradients, exp_avgs, exp_avg_sqs, copies};
    check(all, true, true);
    const optim::AdamWOptions options{lr, beta1, beta2, eps, weight_decay, decoupled, maximize};
    return run(optim::at_step(options, step), all, {stochastic, seed, grad_scale, found_inf});
}

Tensor sgd(TensorList masters, TensorList copies, TensorList gradients, TensorList momentum_buffers,
           double lr, double momentum, double dampening, double weight_decay, bool nesterov, bool maximize,
           bool is_first_step, bool stochastic, std::int64_t seed, const Optional<Tensor>& grad_scale,
           const Optional<Tensor>& found_inf) {
    const Weights all{masters, gradients, momentum_buffers, {}, copies};
    check(all, momentum != 0, false);
    const optim::SgdOptions options{lr, momentum, dampening, weight_decay, nesterov, maximize};
    return run(optim::at_step(options, is_first_step), all, {stochastic, seed, grad_scale, found_inf});
}

blockwise::Table table_of(const Tensor& values) {
    TORCH_CHECK(values.is_cpu() && values.scalar_type() == at::kFloat && values.is_contiguous() &&
                    values.numel() == blockwise::kCodes,
                "mp: a table has ", blockwise::kCodes, " float32 values, on the CPU");
    blockwise::Table table;
    TORCH_CHECK(blockwise::make_table(values.data_ptr<float>(), table),
                "mp: a table's values must be finite and ascending");
    return table;
}

// Calls on_cpu(range) for parts of a tensor at once, or on_cuda(kernels, stream, range) for the whole.
template <class OnCpu, class OnCuda>
void for_parts(const Tensor& codes, const Tensor& scales, const OnCpu& on_cpu, const OnCuda& on_cuda) {
    const cpu::QuantizedRange whole{codes.numel(), codes.data_ptr<std::uint8_t>(), scales.data_ptr<float>()};
    if (codes.is_cpu()) {
        at::parallel_for(
            0, scales.numel(), kPiece / blockwise::kBlock, [&](std::int64_t from, std::int64_t to) {
                const std::int64_t first = from * blockwise::kBlock;
                const std::int64_t end = std::min(to * blockwise::kBlock, whole.elements);
                on_cpu(cpu::QuantizedRange{end - first, whole.codes + first, whole.scales + from}, first);
            });
        return;
    }
    const c10::DeviceGuard guard(codes.device());
    const cuda::Outcome outcome = on_cuda(optimizer_on(codes.device()), stream_on(codes.device()), whole);
    TORCH_CHECK(outcome, "mp: the kernel was not launched: ", name_of(outcome.status), " (", outcome.code,
                ")");
}

std::tuple<Tensor, Tensor> quantize(const Tensor& values, const Tensor& table_values) {
    TORCH_CHECK(values.scalar_type() == at::kFloat && values.is_contiguous(),
                "mp: values must be float32 and contiguous, not ", values.scalar_type());
    const blockwise::Table table = table_of(table_values);
    const std::int64_t blocks = (values.numel() + blockwise::kBlock - 1) / blockwise::kBlock;
    Tensor codes = at::empty_like(values, values.options().dtype(at::kByte));
    Tensor scales = at::empty({blocks}, values.options());
    const float* data = values.data_ptr<float>();
    for_parts(
        codes, scales,
        [&](const cpu::QuantizedRange& part, std::int64_t first) {
            cpu::quantize(table, data + first, part);
        },
        [&](const cuda::Optimizer& kernels, cuda::Stream stream, const cpu::QuantizedRange& whole) {
            return kernels.quantize(stream, table, data, whole);
        });
    return {codes, scales};
}

Tensor dequantize(const Tensor& codes, const Tensor& scales, const Tensor& table_values) {
    TORCH_CHECK(codes.scalar_type() == at::kByte && codes.is_contiguous(),
                "mp: codes must be uint8 and contiguous");
    TORCH_CHECK(scales.scalar_type() == at::kFloat && scales.is_contiguous() &&
                    scales.device() == codes.device() &&
                    scales.numel() == (codes.numel() + blockwise::kBlock - 1) / blockwise::kBlock,
                "mp: scales must be float32, one for ", blockwise::kBlock, " codes, on their device");
    const blockwise::Table table = table_of(table_values);
    Tensor values = at::empty_like(codes, codes.options().dtype(at::kFloat));
    float* data = values.data_ptr<float>();
    for_parts(
        codes, scales,
        [&](const cpu::QuantizedRange& part, std::int64_t first) {
            cpu::dequantize(table, part, data + first);
        },
        [&](const cuda::Optimizer& kernels, cuda::Stream stream, const cpu::QuantizedRange& whole) {
            return kernels.dequantize(stream, table, whole, data);
        });
    return values;
}

}  // namespace

TORCH_LIBRARY(mp, m) {
    m.def(
        "adamw_(Tensor(a!)[] masters, Tensor(b!)[] copies, Tensor[] gradients, Tensor(c!)[] exp_avgs, "
        "Tensor(d!)[] exp_avg_sqs, *, float step, float lr, float beta1, float beta2, float weight_decay, "
        "float eps, "
        "bool decoupled, bool maximize, bool stochastic, int seed, Tensor? grad_scale=None, Tensor? "
        "found_inf=None) "
        "-> Tensor");
    m.def(
        "sgd_(Tensor(a!)[] masters, Tensor(b!)[] copies, Tensor[] gradients, Tensor(c!)[] momentum_buffers, "
        "*, "
        "float lr, float momentum, float dampening, float weight_decay, bool nesterov, bool maximize, "
        "bool is_first_step, bool stochastic, int seed, Tensor? grad_scale=None, Tensor? found_inf=None) -> "
        "Tensor");
    m.def("quantize_blockwise(Tensor values, Tensor table) -> (Tensor codes, Tensor scales)");
    m.def("dequantize_blockwise(Tensor codes, Tensor scales, Tensor table) -> Tensor");
}

TORCH_LIBRARY_IMPL(mp, CPU, m) {
    m.impl("adamw_", adamw);
    m.impl("sgd_", sgd);
    m.impl("quantize_blockwise", quantize);
    m.impl("dequantize_blockwise", dequantize);
}

TORCH_LIBRARY_IMPL(mp, CUDA, m) {
    m.impl("adamw_", adamw);
    m.impl("sgd_", sgd);
    m.impl("quantize_blockwise", quantize);
    m.impl("dequantize_blockwise", dequantize);
}

}  // namespace mp
