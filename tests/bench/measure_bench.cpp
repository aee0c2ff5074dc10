// Prints the table of docs/performance.md, "Measuring kernels": every variant once a round, the minimum of the
// rounds, CPU time of this thread. Only ratios of one run mean anything on a shared machine.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "kernels/cpu/measure.hpp"
#include "tests/bench/measure_loops.hpp"

namespace {

using mp::DType;

double now() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

void* huge_pages(std::size_t bytes) {
    constexpr std::size_t kHuge = std::size_t{2} << 20;
    void* p = nullptr;
    if (posix_memalign(&p, kHuge, bytes) != 0) return nullptr;
    madvise(p, bytes, MADV_HUGEPAGE);
    return p;
}

// kB of this process that lie in huge pages.
long huge_kb() {
    std::FILE* f = std::fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    long kb = 0;
    while (f && std::fgets(line, sizeof line, f))
        if (std::sscanf(line, "AnonHugePages: %ld kB", &kb) == 1) break;
    if (f) std::fclose(f);
    return kb;
}

volatile double kept = 0;  // so that no result is dropped

struct Variant {
    std::string name;
    std::function<double()> run;
    double best = std::numeric_limits<double>::infinity();
};

// The first variant is the read loop; the last one the naive loop.
void table(const std::string& title, double bytes, std::vector<Variant> variants, int rounds) {
    for (int i = 0; i < rounds; ++i)
        for (Variant& v : variants) {
            const double start = now();
            kept = kept + v.run();
            v.best = std::min(v.best, now() - start);
        }
    std::printf("\n%s\n\n| variant | GB/s | of the read loop | of the naive loop |\n", title.c_str());
    std::puts("|---|---|---|---|");
    for (const Variant& v : variants)
        std::printf("| %s | %.1f | %.2f | %.1f x |\n", v.name.c_str(), bytes / v.best / 1e9,
                    variants.front().best / v.best, variants.back().best / v.best);
}

double small_call_ns(DType dtype, const void* data, std::int64_t n) {
    constexpr int kCalls = 20000;
    double best = std::numeric_limits<double>::infinity();
    for (int round = 0; round < 5; ++round) {
        mp::TensorStats s;
        const double start = now();
        for (int i = 0; i < kCalls; ++i) mp::cpu::statistics(mp::cpu::contiguous(data, dtype, n), s);
        best = std::min(best, now() - start);
        kept = kept + s.sum;
    }
    return best / kCalls * 1e9;
}

// Roughly normal: the sum of four uniform values. A simple generator, because otherwise filling would
// dominate.
float next_normal(std::uint64_t& state) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const std::uint64_t a = state;
    state = state * 6364136223846793005u + 1442695040888963407u;
    const std::uint64_t b = state;
    const std::uint64_t sum = (a >> 32) + (a & 0xFFFFFFFF) + (b >> 32) + (b & 0xFFFFFFFF);
    return static_cast<float>((static_cast<double>(sum) * 0x1p-32 - 2) * 1.7320508);
}

