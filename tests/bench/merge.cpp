// Folds a run directory and prints what it took:  merge_bench DIR [THREADS]
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "runtime/shard/run_model.hpp"

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    const auto started = std::chrono::steady_clock::now();
    const auto model = mp::trace::fold_run(argv[1], {.threads = argc > 2 ? std::atoi(argv[2]) : 0});
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
    if (!model) return 1;
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    std::printf("%zu ranks, %zu ops, %lld steps: %.3f s, %.0f MB\n", model->ranks.size(), model->ops.size(),
                static_cast<long long>(model->step_count), took.count(), static_cast<double>(used.ru_maxrss) / 1024);
}
