// The ops of the device: each is described by a run on the meta device, and done later, on its stream, by the kernels
// of the CPU over the memory as the device sees it.
#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/ConvUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "tests/fakes/cuda/device.hpp"
#include "tests/fakes/torch/late_device.hpp"

namespace mp::late {
namespace {

using c10::IValue;
using Stack = torch::jit::Stack;

// A queue that is full: the thread waits, within the copy or the measuring kernel that it launches, until another
// thread has launched an op. So do GPUs whose kernels wait for each other, as those of NCCL, and whose threads share a
// process.
std::atomic<bool> next_copy_waits{false}, next_kernel_waits{false}, waits{false}, waited{false};
std::atomic<std::uint64_t> launches{0};

void wait_for_another_launch() {
    waited = waits = true;
    for (const std::uint64_t before = launches; launches == before;)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    waits = false;
}

const struct WatchKernels {
    WatchKernels() {
        fake::set_hook([](bool enter, const fake::Call&) {
            if (enter && next_kernel_waits.exchange(false)) wait_for_another_launch();
        });
    }
} watch_kernels;

void launch(fake::Work work, bool copy = false) {
    if (copy && next_copy_waits.exchange(false)) wait_for_another_launch();
    ++launches;
    const fake::Inside inside;
    fake::enqueue(native(current_stream()), std::move(work));
}

bool is_here(const at::Tensor& t) { return t.defined() && t.device().type() == kType; }

at::Tensor tensor_over(void* data, const at::Tensor& like) {
    const std::size_t bytes =
        at::detail::computeStorageNbytes(like.sizes(), like.strides(), like.element_size());
    c10::Storage storage(c10::Storage::use_byte_size_t(), bytes,
                         c10::DataPtr(data, c10::Device(c10::DeviceType::CPU)), nullptr, false);
    at::Tensor t = at::detail::make_tensor<c10::TensorImpl>(
        std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU), like.dtype());
    t.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(), like.strides());
    if (like.is_conj()) t._set_conj(true);
    if (like.is_neg()) t._set_neg(true);
    return t;
}

at::Tensor describe(const at::Tensor& t) {
    at::Tensor meta = at::detail::empty_strided_meta(t.sizes(), t.strides(), t.scalar_type());
    if (t.unsafeGetTensorImpl()->is_wrapped_number()) meta.unsafeGetTensorImpl()->set_wrapped_number(true);
    return meta;
}

at::Tensor zeros_like(const at::Tensor& t) {
    return at::zeros(t.sizes(), at::TensorOptions(t.scalar_type()).device(at::kCPU));
}

// Scalars of the CPU are arguments of a kernel: it gets their present value.
at::Tensor present(const at::Tensor& t) {
    at::Tensor copy = t.detach().clone();
    if (t.unsafeGetTensorImpl()->is_wrapped_number()) copy.unsafeGetTensorImpl()->set_wrapped_number(true);
    return copy;
}

template <typename Change>
IValue changed(const IValue& value, const Change& change) {
    if (value.isTensor()) return value.toTensor().defined() ? IValue(change(value.toTensor())) : value;
    if (!value.isList()) return value;
    const c10::List<IValue> list = value.toList();
    c10::impl::GenericList all(list.elementType());
    for (std::size_t i = 0; i < list.size(); ++i) all.push_back(changed(list.get(i), change));
    return all;
}

template <typename Visit>
void for_each_tensor(const IValue& value, const Visit& visit) {
    changed(value, [&](const at::Tensor& t) { return visit(t), t; });
}

// The arguments of a call elsewhere. Arguments that name a device name the other one.
template <typename Change>
Stack arguments_for(c10::DeviceType type, const Stack& given, const Change& change) {
    Stack stack;
    for (const IValue& value : given)
        stack.push_back(value.isDevice() ? IValue(c10::Device(type)) : changed(value, change));
    return stack;
}

Stack for_device(const Stack& given) {
    return arguments_for(c10::DeviceType::CPU, given,
                         [](const at::Tensor& t) { return is_here(t) ? seen_by_device(t) : present(t); });
}

// Torch hands several out= arguments back by reference, after it has dropped them from the stack.
void call(const c10::OperatorHandle& op, Stack& stack) {
    const Stack held = stack;
    const at::AutoDispatchBelowADInplaceOrView below;
    const c10::impl::ExcludeDispatchKeyGuard plain(c10::autocast_dispatch_keyset);
    op.callBoxed(&stack);
}

// Whether the results on the CPU have other types than elsewhere. They are described by a run on zeros.
bool has_other_results_here(std::string_view name) {
    return name == "aten::native_layer_norm" || name == "aten::native_group_norm";
}

