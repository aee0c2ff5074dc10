#include "tests/kernels/cuda/checks.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "kernels/cpu/walk.hpp"
#include "kernels/numerics/convert.hpp"

namespace mp::cuda {
namespace {

using cpu::TensorView;

constexpr DType kMeasured[] = {DType::fp64, DType::fp32, DType::fp16, DType::bf16, DType::e4m3, DType::e5m2};

// Both sides may be off by 1e-6 of the sum of magnitudes.
constexpr double kShort = 2e-6, kLong = 1e-12;
double allowed(DType a, DType b) { return a == DType::fp64 || b == DType::fp64 ? kLong : kShort; }

std::string text(const char* what, DType dtype, std::size_t n) {
    return std::string(what) + " " + std::string(name_of(dtype)) + " x " + std::to_string(n);
}

std::size_t width(DType dtype) { return cpu::width_of(dtype); }

}  // namespace

void Checks::fail(const std::string& what) {
    if (++failures_ <= 40) std::printf("FAILED %s\n", what.c_str());
}

void Checks::launched(Outcome outcome, const std::string& what) {
    if (!outcome)
        fail(what + ": not launched: " + name_of(outcome.status) + " " + std::to_string(outcome.code));
}

template <class T>
void Checks::exact(T got, T expected, const char* field, const std::string& what) {
    ++comparisons_;
    if (got == expected) return;
    fail(what + ": " + field + " is " + std::to_string(got) + ", should be " + std::to_string(expected));
}

void Checks::close(double got, double expected, double most, const char* field, const std::string& what) {
    ++comparisons_;
    // Sums of fp64 that overflow depend on their order.
    if (got == expected || std::fabs(got - expected) <= most || !std::isfinite(expected) ||
        !std::isfinite(most))
        return;
    char line[160];
    std::snprintf(line, sizeof line, ": %s is %.17g, should be %.17g within %.3g", field, got, expected,
                  most);
    fail(what + line);
}

Checks::Tensor Checks::tensor(std::vector<unsigned char> bytes, DType dtype, std::int64_t n,
                              std::size_t offset) {
    Tensor t;
    t.bytes = std::move(bytes);
    char* const there = machine_.memory(t.bytes.size() + offset + 16) + offset;
    machine_.copy(there, t.bytes.data(), t.bytes.size());
    t.host = cpu::contiguous(t.bytes.data(), dtype, n);
    t.device = cpu::contiguous(there, dtype, n);
    return t;
}

namespace {

template <class T>
std::vector<TensorView> views(const std::vector<T>& tensors) {
    std::vector<TensorView> all;
    for (const T& t : tensors) all.push_back(t.device);
    return all;
}

}  // namespace

void Checks::check_one_sided(const std::vector<Tensor>& tensors, const std::string& what) {
    const auto on_device = views(tensors);
    const auto count = static_cast<int>(tensors.size());
    auto* stats = static_cast<TensorStats*>(machine_.pinned(2 * tensors.size() * sizeof(TensorStats)));
    auto* bins = static_cast<ExponentHistogram*>(machine_.pinned(tensors.size() * sizeof(ExponentHistogram)));
    std::memset(static_cast<void*>(stats), 0x55, 2 * tensors.size() * sizeof(TensorStats));
    std::memset(static_cast<void*>(bins), 0x55, tensors.size() * sizeof(ExponentHistogram));
    launched(measure_.statistics(machine_.stream, scratch_, on_device.data(), count, stats), what);
    launched(measure_.statistics(machine_.stream, scratch_, on_device.data(), count, stats + count, bins),
             what);
    machine_.wait();
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        TensorStats expected;
        ExponentHistogram histogram;
        cpu::statistics(tensors[i].host, expected, &histogram);
        const double share = allowed(tensors[i].host.dtype, DType::fp32);
        const auto n = static_cast<double>(std::max<std::uint64_t>(expected.finite(), 1));
        const double magnitudes = std::sqrt(n * expected.sum_squares);
        for (const TensorStats& got : {stats[i], stats[i + tensors.size()]}) {
            exact(got.count, expected.count, "count", what);
            exact(got.nan, expected.nan, "nan", what);
            exact(got.pos_inf, expected.pos_inf, "pos_inf", what);
            exact(got.neg_inf, expected.neg_inf, "neg_inf", what);
            exact(got.zero, expected.zero, "zero", what);
            exact(got.subnormal, expected.subnormal, "subnormal", what);
            exact(got.saturated, expected.saturated, "saturated", what);
            exact(got.amax, expected.amax, "amax", what);
            exact(got.amin, expected.amin, "amin", what);
            close(got.sum, expected.sum, share * magnitudes, "sum", what);
            close(got.sum_squares, expected.sum_squares, share * expected.sum_squares, "squares", what);
            close(got.mean, expected.mean, share * magnitudes / n, "mean", what);
            const double spread = share == kLong ? 1e-7 : 4e-5;
            close(got.m2, expected.m2, spread * expected.m2 + 2e-12 * expected.sum_squares, "m2", what);
        }
        const int got = std::memcmp(&bins[i], &histogram, sizeof histogram);
        exact(got, 0, "comparison of histograms", what);
    }
}

