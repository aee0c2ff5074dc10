// The CUDA kernels on this machine's GPU: first every result against the CPU's kernels, then how fast they read, as a
// share of what a copy on the device moves. Needs the driver and nothing else.
//   cuda_kernels_on_gpu [--quick | --only-speed | --little]
// --little: a few tensors of each kind and no figures, for compute-sanitizer.
// Exits with 1 when a result differs, with 77 without a GPU.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <thread>

#include "kernels/cpu/walk.hpp"
#include "tests/gpu/kernels/device.hpp"

namespace {

using namespace mp;
using namespace mp::cuda;
using mp::cpu::TensorView;

double now() {
    using namespace std::chrono;
    return duration<double>(steady_clock::now().time_since_epoch()).count();
}

void timed(const char* what, Checks& checks, const std::function<void()>& run) {
    const double start = now();
    const long before = checks.comparisons();
    run();
    std::printf("%-44s %10ld comparisons, %d failures so far, %.1f s\n", what, checks.comparisons() - before,
                checks.failures(), now() - start);
    std::fflush(stdout);
}

void check_capture(Device& device, const Measure& measure, Scratch& scratch, int& failures) {
    auto* stats = static_cast<TensorStats*>(device.pinned(sizeof(TensorStats)));
    const TensorView one = cpu::contiguous(device.memory(64), DType::fp32, 4);
    device.begin_capture();
    const Outcome outcome = measure.statistics(device.stream, scratch, &one, 1, stats);
    const bool kept = device.end_capture();
    if (outcome.status == Status::capturing && kept) return;
    std::printf("FAILED capture: %s, graph %s\n", name_of(outcome.status), kept ? "kept" : "lost");
    ++failures;
}

// Same launch, same bits.
void check_repeatable(Device& device, const Measure& measure, Scratch& scratch, int& failures) {
    constexpr std::size_t n = (1 << 24) + 77;
    const auto bytes = make(Data::normal, DType::bf16, n, 5);
    char* const at = device.memory(bytes.size());
    device.copy(at, bytes.data(), bytes.size());
    auto* stats = static_cast<TensorStats*>(device.pinned(20 * sizeof(TensorStats)));
    const TensorView view = cpu::contiguous(at, DType::bf16, n);
    for (int i = 0; i < 20; ++i) measure.statistics(device.stream, scratch, &view, 1, stats + i);
    device.wait();
    for (int i = 1; i < 20; ++i)
        if (std::memcmp(stats, stats + i, sizeof *stats) != 0) {
            std::printf("FAILED repeat %d: other bits\n", i);
            ++failures;
        }
    device.release();
}

void check(Device& device, const Measure& measure, Scratch& scratch, bool quick, int& failures) {
    Checks checks(device, measure, scratch);
    timed("refusals", checks, [&] { checks.refusals(); });
    timed("layouts", checks, [&] { checks.layouts(); });
    timed("sketches of blocks", checks, [&] { checks.sketches(); });
    timed("lists of 150 and 700 tensors", checks, [&] { checks.lists(150), checks.lists(700); });
    timed("every 8- and 16-bit pattern", checks, [&] { checks.every_short_pattern(); });
    timed("patterns of fp32", checks, [&] { checks.patterns_of_fp32(quick ? 1000000 : 10000000); });
    timed("sizes to 300001, all data", checks, [&] { checks.sizes_and_data(300001, true); });
    timed("first offenders", checks, [&] { checks.offenders(quick ? 300001 : (1 << 24) + 3); });
    if (!quick)
        timed("sizes to 2^26 + 3", checks, [&] { checks.sizes_and_data((std::size_t{1} << 26) + 3, false); });
    failures += checks.failures();
    check_capture(device, measure, scratch, failures);
    check_repeatable(device, measure, scratch, failures);
}

void check_little(Device& device, const Measure& measure, Scratch& scratch, int& failures) {
    Checks checks(device, measure, scratch);
    timed("layouts", checks, [&] { checks.layouts(); });
    timed("lists of 150 tensors", checks, [&] { checks.lists(150); });
    timed("sizes to 10001", checks, [&] { checks.sizes_and_data(10001, false); });
    timed("first offenders", checks, [&] { checks.offenders(10001); });
    failures += checks.failures();
}

// ---- Speed. --------------------------------------------------------------------------------------

struct Speed {
    Device& device;
    Measure& measure;
    Scratch& scratch;
    static constexpr std::size_t kPool = std::size_t{2} << 30;  // larger than any cache
    char* pool = nullptr;                                       // values
    char* twins = nullptr;                                      // fp32
    char* to = nullptr;
    unsigned char* results = nullptr;

