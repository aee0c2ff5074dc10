#include "kernels/cuda/measure.hpp"

#include <cstddef>
#include <cstdio>

#include "kernels/cpu/blocks.hpp"
#include "kernels/cpu/walk.hpp"
#include "kernels/cuda/driver.hpp"
#include "kernels/cuda/image.hpp"
#include "kernels/cuda/list.hpp"
#include "kernels/cuda/product.hpp"
#include "kernels/cuda/product_sketch.hpp"
#include "kernels/cuda/sketch.hpp"

namespace mp::cuda {

using cpu::index_of;
using cpu::Layout;
using cpu::TensorView;

namespace {

// ---- The parts of a Scratch. ---------------------------------------------------------------------

constexpr U32 kMaxEntries = 2048;  // of a launch
constexpr U32 kMaxHistograms = 256;
constexpr U32 kMaxBlocks = 8192;
constexpr U32 kMaxWords = 17;  // of a block's totals
constexpr std::size_t kTickets = 0;
constexpr std::size_t kBinsAt = kTickets + kMaxEntries * sizeof(U32);
constexpr std::size_t kPartials = kBinsAt + kMaxHistograms * 256 * sizeof(U64);
constexpr std::size_t kExpected = kPartials + std::size_t{kMaxBlocks} * kMaxWords * sizeof(U64);
constexpr std::size_t kSketched =
    kExpected + std::size_t{SampledProduct::kMost} * SampledProduct::kMost * sizeof(double);
constexpr std::int64_t kMostSketchedRows = 53248;  // of D: the vocabularies of GPT-2 and of smaller ones
constexpr std::size_t kScratchBytes = kSketched + std::size_t{kMostSketchedRows} * sizeof(double);
static_assert(kScratchBytes <= 2 << 20);
// Two figures of each row of B, and the sum of the signs. They are only needed from one kernel to the next.
constexpr std::int64_t kMostSketchedDepth = (std::int64_t{kMaxBlocks} * kMaxWords - 1) / 2;
constexpr std::size_t kCleared = kPartials;  // what must be zero before the first launch

// A device faults on an element that is not aligned to its width, and the program with it.
bool measurable(const TensorView& view) {
    return cpu::usable(view) && reinterpret_cast<std::uintptr_t>(view.data) % cpu::width_of(view.dtype) == 0;
}

constexpr DType kDTypes[] = {DType::fp64, DType::fp32, DType::fp16, DType::bf16, DType::e4m3, DType::e5m2};
constexpr const char* kFormatNames[] = {"fp64", "fp32", "fp16", "bf16", "e4m3", "e5m2"};

enum Kind { kStatistics, kHistogram, kDivergence, kNonfinite };
constexpr const char* kKindNames[] = {"statistics", "histogram", "divergence", "nonfinite"};

// Elements that a block takes at once; see the bodies.
U64 tile_of(Kind kind, std::size_t width) {
    if (kind == kDivergence) return 8 * kThreads;
    const U64 vectors = width == 1 && kind != kNonfinite ? 2 : 4;
    return vectors * kThreads * 16 / width;
}

}  // namespace

// ---- Lists. --------------------------------------------------------------------------------------

// What one launch measures, before it is written into a list.
template <int Tensors>
struct Job {
    const TensorView* views[Tensors] = {};  // null: not there
    int given = Tensors;                    // the views that are there come first
    Layout::Order order = Layout::Order::memory;
    U64 tile = 0;
};

// Whether the elements follow each other in the order of the dimensions, as those of most tensors do. False for a
// tensor without elements.
bool is_row_major(const TensorView& view) {
    std::int64_t elements = 1;
    for (int d = view.dims - 1; d >= 0; --d) {
        if (view.sizes[d] != 1 && view.strides[d] != elements) return false;
        elements *= view.sizes[d];
    }
    return elements != 0;
}

template <int Tensors>
struct Placed {
    U64 elements = 1;
    bool flat = true;
    U32 head = 0;
    U32 dims = 0;  // of the layout

    static Layout layout_of(const Job<Tensors>& job) { return {job.views, job.given, job.order}; }