void Checks::check_offenders(const std::vector<Tensor>& tensors, const std::string& what) {
    const auto on_device = views(tensors);
    auto* found = static_cast<Nonfinite*>(machine_.pinned(tensors.size() * sizeof(Nonfinite)));
    const auto count = static_cast<int>(tensors.size());
    launched(measure_.first_nonfinite(machine_.stream, scratch_, on_device.data(), count, found), what);
    machine_.wait();
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        TensorStats expected;
        cpu::statistics(tensors[i].host, expected);
        exact(found[i].count, expected.nonfinite(), "number of offenders", what);
        exact(found[i].first != Nonfinite::kNone, cpu::any_nonfinite(tensors[i].host), "any", what);
        if (tensors[i].host.dims != 1 || tensors[i].host.strides[0] != 1) continue;
        std::uint64_t first = Nonfinite::kNone;
        const FloatFormat& f = *format_of(tensors[i].host.dtype);
        const std::size_t w = width(f.dtype);
        for (std::size_t k = 0; expected.nonfinite() && k < expected.count; ++k) {
            std::uint64_t pattern = 0;
            std::memcpy(&pattern, tensors[i].bytes.data() + k * w, w);
            if (std::isfinite(__builtin_bit_cast(double, detail::decode_bits(f, pattern)))) continue;
            first = k;
            break;
        }
        exact(found[i].first, first, "first offender", what);
    }
}

void Checks::check_pairs(const std::vector<Tensor>& real, const std::vector<Tensor>& twin,
                         const std::string& what) {
    const auto x = views(real), y = views(twin);
    auto* got = static_cast<Divergence*>(machine_.pinned(real.size() * sizeof(Divergence)));
    const auto count = static_cast<int>(real.size());
    launched(measure_.divergence(machine_.stream, scratch_, x.data(), y.data(), count, got), what);
    machine_.wait();
    for (std::size_t i = 0; i < real.size(); ++i) {
        Divergence d;
        cpu::divergence(real[i].host, twin[i].host, d);
        const Divergence& g = got[i];
        exact(g.count, d.count, "count", what);
        exact(g.compared, d.compared, "compared", what);
        exact(g.nonfinite_both, d.nonfinite_both, "nonfinite_both", what);
        exact(g.nonfinite_real, d.nonfinite_real, "nonfinite_real", what);
        exact(g.nonfinite_twin, d.nonfinite_twin, "nonfinite_twin", what);
        exact(g.differ, d.differ, "differ", what);
        exact(g.flushed, d.flushed, "flushed", what);
        exact(g.ulp_above_one, d.ulp_above_one, "ulp_above_one", what);
        exact(g.ulp_max, d.ulp_max, "ulp_max", what);
        exact(g.max_abs, d.max_abs, "max_abs", what);
        exact(g.twin_amax, d.twin_amax, "twin_amax", what);
        const double share = allowed(real[i].host.dtype, twin[i].host.dtype);
        const double derived = share == kLong ? 0 : 4 * d.yy;
        close(g.ee, d.ee, share * d.ee, "ee", what);
        close(g.yy, d.yy, share * d.yy, "yy", what);
        close(g.xx, d.xx, share * (d.xx + derived), "xx", what);
        close(g.xy, d.xy, share * (std::sqrt(d.xx * d.yy) + derived), "xy", what);
        close(g.e, d.e, share * d.abs_e, "e", what);
        close(g.abs_e, d.abs_e, share * d.abs_e, "abs_e", what);
        close(g.abs_y, d.abs_y, share * d.abs_y, "abs_y", what);
        close(g.flushed_abs, d.flushed_abs, share * d.flushed_abs, "flushed_abs", what);
    }
}