    void prepare() {
        pool = device.memory(kPool);
        twins = device.memory(kPool);
        to = device.memory(kPool);
        results = static_cast<unsigned char*>(device.pinned(std::size_t{4} << 20));
    }
    // Fills the pool with a format, by doubling.
    void fill(char* at, DType dtype, Data data) {
        const auto bytes = make(data, dtype, (std::size_t{1} << 22) / cpu::width_of(dtype), 3);
        device.copy(at, bytes.data(), bytes.size());
        for (std::size_t done = bytes.size(); done < kPool; done *= 2)
            device.copy_on_device(at + done, at, std::min(done, kPool - done));
        device.wait();
    }

    // GB/s that a copy of the same size reads and writes, each time from another place of the pool.
    double copy_rate(std::size_t bytes) {
        const std::size_t places = kPool / bytes;
        const double ms = device.time(6, repeats(bytes), [&](int i) {
            const std::size_t at = static_cast<std::size_t>(i) % places * bytes;
            device.copy_on_device(to + at, pool + at, bytes);
        });
        return 2 * static_cast<double>(bytes) / ms / 1e6;
    }
    static int repeats(std::size_t bytes) {
        return static_cast<int>(std::clamp(kPool / bytes, std::size_t{4}, std::size_t{32}));
    }

    // GB/s of a measure that reads `bytes` per call, as lists of `tensors` equal parts.
    template <class Call>
    double rate(std::size_t bytes, Call&& call) {
        return static_cast<double>(bytes) / device.time(6, repeats(bytes), call) / 1e6;
    }

    std::vector<TensorView> parts(char* base, DType dtype, std::size_t place, std::size_t elements,
                                  int tensors) {
        std::vector<TensorView> list;
        const std::size_t each = elements / static_cast<std::size_t>(tensors) / 16 * 16,
                          width = cpu::width_of(dtype);
        for (int i = 0; i < tensors; ++i)
            list.push_back(
                cpu::contiguous(base + (place * elements + static_cast<std::size_t>(i) * each) * width, dtype,
                                static_cast<std::int64_t>(each)));
        return list;
    }