std::uint16_t rounded(float x) {
    const auto bits = __builtin_bit_cast(std::uint32_t, x);
    return static_cast<std::uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

struct Buffers {
    std::size_t n = 0;
    std::uint16_t* bf16 = nullptr;
    float* fp32 = nullptr;
    void* copy = nullptr;
};

template <class T>
double measured(const T* data, DType dtype, std::size_t n, bool histogram) {
    mp::TensorStats s;
    mp::ExponentHistogram h;
    mp::cpu::statistics(mp::cpu::contiguous(data, dtype, static_cast<std::int64_t>(n)), s,
                        histogram ? &h : nullptr);
    return s.sum + static_cast<double>(h.bins[127]);
}

double any(const void* data, DType dtype, std::size_t n) {
    return mp::cpu::any_nonfinite(mp::cpu::contiguous(data, dtype, static_cast<std::int64_t>(n))) ? 1 : 0;
}

void statistics_tables(const Buffers& b, int rounds) {
    const std::size_t half = b.n / 2;  // of fp32: the same bytes as all of bf16
    const double bytes = 2.0 * static_cast<double>(b.n);
    const auto size = static_cast<std::size_t>(bytes);
    table("Statistics, bf16", bytes,
          {{"read loop", [&] { return static_cast<double>(mp::bench::read(b.bf16, size)); }},
           {"memcpy", [&] { return std::memcpy(b.copy, b.bf16, size) ? 1.0 : 0.0; }},
           {"statistics", [&] { return measured(b.bf16, DType::bf16, b.n, false); }},
           {"statistics and histogram", [&] { return measured(b.bf16, DType::bf16, b.n, true); }},
           {"any_nonfinite", [&] { return any(b.bf16, DType::bf16, b.n); }},
           {"naive loop with histogram",
            [&] {
                mp::ExponentHistogram h;
                return mp::bench::naive_statistics_bf16(b.bf16, b.n, &h).sum +
                       static_cast<double>(h.bins[127]);
            }},
           {"naive loop", [&] { return mp::bench::naive_statistics_bf16(b.bf16, b.n, nullptr).sum; }}},
          rounds);
    table("Statistics, fp32", bytes,
          {{"read loop", [&] { return static_cast<double>(mp::bench::read(b.fp32, size)); }},
           {"memcpy", [&] { return std::memcpy(b.copy, b.fp32, size) ? 1.0 : 0.0; }},
           {"statistics", [&] { return measured(b.fp32, DType::fp32, half, false); }},
           {"statistics and histogram", [&] { return measured(b.fp32, DType::fp32, half, true); }},
           {"any_nonfinite", [&] { return any(b.fp32, DType::fp32, half); }},
           {"naive loop with histogram",
            [&] {
                mp::ExponentHistogram h;
                return mp::bench::naive_statistics_fp32(b.fp32, half, &h).sum +
                       static_cast<double>(h.bins[127]);
            }},
           {"naive loop", [&] { return mp::bench::naive_statistics_fp32(b.fp32, half, nullptr).sum; }}},
          rounds);
}

void divergence_table(const Buffers& b, int rounds) {
    const double bytes = 6.0 * static_cast<double>(b.n);
    const auto n = static_cast<std::int64_t>(b.n);
    const auto x = mp::cpu::contiguous(b.bf16, DType::bf16, n),
               y = mp::cpu::contiguous(b.fp32, DType::fp32, n);
    table("Divergence, bf16 from fp32", bytes,
          {{"read loop over both",
            [&] { return static_cast<double>(mp::bench::read_two(b.bf16, 2 * b.n, b.fp32, 4 * b.n)); }},
           {"divergence",
            [&] {
                mp::Divergence d;
                mp::cpu::divergence(x, y, d);
                return d.ee;
            }},
           {"statistics and divergence",
            [&] {
                mp::Divergence d;
                mp::TensorStats s;
                mp::cpu::statistics_and_divergence(x, y, s, d);
                return d.ee + s.sum;
            }},
           {"naive loop", [&] { return mp::bench::naive_divergence_bf16(b.bf16, b.fp32, b.n).ee; }}},
          rounds);
}

}  // namespace

int main(int argc, char** argv) {
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 5;
    const std::size_t mib = argc > 2 ? static_cast<std::size_t>(std::atol(argv[2])) : 1024;
    Buffers b;
    b.n = (mib << 20) / 2;  // of bf16
    b.bf16 = static_cast<std::uint16_t*>(huge_pages(2 * b.n));
    b.fp32 = static_cast<float*>(huge_pages(4 * b.n));
    b.copy = huge_pages(2 * b.n);
    if (!b.bf16 || !b.fp32 || !b.copy)
        return std::puts("measure_bench: not enough memory: give fewer MiB"), 1;
    std::uint64_t state = 1;
    for (std::size_t i = 0; i < b.n; ++i) b.bf16[i] = rounded(b.fp32[i] = next_normal(state));
    std::memset(b.copy, 0, 2 * b.n);
    double load = 0;
    if (getloadavg(&load, 1) != 1) load = -1;
    std::printf(
        "%s, pages of %ld kB, %.1f GB in huge ones, %zu MiB of bf16, 1 thread, minimum of %d interleaved "
        "rounds, load %.1f\n",
        mp::cpu::instruction_set(), sysconf(_SC_PAGESIZE) / 1024, static_cast<double>(huge_kb()) / 1e6, mib,
        rounds, load);
    statistics_tables(b, rounds);
    divergence_table(b, rounds);
    std::printf("\nSmall tensors, statistics of bf16\n\n| elements | ns a call |\n|---|---|\n");
    for (const std::int64_t n : {1, 100, 1000, 10000})
        std::printf("| %ld | %.0f |\n", n, small_call_ns(DType::bf16, b.bf16, n));
}