void Checks::check_stagnation(const std::vector<Tensor> (&t)[4], bool told, const std::string& what) {
    std::vector<TensorView> on_device[4];
    for (int i = 0; i < 4; ++i) on_device[i] = views(t[i]);
    auto* got = static_cast<cpu::Stagnation*>(machine_.pinned(t[0].size() * sizeof(cpu::Stagnation)));
    launched(measure_.stagnation(machine_.stream, scratch_, on_device[0].data(), on_device[1].data(),
                                 told ? on_device[2].data() : nullptr, told ? on_device[3].data() : nullptr,
                                 static_cast<int>(t[0].size()), got),
             what);
    machine_.wait();
    for (std::size_t i = 0; i < t[0].size(); ++i) {
        cpu::Stagnation s;
        const TensorView none;
        cpu::stagnation(t[0][i].host, t[1][i].host, told ? t[2][i].host : none, told ? t[3][i].host : none,
                        s);
        exact(got[i].count, s.count, "count", what);
        exact(got[i].meant_to_move, s.meant_to_move, "meant_to_move", what);
        exact(got[i].unmoved, s.unmoved, "unmoved", what);
        exact(got[i].below_half_ulp, s.below_half_ulp, "below_half_ulp", what);
        const double in_order = 1e-10;  // the CPU adds one element after the other
        close(got[i].wanted_squares, s.wanted_squares, in_order * s.wanted_squares, "wanted", what);
        const double scale = std::fabs(s.moved_dot) + s.wanted_squares;
        close(got[i].moved_dot, s.moved_dot, 1e-6 * scale, "moved_dot", what);
    }
}

void Checks::sizes_and_data(std::size_t largest, bool thorough) {
    const std::size_t sizes[] = {0,
                                 1,
                                 2,
                                 3,
                                 7,
                                 15,
                                 16,
                                 17,
                                 31,
                                 255,
                                 256,
                                 1000,
                                 4095,
                                 4096,
                                 8191,
                                 8192,
                                 8193,
                                 8192 + 511,
                                 65537,
                                 300001,
                                 1 << 20,
                                 (1 << 22) + 5,
                                 (1 << 24) - 1,
                                 (1 << 26) + 3};
    std::uint64_t seed = 1;
    for (const std::size_t n : sizes) {
        if (n > largest) break;
        for (const DType dtype : kMeasured)
            for (const Data data : kAllData) {
                if (n > 300001 && !thorough && data != Data::normal && data != Data::mixed) continue;
                const std::string what = text(name(data), dtype, n);
                const auto elements = static_cast<std::int64_t>(n);
                // Offsets that are not aligned, but to the element.
                const std::size_t offset = n % 3 * width(dtype);
                std::vector<Tensor> one;
                one.push_back(tensor(make(data, dtype, n, ++seed), dtype, elements, offset));
                check_one_sided(one, what);
                check_offenders(one, what);
                for (const DType wide : {DType::fp32, DType::fp64}) {
                    if (n > (1 << 24) && wide == DType::fp64) continue;
                    std::vector<Tensor> twin;
                    const Data other = n % 2 ? data : Data::normal;
                    const std::uint64_t same = n % 4 < 2 ? seed : seed + 1000;
                    twin.push_back(
                        tensor(make(other, wide, n, same), wide, elements, n % 5 == 1 ? width(wide) : 0));
                    check_pairs(one, twin, what + " against " + std::string(name_of(wide)));
                    if (n > (1 << 22)) continue;
                    std::vector<Tensor> all[4];
                    all[0].push_back(tensor(one[0].bytes, dtype, elements));
                    all[1].push_back(
                        tensor(make(n % 2 ? data : Data::mixed, dtype, n, seed), dtype, elements));
                    all[2].push_back(tensor(twin[0].bytes, wide, elements));
                    all[3].push_back(tensor(make(data, DType::fp32, n, seed + 5), DType::fp32, elements));
                    check_stagnation(all, true, what + " stagnation");
                    check_stagnation(all, false, what + " stagnation without a twin");
                }
                machine_.release();
            }
    }
}