    double statistics(DType dtype, std::size_t bytes, int tensors, bool histogram) {
        const std::size_t elements = bytes / cpu::width_of(dtype), places = kPool / bytes;
        std::vector<std::vector<TensorView>> lists;
        for (std::size_t p = 0; p < places; ++p) lists.push_back(parts(pool, dtype, p, elements, tensors));
        auto* stats = reinterpret_cast<TensorStats*>(results);
        auto* bins = reinterpret_cast<ExponentHistogram*>(results + (1 << 20));
        return rate(bytes, [&](int i) {
            const auto& list = lists[static_cast<std::size_t>(i) % places];
            measure.statistics(device.stream, scratch, list.data(), tensors, stats,
                               histogram ? bins : nullptr);
        });
    }
    double nonfinite(DType dtype, std::size_t bytes, int tensors) {
        const std::size_t elements = bytes / cpu::width_of(dtype), places = kPool / bytes;
        std::vector<std::vector<TensorView>> lists;
        for (std::size_t p = 0; p < places; ++p) lists.push_back(parts(pool, dtype, p, elements, tensors));
        return rate(bytes, [&](int i) {
            const auto& list = lists[static_cast<std::size_t>(i) % places];
            measure.first_nonfinite(device.stream, scratch, list.data(), tensors,
                                    reinterpret_cast<Nonfinite*>(results));
        });
    }
    // Reads `bytes` of real values and twins together.
    double divergence(DType dtype, std::size_t bytes, int tensors) {
        const std::size_t width = cpu::width_of(dtype), elements = bytes / (width + 4) / 1024 * 1024;
        const std::size_t places = kPool / (elements * std::max<std::size_t>(width, 4));
        std::vector<std::vector<TensorView>> x, y;
        for (std::size_t p = 0; p < places; ++p) {
            x.push_back(parts(pool, dtype, p, elements, tensors));
            y.push_back(parts(twins, DType::fp32, p, elements, tensors));
        }
        return rate(elements * (width + 4), [&](int i) {
            const std::size_t p = static_cast<std::size_t>(i) % places;
            measure.divergence(device.stream, scratch, x[p].data(), y[p].data(), tensors,
                               reinterpret_cast<Divergence*>(results));
        });
    }
    double stagnation(DType dtype, std::size_t bytes) {
        const std::size_t width = cpu::width_of(dtype), elements = bytes / (2 * width + 8) / 1024 * 1024;
        const TensorView before = cpu::contiguous(pool, dtype, static_cast<std::int64_t>(elements));
        const TensorView after =
            cpu::contiguous(pool + kPool / 2, dtype, static_cast<std::int64_t>(elements));
        const TensorView from = cpu::contiguous(twins, DType::fp32, static_cast<std::int64_t>(elements));
        const TensorView to_view =
            cpu::contiguous(twins + kPool / 2, DType::fp32, static_cast<std::int64_t>(elements));
        return rate(elements * (2 * width + 8), [&](int) {
            measure.stagnation(device.stream, scratch, &before, &after, &from, &to_view, 1,
                               reinterpret_cast<cpu::Stagnation*>(results));
        });
    }

    void row(const char* what, DType dtype, std::size_t bytes, int tensors, const char* data, double got,
             double copy) {
        std::printf("| %s | %s | %s | %d | %.2f MiB | %.0f | %.0f | %.2f |\n", what,
                    std::string(name_of(dtype)).c_str(), data, tensors,
                    static_cast<double>(bytes) / (1 << 20), got, copy, got / copy);
        std::fflush(stdout);
    }

    void run() {
        prepare();
        std::printf(
            "\n| kernel | format | data | tensors | read | GB/s | copy GB/s (read + write) | ratio |\n"
            "|---|---|---|---:|---:|---:|---:|---:|\n");
        const DType formats[] = {DType::bf16, DType::fp16, DType::fp32,
                                 DType::fp64, DType::e4m3, DType::e5m2};
        const std::size_t mib = 1 << 20;
        const std::size_t sizes[] = {16 * mib, 64 * mib, 256 * mib, 1024 * mib};
        double copies[4];
        fill(twins, DType::fp32, Data::normal);
        for (int i = 0; i < 4; ++i) copies[i] = copy_rate(sizes[i]);
        const std::size_t small[] = {64 << 10, 256 << 10, 1 << 20};
        double list_copies[3];
        for (int i = 0; i < 3; ++i) list_copies[i] = copy_rate(150 * small[i]);
        for (const DType dtype : formats) {
            fill(pool, dtype, Data::normal);
            for (int i = 0; i < 4; ++i)
                row("statistics", dtype, sizes[i], 1, "normal", statistics(dtype, sizes[i], 1, false),
                    copies[i]);
            for (int i = 0; i < 3; ++i)
                row("statistics", dtype, 150 * small[i], 150, "normal",
                    statistics(dtype, 150 * small[i], 150, false), list_copies[i]);
            for (const int i : {1, 2})
                row("histogram", dtype, sizes[i], 1, "normal", statistics(dtype, sizes[i], 1, true),
                    copies[i]);
            row("histogram", dtype, 150 * small[1], 150, "normal",
                statistics(dtype, 150 * small[1], 150, true), list_copies[1]);
            row("nonfinite", dtype, sizes[1], 1, "normal", nonfinite(dtype, sizes[1], 1), copies[1]);
            row("nonfinite", dtype, 150 * small[1], 150, "normal", nonfinite(dtype, 150 * small[1], 150),
                list_copies[1]);
            for (const int i : {1, 2})
                row("divergence", dtype, sizes[i], 1, "normal", divergence(dtype, sizes[i], 1), copies[i]);
            row("divergence", dtype, 150 * small[1], 150, "normal", divergence(dtype, 150 * small[1], 150),
                list_copies[1]);
            row("stagnation", dtype, sizes[2], 1, "normal", stagnation(dtype, sizes[2]), copies[2]);
        }
        const struct {
            Data data;
            const char* name;
        } others[] = {
            {Data::relu, "relu"}, {Data::mixed, "mixed"}, {Data::constant, "constant"}, {Data::tiny, "tiny"}};
        for (const DType dtype : {DType::bf16, DType::fp16, DType::fp32, DType::e4m3})
            for (const auto& other : others) {
                fill(pool, dtype, other.data);
                row("statistics", dtype, sizes[2], 1, other.name, statistics(dtype, sizes[2], 1, false),
                    copies[2]);
                row("histogram", dtype, sizes[2], 1, other.name, statistics(dtype, sizes[2], 1, true),
                    copies[2]);
            }
        fill(pool, DType::bf16, Data::normal);
        for (const int waves : {1, 2, 4, 8}) {
            measure.set_waves(waves);
            const std::string name = "statistics, " + std::to_string(waves) + " waves";
            for (const int i : {1, 2})
                row(name.c_str(), DType::bf16, sizes[i], 1, "normal",
                    statistics(DType::bf16, sizes[i], 1, false), copies[i]);
            row(name.c_str(), DType::bf16, 150 * small[1], 150, "normal",
                statistics(DType::bf16, 150 * small[1], 150, false), list_copies[1]);
        }
        measure.set_waves(1);
        calls();
        device.release();
    }