    // A layout takes longer to compute than all the rest of a launch, and most tensors need none.
    explicit Placed(const Job<Tensors>& job) {
        bool row_major = true;
        for (int t = 0; t < job.given; ++t) row_major = row_major && is_row_major(*job.views[t]);
        if (row_major) {
            const TensorView& first = *job.views[0];
            for (int d = 0; d < first.dims; ++d) elements *= static_cast<U64>(first.sizes[d]);
            dims = elements == 1 ? 0 : 1;
        } else {
            const Layout layout = layout_of(job);
            elements = static_cast<U64>(layout.elements);
            flat = elements == 0 || layout.contiguous;
            dims = static_cast<U32>(layout.dims);
        }
        if (!flat || elements == 0 || Tensors == 4) return;
        const U32 limit = Tensors == 1 ? 16 : 4;
        for (head = 0; head < limit; ++head)
            if (is_aligned(job)) break;
        flat = head < limit;
        if (flat && head > elements) head = static_cast<U32>(elements);
        if (!flat && dims == 0) flat = true, head = 1;  // one element
    }
    // Whether the elements after `head` are aligned for the loads: 16 bytes, or four elements of each of two tensors.
    bool is_aligned(const Job<Tensors>& job) const {
        for (int t = 0; t < Tensors; ++t) {
            const std::size_t width = cpu::width_of(job.views[t]->dtype),
                              four = width * 4 < 16 ? width * 4 : 16;
            const auto address = reinterpret_cast<std::uintptr_t>(job.views[t]->data) + head * width;
            if (address % (Tensors == 1 ? 16 : four) != 0) return false;
        }
        return true;
    }
    U32 axes() const { return flat ? 0 : dims; }
    U32 bytes() const { return static_cast<U32>(sizeof(Entry<Tensors>) + axes() * sizeof(Axis<Tensors>)); }
    U64 tiles(const Job<Tensors>& job) const {
        const U64 tile = flat ? job.tile : 8 * kThreads;
        return elements == 0 ? 1 : (elements + tile - 1) / tile;
    }
};

template <int Tensors, int Bytes>
class Builder {
public:
    explicit Builder(const ListHead& head) : list_{head, {}} {}

    U32 count() const { return list_.head.entries; }

    // Returns false when the list is full. Until launch(), an entry's first block holds its tiles.
    bool add(const Job<Tensors>& job, const Placed<Tensors>& placed, U32 result, U32 most) {
        if (count() >= most || front_ + placed.bytes() > back_ || result > 0xFFFF) return false;
        Entry<Tensors>& entry = entries()[list_.head.entries++];
        front_ += sizeof entry;
        for (int t = 0; t < Tensors; ++t)
            entry.data[t] = t < job.given ? static_cast<const char*>(job.views[t]->data) : nullptr;
        entry.elements = placed.elements;
        entry.result = static_cast<std::uint16_t>(result);
        entry.head = static_cast<std::uint8_t>(placed.head);
        entry.dims = static_cast<std::uint8_t>(placed.axes());
        if (entry.dims != 0) write_axes(entry, Placed<Tensors>::layout_of(job));
        const U64 tiles = placed.tiles(job);
        entry.first_block = tiles > kManyTiles ? kManyTiles : static_cast<U32>(tiles);
        tiles_ += entry.first_block;
        return true;
    }

    // Gives each tensor its blocks, all of about the same number of tiles, and not more than run at once: a few that
    // wait for a place would double the time.
    void divide(U32 places) {
        const U64 room = kMaxBlocks - count(), wanted = places > 0 ? places : 1;
        const U64 most = wanted < room ? wanted : room;
        U64 each = (tiles_ + most - 1) / most;
        for (int i = 0; i < 16 && count() < most && blocks_of(each) > most; ++i) each += (each + 7) / 8;
        U32 next = 0;
        for (U32 i = 0; i < count(); ++i) {
            Entry<Tensors>& entry = entries()[i];
            const U32 own = blocks_of(entry, each);
            entry.first_block = next;
            next += own;
        }
        list_.head.blocks = next;
    }

    Outcome launch(CUfunc_st* kernel, Stream stream) {
        void* arguments[] = {&list_};
        return outcome_of(
            driver().launch(kernel, list_.head.blocks, 1, 1, kThreads, 1, 1, 0, stream, arguments, nullptr));
    }

private:
    static constexpr U32 kManyTiles = 1u << 30;