void Checks::every_short_pattern() {
    for (const DType dtype : {DType::fp16, DType::bf16, DType::e4m3, DType::e5m2}) {
        const std::size_t w = width(dtype), n = std::size_t{1} << (8 * w);
        const auto elements = static_cast<std::int64_t>(n);
        std::vector<unsigned char> all(n * w), finite;
        for (std::size_t i = 0; i < n; ++i) {
            std::memcpy(all.data() + i * w, &i, w);
            const double x = __builtin_bit_cast(double, detail::decode_bits(*format_of(dtype), i));
            if (std::isfinite(x)) finite.insert(finite.end(), all.data() + i * w, all.data() + i * w + w);
        }
        // Each alone, which the elementwise path measures; each in a vector of copies, which the chunks measure.
        std::vector<Tensor> singles, copies;
        const Tensor whole = tensor(all, dtype, elements);
        constexpr std::size_t kCopies = 64;
        std::vector<unsigned char> repeated(n * kCopies * w);
        for (std::size_t i = 0; i < n * kCopies; ++i)
            std::memcpy(repeated.data() + i * w, all.data() + i / kCopies * w, w);
        const Tensor copied = tensor(repeated, dtype, elements * static_cast<std::int64_t>(kCopies));
        for (std::size_t i = 0; i < n; ++i) {
            Tensor single, copy;
            single.host = cpu::contiguous(whole.bytes.data() + i * w, dtype, 1);
            single.device = cpu::contiguous(static_cast<const char*>(whole.device.data) + i * w, dtype, 1);
            copy.host = cpu::contiguous(copied.bytes.data() + i * kCopies * w, dtype, kCopies);
            copy.device = cpu::contiguous(static_cast<const char*>(copied.device.data) + i * kCopies * w,
                                          dtype, kCopies);
            single.bytes.assign(whole.bytes.begin() + static_cast<long>(i * w),
                                whole.bytes.begin() + static_cast<long>(i * w + w));
            copy.bytes.assign(copied.bytes.begin() + static_cast<long>(i * kCopies * w),
                              copied.bytes.begin() + static_cast<long>((i + 1) * kCopies * w));
            singles.push_back(single);
            copies.push_back(copy);
        }
        check_one_sided(singles, text("each pattern alone", dtype, n));
        check_one_sided(copies, text("64 copies of each pattern", dtype, n));
        check_offenders(singles, text("each pattern alone", dtype, n));
        check_offenders(copies, text("64 copies of each pattern", dtype, n));
        std::vector<Tensor> together;
        together.push_back(whole);
        together.back().host.data = together.back().bytes.data();
        together.push_back(tensor(finite, dtype, static_cast<std::int64_t>(finite.size() / w)));
        together.back().host.data = together.back().bytes.data();
        check_one_sided(together, text("all patterns", dtype, n));
        for (const DType wide : {DType::fp32, DType::fp64})
            for (const std::size_t shift : {std::size_t{0}, std::size_t{1}, n / 2}) {
                std::vector<unsigned char> values(n * width(wide));
                for (std::size_t i = 0; i < n; ++i) {
                    const std::uint64_t x = detail::decode_bits(*format_of(dtype), (i + shift) % n);
                    const std::uint64_t y = detail::encode_bits(*format_of(wide), x, Overflow::as_format);
                    std::memcpy(values.data() + i * width(wide), &y, width(wide));
                }
                std::vector<Tensor> real, twin;
                real.push_back(tensor(all, dtype, elements));
                twin.push_back(tensor(values, wide, elements));
                check_pairs(real, twin, text("all patterns against others", dtype, n));
            }
        machine_.release();
    }
}