    // What a call costs the calling thread.
    void calls() {
        const TensorView one = cpu::contiguous(pool, DType::bf16, 1024);
        const auto list = parts(pool, DType::bf16, 0, 150 * 1024, 150);
        auto* stats = reinterpret_cast<TensorStats*>(results);
        for (const int tensors : {1, 150}) {
            device.wait();
            const double start = now();
            for (int i = 0; i < 500; ++i)
                measure.statistics(device.stream, scratch, tensors == 1 ? &one : list.data(), tensors, stats);
            const double us = (now() - start) / 500 * 1e6;
            device.wait();
            std::printf("\nA call with %d tensors takes the host %.2f us", tensors, us);
        }
        std::printf(".\n");
    }
};

}  // namespace

int main(int argc, char** argv) {
    bool quick = false, only_speed = false, little = false;
    for (int i = 1; i < argc; ++i) {
        quick = quick || std::strcmp(argv[i], "--quick") == 0;
        only_speed = only_speed || std::strcmp(argv[i], "--only-speed") == 0;
        little = little || std::strcmp(argv[i], "--little") == 0;
    }
    Device device;
    if (const std::string missing = device.open(); !missing.empty()) {
        std::printf("skipped: %s\n", missing.c_str());
        return 77;
    }
    std::printf("%s, compute capability %d.%d, driver API %d\n", device.name().c_str(),
                device.capability() / 10, device.capability() % 10, device.driver_version());
    Measure measure;
    Scratch scratch;
    const double start = now();
    if (const Outcome loaded = measure.load(); !loaded) {
        std::printf("FAILED load: %s %d\n", name_of(loaded.status), loaded.code);
        return 1;
    }
    std::printf("kernels loaded in %.0f ms\n", (now() - start) * 1e3);
    if (!scratch.make(device.stream)) return 1;
    int failures = 0;
    if (little)
        check_little(device, measure, scratch, failures);
    else if (!only_speed)
        check(device, measure, scratch, quick, failures);
    std::printf("%s\n", failures == 0 ? "All results are right." : "RESULTS DIFFER.");
    if (!little) Speed{device, measure, scratch}.run();
    std::printf("\n%s in %.0f s\n", failures == 0 ? "PASSED" : "FAILED", now() - start);
    return failures == 0 ? 0 : 1;
}