    Entry<Tensors>* entries() { return reinterpret_cast<Entry<Tensors>*>(list_.room); }
    static U32 blocks_of(const Entry<Tensors>& entry, U64 each) {
        return static_cast<U32>((entry.first_block + each - 1) / each);
    }
    U64 blocks_of(U64 each) {
        U64 blocks = 0;
        for (U32 i = 0; i < count(); ++i) blocks += blocks_of(entries()[i], each);
        return blocks;
    }

    void write_axes(Entry<Tensors>& entry, const Layout& layout) {
        back_ -= static_cast<U32>(entry.dims * sizeof(Axis<Tensors>));
        entry.elements = back_;
        auto* axes = reinterpret_cast<Axis<Tensors>*>(list_.room + back_);
        for (int i = 0; i < entry.dims; ++i) {
            axes[i].size = static_cast<U64>(layout.axes[i].size);
            for (int t = 0; t < Tensors; ++t)
                axes[i].strides[t] = t < layout.count ? layout.axes[i].strides[t] : 0;
        }
    }

    List<Tensors, Bytes> list_;
    U32 front_ = 0, back_ = List<Tensors, Bytes>::kRoom;
    U64 tiles_ = 0;
};

// Launches what a call asks for, one kernel after the other.
struct Launcher {
    const Measure& measure;
    Stream stream;
    DeviceAddress scratch;

    ListHead head() const {
        ListHead h{};
        // NOLINTBEGIN(performance-no-int-to-ptr): the driver gives addresses of the device as integers
        h.partials = reinterpret_cast<U64*>(scratch + kPartials);
        h.bins = reinterpret_cast<U64*>(scratch + kBinsAt);
        h.tickets = reinterpret_cast<U32*>(scratch + kTickets);
        // NOLINTEND(performance-no-int-to-ptr)
        return h;
    }

    Outcome ready() const {
        if (!measure.ready() || scratch == 0) return {Status::no_kernels};
        int capturing = 0;
        const int code = driver().capturing(stream, &capturing);
        if (code != 0) return {Status::refused, code};
        return capturing != 0 ? Outcome{Status::capturing} : Outcome{};
    }

    // Launches the elements [first, count) for which take(i, job) is true, as far as one list reaches. Sets `first` to
    // the first that is left.
    template <int Bytes, int Tensors, class Result, class Take>
    Outcome launch_one(const Measure::Kernel& kernel, ListHead h, int& first, int count, Result* results,
                       ExponentHistogram* histograms, const Take& take) const {
        const int base = first;
        h.results = results + base;
        h.histograms = histograms ? histograms[base].bins.data() : nullptr;
        Builder<Tensors, Bytes> list(h);
        const U32 most = histograms ? kMaxHistograms : kMaxEntries;
        for (; first < count; ++first) {
            Job<Tensors> job;
            if (!take(first, job)) continue;
            if (!list.add(job, Placed<Tensors>(job), static_cast<U32>(first - base), most)) break;
        }
        if (list.count() == 0) return {};
        list.divide(static_cast<U32>(kernel.places * measure.waves_));
        return list.launch(Bytes == kLargeList ? kernel.large : kernel.small, stream);
    }

    template <int Tensors, class Result, class Take>
    Outcome launch_all(const Measure::Kernel& kernel, const ListHead& h, int count, Result* results,
                       ExponentHistogram* histograms, const Take& take) const {
        std::size_t bytes = 0;
        int first = count;
        for (int i = count - 1; i >= 0; --i) {
            Job<Tensors> job;
            if (!take(i, job)) continue;
            bytes += Placed<Tensors>(job).bytes();
            first = i;
        }
        const bool large = bytes > List<Tensors, kSmallList>::kRoom && measure.large_;
        Outcome done;
        while (first < count && done) {
            const int before = first;
            done = large
                       ? launch_one<kLargeList, Tensors>(kernel, h, first, count, results, histograms, take)
                       : launch_one<kSmallList, Tensors>(kernel, h, first, count, results, histograms, take);
            if (first == before) break;
        }
        return done;
    }

    const Measure::Kernel& kernel(Kind kind, int format) const {
        return measure.kernels_[kind * Measure::kFormats + format];
    }