void Checks::patterns_of_fp32(std::size_t n) {
    constexpr std::size_t kPart = 1000000;
    for (std::size_t done = 0; done < n; done += kPart) {
        std::vector<Tensor> all, twin;
        all.push_back(tensor(make(Data::patterns, DType::fp32, kPart, 7 + done), DType::fp32, kPart));
        twin.push_back(tensor(make(Data::patterns, DType::fp32, kPart, 8 + done), DType::fp32, kPart));
        check_one_sided(all, "patterns of fp32");
        check_pairs(all, twin, "patterns of fp32");
        // Without NaN and infinity the chunks see them too: their largest exponent field becomes one less.
        auto finite = all[0].bytes;
        for (std::size_t i = 0; i < kPart; ++i) {
            std::uint32_t pattern = 0;
            std::memcpy(&pattern, finite.data() + 4 * i, 4);
            if ((pattern & 0x7F800000u) == 0x7F800000u) pattern ^= 0x00800000u;
            std::memcpy(finite.data() + 4 * i, &pattern, 4);
        }
        std::vector<Tensor> chunks;
        chunks.push_back(tensor(finite, DType::fp32, kPart));
        check_one_sided(chunks, "finite patterns of fp32");
        check_pairs(chunks, twin, "finite patterns of fp32");
        machine_.release();
    }
}

namespace {

TensorView shaped(TensorView view, const std::vector<std::int64_t>& sizes,
                  const std::vector<std::int64_t>& strides, std::size_t first) {
    view.data = static_cast<const char*>(view.data) + first * width(view.dtype);
    view.dims = static_cast<int>(sizes.size());
    std::copy(sizes.begin(), sizes.end(), view.sizes);
    std::copy(strides.begin(), strides.end(), view.strides);
    return view;
}

struct Shape {
    std::vector<std::int64_t> sizes, strides;
    std::size_t first = 0;
};

}  // namespace

void Checks::layouts() {
    const Shape shapes[] = {{{}, {}},
                            {{100, 77}, {77, 1}},
                            {{100, 77}, {1, 100}},
                            {{100, 77}, {200, 1}},
                            {{300, 33}, {150, 3}},
                            {{50, 60}, {0, 1}},
                            {{9000}, {0}},
                            {{10000}, {-1}, 9999},
                            {{100, 100}, {-100, -1}, 9999},
                            {{7, 1, 11, 13}, {13, 5, 91, 1}},
                            {{3, 4, 5, 6, 7, 2}, {1, 3, 12, 60, 720, 7000}},
                            {{2, 2, 2, 2, 2, 2, 2, 3}, {3, 7, 20, 60, 200, 700, 3000, 9000}},
                            {{5, 0, 3}, {1, 1, 1}},
                            {{2, 9000}, {20000, 1}, 1}};
    constexpr std::int64_t kElements = 60000;
    for (const DType dtype : kMeasured) {
        std::vector<Tensor> all, twins, transposed;
        for (const Shape& s : shapes) {
            for (const bool special : {false, true}) {
                all.push_back(tensor(make(special ? Data::mixed : Data::normal, dtype, kElements, 3), dtype,
                                     kElements));
                twins.push_back(tensor(make(Data::mixed, DType::fp32, kElements, 4), DType::fp32, kElements));
                Tensor& t = all.back();
                t.host = shaped(t.host, s.sizes, s.strides, s.first);
                t.device = shaped(t.device, s.sizes, s.strides, s.first);
                Tensor& y = twins.back();
                std::vector<std::int64_t> strides(s.sizes.size());
                std::int64_t next = 1;
                for (std::size_t i = 0; i < strides.size();
                     ++i) {  // the other way round: first dimension fastest
                    strides[i] = next;
                    next *= s.sizes[i];
                }
                y.host = shaped(y.host, s.sizes, strides, 0);
                y.device = shaped(y.device, s.sizes, strides, 0);
            }
        }
        check_one_sided(all, text("layouts", dtype, kElements));
        check_offenders(all, text("layouts", dtype, kElements));
        check_pairs(all, twins, text("layouts", dtype, kElements));
        machine_.release();
    }
    // The index of an offender counts in the order of the dimensions.
    std::vector<float> values(6, 1.0f);
    values[1] = std::numeric_limits<float>::infinity();
    std::vector<unsigned char> bytes(values.size() * sizeof(float));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    const Tensor t = tensor(bytes, DType::fp32, 6);
    const TensorView columns = shaped(t.device, {2, 3}, {1, 2}, 0);  // element [1][0]
    auto* found = static_cast<Nonfinite*>(machine_.pinned(sizeof(Nonfinite)));
    launched(measure_.first_nonfinite(machine_.stream, scratch_, &columns, 1, found),
             "offender of a transposed view");
    machine_.wait();
    exact(found->first, std::uint64_t{3}, "first offender", "transposed view");
    machine_.release();
}