// What an op gives back: an argument that it has written, or a new tensor.
const IValue* written_argument(const c10::FunctionSchema& schema, std::size_t result,
                               const Stack& arguments) {
    const auto* const alias_of = schema.returns()[result].alias_info();
    if (!alias_of) return nullptr;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const auto* const known = schema.arguments()[i].alias_info();
        if (known && known->beforeSets() == alias_of->beforeSets()) return &arguments[i];
    }
    return nullptr;
}

// One call of an op on tensors of the device.
class Call {
public:
    Call(const c10::OperatorHandle& op, Stack* stack) : op_(op), stack_(*stack) {
        given_ = torch::jit::pop(stack_, op.schema().arguments().size());
        own_numbers();
    }

    // Describes the results, and does the op later.
    void later() {
        const std::optional<Stack> described = needs_description() ? description() : Stack{};
        if (!described) return at_once();
        const Stack& meta = *described;
        const auto& schema = op_.schema();
        for (std::size_t i = 0; i < schema.returns().size(); ++i) {
            const IValue* const known = written_argument(schema, i, given_);
            if (known) fit(*known, meta.empty() ? *known : meta[i]);
            results_.push_back(known ? *known : changed(meta[i], [](const at::Tensor& t) {
                return empty(t.sizes(), t.strides(), t.scalar_type());
            }));
        }
        auto work = [op = op_, stack = for_device(given_), into = for_device(results_)]() mutable {
            run(op, stack, into);
        };
        launch(std::move(work));
        finish();
    }

    // For ops whose results have sizes that their values decide. The program waits for these.
    void counted() {
        synchronise(current_stream());
        at_once();
    }

private:
    // None if torch cannot tell.
    std::optional<Stack> description() const {
        try {
            Stack meta = has_other_results_here(op_.schema().name())
                             ? arguments_for(c10::DeviceType::CPU, given_, zeros_like)
                             : arguments_for(c10::DeviceType::Meta, given_, describe);
            call(op_, meta);
            return meta;
        } catch (const c10::Error&) {
            return std::nullopt;
        }
    }

    bool needs_description() const {
        for (std::size_t i = 0; i < op_.schema().returns().size(); ++i) {
            const IValue* const known = written_argument(op_.schema(), i, given_);
            if (!known) return true;
            bool empty = false;  // an out= argument that the op resizes
            for_each_tensor(*known, [&](const at::Tensor& t) { empty |= t.numel() == 0; });
            if (empty) return true;
        }
        return false;
    }

    static void fit(const IValue& real, const IValue& meta) {
        if (!real.isTensor() || !meta.isTensor() || real.toTensor().sizes() == meta.toTensor().sizes())
            return;
        real.toTensor().resize_(meta.toTensor().sizes());
    }

    static void run(const c10::OperatorHandle& op, Stack& stack, const Stack& into) {
        try {
            call(op, stack);
            for (std::size_t i = 0; i < into.size(); ++i) keep(into[i], stack[i]);
        } catch (const std::exception& e) {
            std::fprintf(stderr, "late: %s: %s\n", c10::toString(op.operator_name()).c_str(), e.what());
            std::abort();
        }
    }

    static void keep(const IValue& into, const IValue& result) {
        if (into.isTensor() && into.toTensor().defined() && result.toTensor().defined() &&
            into.toTensor().data_ptr() != result.toTensor().data_ptr())
            into.toTensor().copy_(result.toTensor());
        if (!into.isList()) return;
        const c10::List<IValue> places = into.toList(), values = result.toList();
        for (std::size_t i = 0; i < places.size(); ++i) keep(places.get(i), values.get(i));
    }

    void at_once() {
        drain();
        Stack stack = for_device(given_);
        call(op_, stack);
        for (std::size_t i = 0; i < stack.size(); ++i) {
            const IValue* const known = written_argument(op_.schema(), i, given_);
            if (known) fit(*known, stack[i]);
            const auto fresh = [](const at::Tensor& t) {
                return empty(t.sizes(), t.strides(), t.scalar_type());
            };
            results_.push_back(known ? *known : changed(stack[i], fresh));
            if (results_.back().isTensor() && is_here(results_.back().toTensor()))
                seen_by_device(results_.back().toTensor()).copy_(stack[i].toTensor());
        }
        finish();
    }

    void own_numbers() {
        if (!op_.hasTag(at::Tag::nondeterministic_seeded)) return;
        for (std::size_t i = 0; i < given_.size(); ++i) {
            const c10::TypePtr type = op_.schema().arguments()[i].type();
            const auto* const optional = type->castRaw<c10::OptionalType>();
            if (!optional || optional->getElementType()->kind() != c10::TypeKind::GeneratorType) continue;
            given_[i] = next_numbers(given_[i].toOptional<at::Generator>());
            return;
        }
        TORCH_CHECK(false, "late: no random numbers for ", op_.schema());
    }

    void finish() {
        for (IValue& result : results_) stack_.push_back(std::move(result));
    }

