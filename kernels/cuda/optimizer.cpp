#include "kernels/cuda/optimizer.hpp"

#include <algorithm>
#include <cstddef>

#include "kernels/cuda/blockwise_body.hpp"
#include "kernels/cuda/driver.hpp"
#include "kernels/cuda/image.hpp"
#include "kernels/cuda/optimizer_body.hpp"

namespace mp::cuda {
namespace {

constexpr U64 kMostBlocks = 1 << 16;  // of a weight

OptimizerEntry entry_of(const cpu::OptimizerRange& r, int number) {
    OptimizerEntry e{};
    e.master = r.master;
    e.copy = static_cast<std::uint16_t*>(r.copy);
    e.gradient = r.gradient;
    e.state = r.state;
    e.squares = r.squares;
    e.elements = static_cast<U64>(r.elements);
    e.gradient_dtype = static_cast<std::uint8_t>(r.gradient_dtype);
    e.copy_dtype = static_cast<std::uint8_t>(r.copy_dtype);
    e.number = static_cast<U32>(number);
    return e;
}

// Launches weights from `first` on, as many as one list holds, and sets `first` to the first that is left.
template <int Bytes, class Step>
Outcome launch_some(CUfunc_st* kernel, Stream stream, const OptimizerHead<Step>& head,
                    const cpu::OptimizerRange* ranges, int& first, int count) {
    OptimizerList<Step, Bytes> list;
    list.head = head;
    for (; first < count && list.head.entries < list.kEntries; ++first) {
        if (ranges[first].elements == 0) continue;
        OptimizerEntry& entry = list.entries[list.head.entries++];
        entry = entry_of(ranges[first], first);
        entry.first_block = list.head.blocks;
        const U64 tiles = (entry.elements + kStepBlock - 1) / kStepBlock;
        list.head.blocks += static_cast<U32>(tiles < kMostBlocks ? tiles : kMostBlocks);
    }
    if (list.head.entries == 0) return {};
    void* arguments[] = {&list};
    return outcome_of(
        driver().launch(kernel, list.head.blocks, 1, 1, kThreads, 1, 1, 0, stream, arguments, nullptr));
}

Outcome launch_blocks(CUfunc_st* kernel, Stream stream, const blockwise::Table& table, float* values,
                      const cpu::QuantizedRange& range) {
    if (!kernel) return {Status::no_kernels};
    BlockwiseCall call{table, values, range.codes, range.scales, static_cast<U64>(range.elements)};
    const U64 needed = (blocks_of(call) + kWarps - 1) / kWarps;
    if (needed == 0) return {};
    void* arguments[] = {&call};
    const auto blocks = static_cast<U32>(std::min(needed, kMostBlocks));
    return outcome_of(driver().launch(kernel, blocks, 1, 1, kThreads, 1, 1, 0, stream, arguments, nullptr));
}

}  // namespace

Outcome Optimizer::load() noexcept {
    if (module_) return {};
    if (!has_image()) return {Status::no_kernels};
    const Driver& d = driver();
    if (!d.complete()) return {Status::no_driver};
    int device = 0, version = 0;
    if (d.device(&device) != 0) return {Status::no_context};
    CUmod_st* module = nullptr;
    int code = d.version(&version);
    if (code == 0) code = d.load(&module, image());
    if (code != 0) return {Status::refused, code};
    Kernel adamw, sgd;
    CUfunc_st *quantize = nullptr, *dequantize = nullptr;
    code = d.function(&adamw.small, module, "adamw_small");
    if (code == 0) code = d.function(&sgd.small, module, "sgd_small");
    if (code == 0) code = d.function(&quantize, module, "quantize_blocks");
    if (code == 0) code = d.function(&dequantize, module, "dequantize_blocks");
    if (code == 0 && version >= kLongArguments) code = d.function(&adamw.large, module, "adamw_large");
    if (code == 0 && version >= kLongArguments) code = d.function(&sgd.large, module, "sgd_large");
    if (code != 0) {
        d.unload(module);
        return {Status::refused, code};
    }
    adamw_ = adamw;
    sgd_ = sgd;
    quantize_ = quantize;
    dequantize_ = dequantize;
    module_ = module;
    return {};
}

template <class Step>
Outcome Optimizer::run(const Kernel& kernel, Stream stream, const Step& step,
                       const cpu::OptimizerRange* ranges, int count, const DevicePass& pass) const noexcept {
    if (!ready()) return {Status::no_kernels};
    for (int i = 0; i < count; ++i)
        if (!cpu::serves(step, ranges[i])) return {Status::unsupported};
    // A graph would repeat this step's constants.
    int capturing = 0;
    if (const int code = driver().capturing(stream, &capturing); code != 0) return {Status::refused, code};
    if (capturing != 0) return {Status::capturing};
    const OptimizerHead<Step> head{step, pass.loss_scale, pass.found_inf, pass.counts, pass.seed, 0,
                                   0,    pass.stochastic};
    constexpr int kFewWeights = OptimizerList<Step, kSmallList>::kEntries;
    Outcome done;
    for (int first = 0; first < count && done;)
        done = kernel.large && count > kFewWeights
                   ? launch_some<kLargeList>(kernel.large, stream, head, ranges, first, count)
                   : launch_some<kSmallList>(kernel.small, stream, head, ranges, first, count);
    return done;
}

Outcome Optimizer::step(Stream stream, const optim::AdamW& step, const cpu::OptimizerRange* ranges, int count,
                        const DevicePass& pass) const noexcept {
    return run(adamw_, stream, step, ranges, count, pass);
}

Outcome Optimizer::step(Stream stream, const optim::Sgd& step, const cpu::OptimizerRange* ranges, int count,
                        const DevicePass& pass) const noexcept {
    return run(sgd_, stream, step, ranges, count, pass);
}

Outcome Optimizer::quantize(Stream stream, const blockwise::Table& table, const float* values,
                            const cpu::QuantizedRange& into) const noexcept {
    return launch_blocks(quantize_, stream, table, const_cast<float*>(values), into);  // which it only reads
}

Outcome Optimizer::dequantize(Stream stream, const blockwise::Table& table, const cpu::QuantizedRange& from,
                              float* values) const noexcept {
    return launch_blocks(dequantize_, stream, table, values, from);
}

}  // namespace mp::cuda