void Checks::offenders(std::size_t largest) {
    for (const DType dtype : kMeasured)
        for (const std::size_t n : {std::size_t{100}, std::size_t{8195}, std::size_t{70000}, largest}) {
            if (n > largest) continue;
            const std::size_t places[] = {0, 1, 15, 16, n / 3, n / 2, n - 17, n - 2, n - 1};
            for (const std::size_t at : places) {
                if (at >= n) continue;
                std::vector<unsigned char> bytes = make(Data::normal, dtype, n, 11);
                const FloatFormat& f = *format_of(dtype);
                const std::uint64_t bad = detail::beyond_finite(f) | std::uint64_t{at % 2} << (f.width() - 1);
                for (const std::size_t i : {at, n - 1})
                    std::memcpy(bytes.data() + i * width(dtype), &bad, width(dtype));
                std::vector<Tensor> one;
                one.push_back(
                    tensor(std::move(bytes), dtype, static_cast<std::int64_t>(n), at % 2 * width(dtype)));
                check_offenders(one, text("offender", dtype, n) + " at " + std::to_string(at));
                machine_.release();
            }
        }
}

void Checks::lists(int count) {
    Random random{99};
    std::vector<Tensor> all, twins, four[4];
    for (int i = 0; i < count; ++i) {
        const DType dtype = kMeasured[random.next() % 6],
                    wide = random.next() % 4 ? DType::fp32 : DType::fp64;
        const std::size_t n = random.next() % (i % 10 == 0 ? 200000 : 5000);
        const auto elements = static_cast<std::int64_t>(n);
        const Data data = kAllData[random.next() % 10];
        all.push_back(
            tensor(make(data, dtype, n, random.next()), dtype, elements, random.next() % 8 * width(dtype)));
        twins.push_back(tensor(make(Data::normal, wide, n, random.next()), wide, elements));
        four[0].push_back(all.back());
        four[1].push_back(tensor(make(data, dtype, n, random.next() % 2), dtype, elements));
        four[2].push_back(twins.back());
        four[3].push_back(tensor(make(data, DType::fp32, n, random.next()), DType::fp32, elements));
        for (auto* list : {&all, &twins, &four[0], &four[1], &four[2], &four[3]})
            list->back().host.data = list->back().bytes.data();
    }
    const std::string what = "list of " + std::to_string(count);
    check_one_sided(all, what);
    check_offenders(all, what);
    check_pairs(all, twins, what);
    check_stagnation(four, true, what);
    check_stagnation(four, false, what);
    // Strided ones, whose axes fill a list sooner.
    for (std::size_t i = 0; i < all.size(); ++i)
        for (Tensor* t : {&all[i], &twins[i]})
            for (TensorView* v : {&t->host, &t->device}) {
                const std::int64_t n = v->sizes[0];
                if (n >= 4) *v = shaped(*v, {2, n / 4}, {n / 2, 2}, 0);
            }
    check_one_sided(all, what + " strided");
    check_offenders(all, what + " strided");
    check_pairs(all, twins, what + " strided");
    machine_.release();
}