    const c10::OperatorHandle& op_;
    Stack& stack_;
    Stack given_, results_;
};

bool decides_by_values(std::string_view name) {
    static constexpr std::string_view kNames[] = {"aten::nonzero", "aten::masked_select", "aten::equal",
                                                  "aten::_unique2", "aten::unique_dim"};
    return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

void fallback(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
    Call c(op, stack);
    if (decides_by_values(op.schema().name()))
        c.counted();
    else
        c.later();
}

// ---- Ops that have no kernel on the CPU, or are about memory. -----------------------------------------------

at::Tensor empty_memory_format(at::IntArrayRef sizes, std::optional<at::ScalarType> type,
                               std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>,
                               std::optional<at::MemoryFormat> format) {
    return at::detail::empty_generic(sizes, allocator(), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                     c10::dtype_or_default(type), format);
}

at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides, std::optional<at::ScalarType> type,
                         std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>) {
    return empty(sizes, strides, c10::dtype_or_default(type));
}

const at::Tensor& resize(const at::Tensor& t, at::IntArrayRef sizes, std::optional<at::MemoryFormat> format) {
    const std::size_t bytes =
        at::detail::computeStorageNbytesContiguous(sizes, t.element_size(), t.storage_offset());
    if (t.storage().nbytes() < bytes)
        at::detail::getPrivateUse1Hooks().resizePrivateUse1Bytes(t.storage(), bytes);
    t.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
    if (format && *format != at::MemoryFormat::Preserve)
        t.unsafeGetTensorImpl()->empty_tensor_restride(*format);
    return t;
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
    const bool reads = is_here(from) && !is_here(to);
    auto work = [source = is_here(from) ? seen_by_device(from) : present(from),
                 into = is_here(to) ? seen_by_device(to) : to] { into.copy_(source); };
    launch(std::move(work), true);
    if (reads && !non_blocking) synchronise(current_stream());
    return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
    to.resize_(from.sizes());
    return copy_from(from, to, false);
}

at::Scalar read_value(const at::Tensor& t) {
    synchronise(current_stream());
    return seen_by_device(t).item();
}

void record(at::Tensor& t, c10::Stream stream) { record_stream(t.storage().data_ptr(), stream); }

std::tuple<at::Tensor, at::Tensor> dropout(const at::Tensor& x, double p, std::optional<bool> train) {
    TORCH_CHECK(train.value_or(true) && p < 1, "late: dropout that draws nothing");
    const at::Tensor mask = at::empty_like(x, x.options().dtype(at::kBool)).bernoulli_(1 - p);
    const at::Tensor y = (x.to(at::kFloat) * mask * (1 / (1 - p))).to(x.scalar_type());
    return {y, mask};
}

// The cell of an LSTM, which the CPU has in parts only. It computes in fp32.
at::Tensor wide(const at::Tensor& t) { return t.to(at::kFloat); }