    // A kernel that measures single tensors, for the tensors of each format.
    template <class Result>
    Outcome each_format(Kind kind, Layout::Order order, const TensorView* tensors, int count, Result* results,
                        ExponentHistogram* histograms) const {
        Outcome done = ready();
        U32 formats = 0;  // a bit for each that is in the list
        for (int i = 0; i < count && done; ++i) {
            if (!measurable(tensors[i])) return {Status::unsupported};
            formats |= 1u << index_of(tensors[i].dtype);
        }
        for (int f = 0; f < Measure::kFormats && done; ++f) {
            if ((formats >> f & 1) == 0) continue;
            const auto take = [&](int i, Job<1>& job) {
                if (index_of(tensors[i].dtype) != f) return false;
                job = {{tensors + i}, 1, order, tile_of(kind, cpu::width_of(kDTypes[f]))};
                return true;
            };
            done = launch_all<1>(kernel(kind, f), head(), count, results, histograms, take);
        }
        return done;
    }
};

bool has_kernels() noexcept { return has_image(); }

Outcome Scratch::make(Stream stream) noexcept {
    if (at_ != 0) return {};
    if (!driver().complete()) return {Status::no_driver};
    DeviceAddress at = 0;
    if (const int code = driver().allocate(&at, kScratchBytes); code != 0) return {Status::refused, code};
    if (const int code = driver().clear(at, 0, kCleared, stream); code != 0) {
        driver().free(at);
        return {Status::refused, code};
    }
    at_ = at;
    return {};
}

void Scratch::free() noexcept {
    if (at_ != 0) driver().free(at_);
    at_ = 0;
}

Outcome Measure::load() noexcept {
    if (module_) return {};
    if (!has_image()) return {Status::no_kernels};
    const Driver& d = driver();
    if (!d.complete()) return {Status::no_driver};
    int device = 0, version = 0, processors = 0;
    if (d.device(&device) != 0) return {Status::no_context};
    constexpr int kProcessors = 16;  // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
    int code = d.attribute(&processors, kProcessors, device);
    if (code == 0) code = d.version(&version);
    CUmod_st* module = nullptr;
    if (code == 0) code = d.load(&module, image());
    if (code != 0) return {Status::refused, code};
    Kernel kernels[kKernels];
    for (int i = 0; i < kKernels && code == 0; ++i) {
        char name[64];
        const int kind = i / kFormats;
        if (kind == kKinds)
            std::snprintf(name, sizeof name, "stagnation_");
        else
            std::snprintf(name, sizeof name, "%s_%s_", kKindNames[kind], kFormatNames[i % kFormats]);
        char full[80];
        std::snprintf(full, sizeof full, "%ssmall", name);
        code = d.function(&kernels[i].small, module, full);
        std::snprintf(full, sizeof full, "%slarge", name);
        if (code == 0) code = d.function(&kernels[i].large, module, full);
        if (code == 0) code = d.blocks_per_processor(&kernels[i].places, kernels[i].small, kThreads, 0);
        kernels[i].places *= processors;
    }
    constexpr int kOthers = 6;
    constexpr const char* kNames[kOthers] = {"product_expect",        "product_compare",
                                             "sketch_blocks",         "product_sketch_inner",
                                             "product_sketch_expect", "product_sketch_compare"};
    CUfunc_st* others[kOthers] = {};
    for (int i = 0; i < kOthers && code == 0; ++i) code = d.function(others + i, module, kNames[i]);
    if (code != 0) {
        d.unload(module);
        return {Status::refused, code};
    }
    for (int i = 0; i < kKernels; ++i) kernels_[i] = kernels[i];
    CUfunc_st** const into[kOthers] = {&expect_,       &compare_,       &sketch_,
                                       &sketch_inner_, &sketch_expect_, &sketch_compare_};
    for (int i = 0; i < kOthers; ++i) *into[i] = others[i];
    large_ = version >= kLongArguments;
    module_ = module;
    return {};
}

void Measure::unload() noexcept {
    if (module_) driver().unload(module_);
    module_ = nullptr;
}

Outcome Measure::statistics(Stream stream, Scratch& scratch, const TensorView* tensors, int count,
                            TensorStats* results, ExponentHistogram* histograms) const noexcept {
    return Launcher{*this, stream, scratch.at_}.each_format(
        histograms ? kHistogram : kStatistics, Layout::Order::memory, tensors, count, results, histograms);
}

Outcome Measure::first_nonfinite(Stream stream, Scratch& scratch, const TensorView* tensors, int count,
                                 Nonfinite* results) const noexcept {
    return Launcher{*this, stream, scratch.at_}.each_format(kNonfinite, Layout::Order::dimensions, tensors,
                                                            count, results, nullptr);
}

namespace {

bool is_wide(const TensorView& view) { return view.dtype == DType::fp32 || view.dtype == DType::fp64; }

bool comparable(const TensorView& real, const TensorView& twin) {
    return measurable(twin) && is_wide(twin) && cpu::same_sizes(real, twin);
}

std::uint8_t number(DType dtype) { return static_cast<std::uint8_t>(dtype); }

}  // namespace

Outcome Measure::divergence(Stream stream, Scratch& scratch, const TensorView* real, const TensorView* twin,
                            int count, Divergence* results) const noexcept {
    const Launcher launcher{*this, stream, scratch.at_};
    Outcome done = launcher.ready();
    for (int i = 0; i < count && done; ++i)
        if (!measurable(real[i]) || !comparable(real[i], twin[i])) done = {Status::unsupported};
    for (int f = 0; f < kFormats && done; ++f)
        for (int g = 0; g < cpu::kWide && done; ++g) {
            const auto take = [&](int i, Job<2>& job) {
                if (index_of(real[i].dtype) != f || index_of(twin[i].dtype) != g) return false;
                job = {{real + i, twin + i}, 2, Layout::Order::memory, tile_of(kDivergence, 0)};
                return true;
            };
            ListHead head = launcher.head();
            head.dtypes[0] = number(kDTypes[f]);
            head.dtypes[1] = number(kDTypes[g]);
            done =
                launcher.launch_all<2>(launcher.kernel(kDivergence, f), head, count, results, nullptr, take);
        }
    return done;
}

Outcome Measure::stagnation(Stream stream, Scratch& scratch, const TensorView* before,
                            const TensorView* after, const TensorView* moved_before,
                            const TensorView* moved_after, int count,
                            cpu::Stagnation* results) const noexcept {
    const Launcher launcher{*this, stream, scratch.at_};
    const bool told = moved_before != nullptr && moved_after != nullptr;
    Outcome done = launcher.ready();
    for (int i = 0; i < count && done; ++i) {
        bool good = measurable(before[i]) && measurable(after[i]) && before[i].dtype == after[i].dtype &&
                    cpu::same_sizes(before[i], after[i]);
        if (good && told)
            good = comparable(before[i], moved_before[i]) && comparable(before[i], moved_after[i]);
        if (!good) done = {Status::unsupported};
    }
    const int pairs = told ? cpu::kWide * cpu::kWide : 1;  // dtypes of the moved tensors
    for (int f = 0; f < kFormats && done; ++f)
        for (int g = 0; g < pairs && done; ++g) {
            const DType from = kDTypes[g / cpu::kWide], to = kDTypes[g % cpu::kWide];
            const auto take = [&](int i, Job<4>& job) {
                if (index_of(before[i].dtype) != f) return false;
                if (told && (moved_before[i].dtype != from || moved_after[i].dtype != to)) return false;
                job = {{before + i, after + i, told ? moved_before + i : nullptr,
                        told ? moved_after + i : nullptr},
                       told ? 4 : 2,
                       Layout::Order::memory,
                       8 * kThreads};
                return true;
            };
            ListHead head = launcher.head();
            head.dtypes[0] = head.dtypes[1] = number(kDTypes[f]);
            head.dtypes[2] = number(from);
            head.dtypes[3] = number(to);
            head.kinds = told ? 1 : 0;
            done = launcher.launch_all<4>(kernels_[kKinds * kFormats], head, count, results, nullptr, take);
        }
    return done;
}

namespace {

// What element() reads.
bool is_read(DType dtype, const void* data) {
    const bool known =
        dtype == DType::fp64 || dtype == DType::fp32 || dtype == DType::fp16 || dtype == DType::bf16;
    return known && data && reinterpret_cast<std::uintptr_t>(data) % cpu::width_of(dtype) == 0;
}

bool measurable(const SampledProduct& p) {
    for (const Strided* m : {&p.a, &p.b, &p.d})
        if (!is_read(m->dtype, m->data)) return false;
    for (const Strided* m : {&p.c, &p.bias})
        if (m->data && !is_read(m->dtype, m->data)) return false;
    return p.rows > 0 && p.columns > 0 && p.rows <= SampledProduct::kMost &&
           p.columns <= SampledProduct::kMost;
}

Outcome launch_product(const Launcher& launcher, CUfunc_st* kernel, const SampledProduct& product,
                       ProductError* result, U32 blocks) {
    const Outcome ready = launcher.ready();
    if (!ready) return ready;
    if (!measurable(product)) return {Status::unsupported};
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver gives addresses of the device as integers
    ProductArgument argument{product, reinterpret_cast<double*>(launcher.scratch + kExpected), result};
    void* arguments[] = {&argument};
    return outcome_of(
        driver().launch(kernel, blocks, 1, 1, kThreads, 1, 1, 0, launcher.stream, arguments, nullptr));
}

}  // namespace

Outcome Measure::expect(Stream stream, Scratch& scratch, const SampledProduct& product) const noexcept {
    return launch_product({*this, stream, scratch.at_}, expect_, product, nullptr,
                          product.rows * product.columns);
}

Outcome Measure::compare(Stream stream, Scratch& scratch, const SampledProduct& product,
                         ProductError* result) const noexcept {
    return launch_product({*this, stream, scratch.at_}, compare_, product, result, 1);
}

bool is_sketchable(const SampledProduct& p) noexcept {
    return p.all_rows > 0 && p.all_columns > 0 && p.all_rows <= kMostSketchedRows &&
           p.depth <= kMostSketchedDepth;
}

namespace {

Outcome launch_sketch(const Launcher& launcher, CUfunc_st* kernel, const SampledProduct& product,
                      RowsError* results, U32 blocks) {
    const Outcome ready = launcher.ready();
    if (!ready) return ready;
    if (!measurable(product) || !is_sketchable(product)) return {Status::unsupported};
    // NOLINTBEGIN(performance-no-int-to-ptr): the driver gives addresses of the device as integers
    auto* const inner = reinterpret_cast<double*>(launcher.scratch + kPartials);
    auto* const expected = reinterpret_cast<double*>(launcher.scratch + kSketched);
    // NOLINTEND(performance-no-int-to-ptr)
    ProductSketchArgument argument{product, inner, inner + product.depth + 1, expected, results};
    void* arguments[] = {&argument};
    return outcome_of(
        driver().launch(kernel, blocks, 1, 1, kThreads, 1, 1, 0, launcher.stream, arguments, nullptr));
}

}  // namespace

Outcome Measure::expect_sketch(Stream stream, Scratch& scratch, const SampledProduct& product,
                               RowsError* results) const noexcept {
    const Launcher launcher{*this, stream, scratch.at_};
    const Outcome inner =
        launch_sketch(launcher, sketch_inner_, product, results, blocks_of_rows(product.depth) + 1);
    if (!inner) return inner;
    return launch_sketch(launcher, sketch_expect_, product, results, blocks_of_rows(product.all_rows));
}

Outcome Measure::compare_sketch(Stream stream, Scratch& scratch, const SampledProduct& product,
                                RowsError* results) const noexcept {
    return launch_sketch({*this, stream, scratch.at_}, sketch_compare_, product, results,
                         blocks_of_rows(product.all_rows));
}

Outcome Measure::sketch(Stream stream, Scratch& scratch, const SketchedBlocks& blocks,
                        Sketch* results) const noexcept {
    const Launcher launcher{*this, stream, scratch.at_};
    const Outcome ready = launcher.ready();
    if (!ready) return ready;
    if (!is_read(blocks.dtype, blocks.data) || blocks.count == 0 || blocks.count > SketchedBlocks::kMost)
        return {Status::unsupported};
    SketchArgument argument{blocks, results};
    void* arguments[] = {&argument};
    return outcome_of(
        driver().launch(sketch_, blocks.count, 1, 1, kThreads, 1, 1, 0, stream, arguments, nullptr));
}

}  // namespace mp::cuda
