// Folds a run directory and prints time and memory, or writes the unpacked payloads of all its frames:
//
//   merge_bench DIR [THREADS]      ranks ops steps wall_seconds cpu_seconds peak_mib
//   merge_bench --payloads DIR     to stdout, in the order of the files
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runtime/fold/run_model.hpp"
#include "runtime/trace/frame_scanner.hpp"

namespace {

double seconds(const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
}

int fold(const char* directory, int threads) {
    const auto started = std::chrono::steady_clock::now();
    const auto model = mp::trace::fold_run(directory, {.threads = threads});
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
    if (!model) return 1;
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    std::printf("%zu %zu %lld %.4f %.4f %.1f\n", model->ranks.size(), model->ops.size(),
                static_cast<long long>(model->step_count), took.count(),
                seconds(used.ru_utime) + seconds(used.ru_stime), static_cast<double>(used.ru_maxrss) / 1024);
    return 0;
}

int write_payloads(const std::string& path) {
    const mp::InputFile file(path);
    struct ::stat info{};
    if (file.get() < 0 || ::fstat(file.get(), &info) != 0) return 1;
    std::vector<mp::trace::Problem> problems;
    mp::trace::Window window(file.get(), static_cast<std::uint64_t>(info.st_size));
    mp::trace::FrameScanner scanner(window, problems);
    mp::trace::Unpacker unpacker;
    (void)scanner.header();
    scanner.scan(true, [&](std::uint64_t, const mp::trace::FrameHeader& header, std::string_view stored) {
        const auto payload = unpacker.unpack(header, stored);
        if (payload) std::fwrite(payload->data(), 1, payload->size(), stdout);
    });
    return problems.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 3 && std::strcmp(argv[1], "--payloads") == 0) {
        const auto paths = mp::trace::recordings_in(argv[2]);
        if (!paths) return 1;
        for (const std::string& path : *paths) {
            if (write_payloads(path) != 0) return 1;
        }
        return std::fflush(stdout) == 0 ? 0 : 1;
    }
    if (argc < 2) return 2;
    return fold(argv[1], argc > 2 ? std::atoi(argv[2]) : 0);
}