std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell(const at::Tensor& inputs, const at::Tensor& hidden,
                                                         const at::Tensor& before,
                                                         const std::optional<at::Tensor>& bias_1,
                                                         const std::optional<at::Tensor>& bias_2) {
    at::Tensor sums = wide(inputs) + wide(hidden);
    for (const auto& bias : {bias_1, bias_2})
        if (bias && bias->defined()) sums = sums + wide(*bias);
    const auto gates = sums.chunk(4, 1);
    const at::Tensor in = gates[0].sigmoid(), forget = gates[1].sigmoid(), cell = gates[2].tanh(),
                     out = gates[3].sigmoid();
    const at::Tensor after = forget * wide(before) + in * cell;
    const at::ScalarType type = inputs.scalar_type();
    return {(out * after.tanh()).to(type), after.to(type), at::cat({in, forget, cell, out}, 1).to(type)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell_backward(
    const std::optional<at::Tensor>& of_hidden, const std::optional<at::Tensor>& of_cell,
    const at::Tensor& before, const at::Tensor& after, const at::Tensor& workspace, bool has_bias) {
    const auto gates = wide(workspace).chunk(4, 1);
    const at::Tensor &in = gates[0], &forget = gates[1], &cell = gates[2], &out = gates[3];
    const auto given = [&](const std::optional<at::Tensor>& t) {
        return t && t->defined() ? wide(*t) : at::zeros_like(in);
    };
    const at::Tensor hidden = given(of_hidden), bent = wide(after).tanh();
    const at::Tensor flow = hidden * out * (1 - bent * bent) + given(of_cell);
    const at::Tensor all = at::cat({flow * cell * in * (1 - in), flow * wide(before) * forget * (1 - forget),
                                    flow * in * (1 - cell * cell), hidden * bent * out * (1 - out)},
                                   1)
                               .to(workspace.scalar_type());
    return {all, (flow * forget).to(before.scalar_type()), has_bias ? all.sum(0) : at::Tensor()};
}

// Convolutions by their ops on the CPU, which torch reaches by other names there.
void run_as(const char* name, Stack given, Stack* stack) {
    const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
    for (IValue& value : given) stack->push_back(std::move(value));
    Call(op, stack).later();
}

void convolution(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
    run_as("aten::convolution", torch::jit::pop(*stack, op.schema().arguments().size()), stack);
}

// How often a backward of cuDNN was asked for without TF32 and with it, and how often the program's own found it off.
std::atomic<std::uint64_t> ieee_backwards{0}, tf32_backwards{0}, changed_settings{0};

std::tuple<at::Tensor, at::Tensor> cudnn_backward(const at::Tensor& input, const at::Tensor& gradient,
                                                  const at::Tensor& weight, at::IntArrayRef padding,
                                                  at::IntArrayRef stride, at::IntArrayRef dilation,
                                                  std::int64_t groups, bool, bool, bool allow_tf32,
                                                  std::array<bool, 2> mask) {
    ++(allow_tf32 ? tf32_backwards : ieee_backwards);
    const std::vector<std::int64_t> none(stride.size(), 0), bias{weight.size(0)};
    const c10::List<bool> wanted({mask[0], mask[1], false});
    Stack results;
    run_as("aten::convolution_backward",
           {gradient, input, weight, bias, stride, padding, dilation, false, none, groups, wanted}, &results);
    return {mask[0] ? results[0].toTensor() : at::Tensor(), mask[1] ? results[1].toTensor() : at::Tensor()};
}

const struct ServeCudnn {
    ServeCudnn() {
        if (std::getenv("MP_LATE_CUDNN"))
            at::native::cudnn_convolution_backward_stub.set_privateuse1_dispatch_ptr(&cudnn_backward);
    }
} serve_cudnn;

void convolution_backward(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
    changed_settings += !at::globalContext().allowTF32CuDNN();
    Stack given = torch::jit::pop(*stack, op.schema().arguments().size());
    const at::Tensor weight = given[2].toTensor();
    given.insert(given.begin() + 3,
                 IValue(std::vector<std::int64_t>{weight.size(0)}));  // the sizes of the bias
    run_as("aten::convolution_backward", std::move(given), stack);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>()); }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl("empty.memory_format", empty_memory_format);
    m.impl("empty_strided", empty_strided);
    m.impl("resize_", resize);
    m.impl("_copy_from", copy_from);
    m.impl("_copy_from_and_resize", copy_from_and_resize);
    m.impl("_local_scalar_dense", read_value);
    for (const char* name : {"native_layer_norm", "native_group_norm"})
        m.impl(name, torch::CppFunction::makeFromBoxedFunction<&fallback>());
    m.impl("record_stream", record);
    m.impl("native_dropout", dropout);
    m.impl("_thnn_fused_lstm_cell", lstm_cell);
    m.impl("_thnn_fused_lstm_cell_backward_impl", lstm_cell_backward);
    m.impl("as_strided", at::native::as_strided_tensorimpl);
    m.impl("view", at::native::view);
    m.impl("_reshape_alias", at::native::_reshape_alias);
    m.impl("unfold", at::native::unfold);
    m.impl("set_.source_Tensor", at::native::set_tensor_);
    m.impl("set_.source_Storage_storage_offset", at::native::set_storage_cpu_);
    m.impl("set_.source_Storage", at::native::set_);
    m.impl("convolution_overrideable", torch::CppFunction::makeFromBoxedFunction<&convolution>());
    m.impl("convolution_backward_overrideable",
           torch::CppFunction::makeFromBoxedFunction<&convolution_backward>());
}

}  // namespace

at::Tensor empty(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType type) {
    return at::detail::empty_strided_generic(sizes, strides, allocator(),
                                             c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), type);
}

at::Tensor seen_by_device(const at::Tensor& t) {
    at::Tensor here = tensor_over(t.numel() == 0 ? nullptr : fake::on_device(t.data_ptr()), t);
    if (t.unsafeGetTensorImpl()->is_wrapped_number()) here.unsafeGetTensorImpl()->set_wrapped_number(true);
    return here;
}

}  // namespace mp::late

// For late.py.
extern "C" __attribute__((visibility("default"))) void late_next_copy_waits() {
    mp::late::next_copy_waits = true;
}
extern "C" __attribute__((visibility("default"))) void late_next_kernel_waits() {
    mp::late::next_kernel_waits = true;
}
extern "C" __attribute__((visibility("default"))) bool late_waits() { return mp::late::waits; }
extern "C" __attribute__((visibility("default"))) bool late_waited() { return mp::late::waited; }
extern "C" __attribute__((visibility("default"))) std::uint64_t late_backwards(int kind) {
    using namespace mp::late;
    return kind == 0 ? ieee_backwards : kind == 1 ? tf32_backwards : changed_settings;
}