namespace {

double element_at(const TensorView& view, std::size_t i) {
    TensorStats one;
    const char* const at = static_cast<const char*>(view.data) + i * width(view.dtype);
    cpu::statistics(cpu::contiguous(at, view.dtype, 1), one);
    return one.sum;
}

// The signs are the low bits of the numbers of SplitMix64 from a place on.
bool turns(std::uint64_t seed, std::uint64_t place) {
    return (Random{place + (seed - 1) * 0x9E3779B97F4A7C15u}.next() & 1) != 0;
}

}  // namespace

void Checks::check_sketch(const Tensor& t, const SketchedBlocks& blocks, const std::string& what) {
    auto* const got = static_cast<Sketch*>(machine_.pinned(SketchedBlocks::kMost * sizeof(Sketch)));
    launched(measure_.sketch(machine_.stream, scratch_, blocks, got), what);
    machine_.wait();
    for (std::uint32_t b = 0; b < blocks.count; ++b) {
        double sum = 0, squares = 0, absolute = 0;
        for (std::uint32_t i = 0; i < blocks.length; ++i) {
            const double x = element_at(t.host, static_cast<std::size_t>(blocks.first[b]) + i);
            sum += turns(blocks.seed, blocks.place[b] + i) ? -x : x;
            squares += x * x;
            absolute += std::fabs(x);
        }
        close(got[b].sum, sum, 1e-12 * absolute, "sum", what);
        close(got[b].squares, squares, 1e-12 * squares, "squares", what);
    }
}

void Checks::sketches() {
    constexpr std::size_t kElements = 40000;
    for (const DType dtype : {DType::fp64, DType::fp32, DType::fp16, DType::bf16})
        for (const std::uint32_t length : {1u, 255u, 256u, 257u, SketchedBlocks::kLongest}) {
            const Tensor t = tensor(make(Data::normal, dtype, kElements, length), dtype, kElements);
            SketchedBlocks blocks;
            blocks.data = t.device.data;
            blocks.dtype = dtype;
            blocks.length = length;
            blocks.seed = length;
            for (const std::int64_t first :
                 {std::int64_t{0}, std::int64_t{12345}, std::int64_t{kElements} - length}) {
                blocks.place[blocks.count] = (std::uint64_t{1} << 40) + static_cast<std::uint64_t>(first);
                blocks.first[blocks.count++] = first;
            }
            check_sketch(t, blocks, text("sketch", dtype, length));
            machine_.release();
        }
}

void Checks::refusals() {
    auto* stats = static_cast<TensorStats*>(machine_.pinned(sizeof(TensorStats)));
    std::memset(static_cast<void*>(stats), 0x55, sizeof *stats);
    const TensorView integer = cpu::contiguous(stats, DType::int32, 1);
    const Outcome outcome = measure_.statistics(machine_.stream, scratch_, &integer, 1, stats);
    exact(static_cast<int>(outcome.status), static_cast<int>(Status::unsupported), "status", "int32");
    const TensorView odd = cpu::contiguous(reinterpret_cast<const char*>(stats) + 1, DType::fp32, 1);
    const Outcome misaligned = measure_.statistics(machine_.stream, scratch_, &odd, 1, stats);
    exact(static_cast<int>(misaligned.status), static_cast<int>(Status::unsupported), "status", "misaligned");
    Scratch none;
    const Outcome unready = measure_.statistics(machine_.stream, none, &integer, 1, stats);
    exact(static_cast<bool>(unready), false, "outcome", "no scratch");
    machine_.wait();
    exact(stats->count, std::uint64_t{0x5555555555555555u}, "count", "a refused launch writes nothing");
    machine_.release();
}

}  // namespace mp::cuda
