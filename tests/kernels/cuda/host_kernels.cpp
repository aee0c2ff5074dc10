#include "tests/kernels/cuda/host_kernels.hpp"

#include <cstring>
#include <vector>

#include "kernels/cuda/blockwise_body.hpp"
#include "kernels/cuda/nonfinite.hpp"
#include "kernels/cuda/optimizer_body.hpp"
#include "kernels/cuda/paired.hpp"
#include "kernels/cuda/product.hpp"
#include "kernels/cuda/product_sketch.hpp"
#include "kernels/cuda/sketch.hpp"
#include "kernels/cuda/statistics.hpp"

namespace mp::cuda {
namespace {

struct HostHistogram {
    static constexpr bool kCounts = true;
    U64* bins = nullptr;
    void add(U32 bin) { ++bins[bin]; }
};

template <class Measure>
constexpr bool kHasHistogram = false;
template <DType D>
constexpr bool kHasHistogram<Statistics<D, HostHistogram>> = true;

template <class M, int Bytes>
void run(const void* argument) {
    const auto& list = *static_cast<const List<M::kTensors, Bytes>*>(argument);
    for (U32 block = 0; block < list.head.blocks; ++block) {
        const U32 index = entry_of(list, block);
        const auto share = share_of(list, index, block);
        auto total = M::Total::none();
        for (U32 thread = 0; thread < kThreads; ++thread) {
            M measure;
            if constexpr (kHasHistogram<M>) measure.histogram.bins = list.head.bins + U64{index} * 256;
            total.merge(measure.take(share, thread));
        }
        total.store(list.head.partials + U64{block} * M::Total::kWords);
        if (++list.head.tickets[index] != share.blocks) continue;
        list.head.tickets[index] = 0;
        auto all = M::Total::none();
        for (U32 b = 0; b < share.blocks; ++b)
            all.merge(M::Total::read(list.head.partials + U64{block - share.block + b} * M::Total::kWords));
        const U32 result = list.entries()[index].result;
        M::finish(all, share, static_cast<typename M::Result*>(list.head.results)[result]);
        if constexpr (kHasHistogram<M>) {
            U64* const bins = list.head.bins + U64{index} * 256;
            bins[0] -= M::zeros_in_bin_0(all);
            std::memcpy(list.head.histograms + U64{result} * 256, bins, 256 * sizeof(U64));
            std::memset(bins, 0, 256 * sizeof(U64));
        }
    }
}

template <class Step, int Bytes>
void run_step(const void* argument) {
    const auto& list = *static_cast<const OptimizerList<Step, Bytes>*>(argument);
    if (list.head.found_inf && *list.head.found_inf != 0) return;
    for (U32 block = 0; block < list.head.blocks; ++block) {
        U32 own = 0, blocks = 0;
        const U32 index = entry_at(list, block, own, blocks);
        for (U32 i = 0; i < kThreads; ++i) {
            OptimizerThread<Step> thread{list.head, list.entries[index],
                                         list.head.loss_scale ? *list.head.loss_scale : 1.0f};
            thread.run(own, blocks, i);
            list.head.counts->meant_to_move += thread.counts.meant_to_move;
            list.head.counts->stagnated += thread.counts.stagnated;
        }
    }
}

// Runs the 32 lanes of each block in turn.
template <bool kQuantize>
void run_blocks(const void* argument) {
    const auto& call = *static_cast<const BlockwiseCall*>(argument);
    for (U64 block = 0; block < blocks_of(call); ++block) {
        float largest = 0;
        for (U32 lane = 0; lane < kWarp; ++lane)
            largest = blockwise::larger(largest, BlockLane{call, call.table, block, lane}.largest());
        for (U32 lane = 0; lane < kWarp; ++lane) {
            const BlockLane part{call, call.table, block, lane};
            kQuantize ? part.quantize(largest) : part.dequantize();
        }
    }
}

void run_expect(const void* argument) {
    const auto& a = *static_cast<const ProductArgument*>(argument);
    for (U32 i = 0; i < a.product.rows * a.product.columns; ++i) {
        const Position at = position_of(a.product, i);
        double sum = 0;
        for (U32 thread = 0; thread < kThreads; ++thread) sum += terms_of(a.product, at, thread);
        a.expected[i] = expected_of(a.product, at, sum);
    }
}

void run_compare(const void* argument) {
    const auto& a = *static_cast<const ProductArgument*>(argument);
    ProductError all;
    for (U32 thread = 0; thread < kThreads; ++thread) {
        const ProductError one = compared(a, thread);
        all.compared += one.compared;
        all.nonfinite += one.nonfinite;
        all.error_squares += one.error_squares;
        all.squares += one.squares;
        all.dot += one.dot;
    }
    *a.out = all;
}

template <class Vectors>
RowSum sum_of_row(const Strided& m, std::int64_t row, std::int64_t columns, const Vectors& vectors) {
    RowSum all;
    for (U32 lane = 0; lane < kWarp; ++lane) all.add(part_of_row(m, row, columns, lane, kWarp, vectors));
    return all;
}

void run_sketch_inner(const void* argument) {
    const auto& a = *static_cast<const ProductSketchArgument*>(argument);
    const SampledProduct& p = a.product;
    for (std::int64_t row = 0; row < p.depth; ++row) {
        const RowSum sum = sum_of_row(p.b, row, p.all_columns, Signs{p.seed});
        a.inner[row] = sum.sum;
        a.inner_squares[row] = sum.squares;
    }
    a.inner[p.depth] = 0;
    for (U32 thread = 0; thread < kThreads; ++thread) a.inner[p.depth] += part_of_signs(p, thread);
}

void run_sketch_expect(const void* argument) {
    const auto& a = *static_cast<const ProductSketchArgument*>(argument);
    const SampledProduct& p = a.product;
    for (U32 block = 0; block < blocks_of_rows(p.all_rows); ++block) a.out[block].terms = 0;
    for (std::int64_t row = 0; row < p.all_rows; ++row) {
        const RowSum product = sum_of_row(p.a, row, p.depth, Inner{a.inner, a.inner_squares});
        RowSum addend;
        if (p.c.data) addend = sum_of_row(p.c, row, p.all_columns, Signs{p.seed});
        RowsError error;
        a.expected[row] = expected_of_row(a, row, product, addend, error);
        a.out[row / kRowsOfSketch].terms += error.terms;
    }
}

void run_sketch_compare(const void* argument) {
    const auto& a = *static_cast<const ProductSketchArgument*>(argument);
    const SampledProduct& p = a.product;
    for (U32 block = 0; block < blocks_of_rows(p.all_rows); ++block) {
        const double terms = a.out[block].terms;
        a.out[block] = {};
        a.out[block].terms = terms;
    }
    for (std::int64_t row = 0; row < p.all_rows; ++row) {
        const RowsError one =
            error_of_row(a.expected[row], sum_of_row(p.d, row, p.all_columns, Signs{p.seed}));
        RowsError& all = a.out[row / kRowsOfSketch];
        all.rows += one.rows;
        all.error_squares += one.error_squares;
        all.squares += one.squares;
    }
}

void run_sketch(const void* argument) {
    const auto& a = *static_cast<const SketchArgument*>(argument);
    for (U32 block = 0; block < a.blocks.count; ++block) {
        Sketch all;
        for (U32 thread = 0; thread < kThreads; ++thread) {
            const Sketch one = sketch_of(a.blocks, block, thread);
            all.sum += one.sum;
            all.squares += one.squares;
        }
        a.out[block] = all;
    }
}

template <class M>
void enter(std::vector<HostKernel>& all, const std::string& name) {
    all.push_back({name + "_small", sizeof(List<M::kTensors, kSmallList>), run<M, kSmallList>});
    all.push_back({name + "_large", sizeof(List<M::kTensors, kLargeList>), run<M, kLargeList>});
}

template <DType D>
void enter_format(std::vector<HostKernel>& all, const std::string& format) {
    enter<Statistics<D, NoHistogram>>(all, "statistics_" + format);
    enter<Statistics<D, HostHistogram>>(all, "histogram_" + format);
    enter<Diverged<D>>(all, "divergence_" + format);
    enter<Offenders<D>>(all, "nonfinite_" + format);
}

template <class Step>
void enter_step(std::vector<HostKernel>& all, const std::string& name) {
    all.push_back({name + "_small", sizeof(OptimizerList<Step, kSmallList>), run_step<Step, kSmallList>});
    all.push_back({name + "_large", sizeof(OptimizerList<Step, kLargeList>), run_step<Step, kLargeList>});
}

std::vector<HostKernel> all_kernels() {
    std::vector<HostKernel> list;
    enter_format<DType::fp64>(list, "fp64");
    enter_format<DType::fp32>(list, "fp32");
    enter_format<DType::fp16>(list, "fp16");
    enter_format<DType::bf16>(list, "bf16");
    enter_format<DType::e4m3>(list, "e4m3");
    enter_format<DType::e5m2>(list, "e5m2");
    enter<Stagnated>(list, "stagnation");
    list.push_back({"product_expect", sizeof(ProductArgument), run_expect});
    list.push_back({"product_compare", sizeof(ProductArgument), run_compare});
    list.push_back({"product_sketch_inner", sizeof(ProductSketchArgument), run_sketch_inner});
    list.push_back({"product_sketch_expect", sizeof(ProductSketchArgument), run_sketch_expect});
    list.push_back({"product_sketch_compare", sizeof(ProductSketchArgument), run_sketch_compare});
    list.push_back({"sketch_blocks", sizeof(SketchArgument), run_sketch});
    enter_step<optim::AdamW>(list, "adamw");
    enter_step<optim::Sgd>(list, "sgd");
    list.push_back({"quantize_blocks", sizeof(BlockwiseCall), run_blocks<true>});
    list.push_back({"dequantize_blocks", sizeof(BlockwiseCall), run_blocks<false>});
    return list;
}

}  // namespace

const HostKernel* host_kernel(std::string_view name) {
    static const std::vector<HostKernel>* const all = new std::vector<HostKernel>(all_kernels());
    for (const HostKernel& kernel : *all)
        if (kernel.name == name) return &kernel;
    return nullptr;
}

}  // namespace mp::cuda
