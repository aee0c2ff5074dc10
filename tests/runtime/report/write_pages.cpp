// write_pages DIR [LAYERS STEPS]: the sample runs as pages, for the test in a browser; with numbers, one large
// run, and how long writing it took.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "runtime/report/page.hpp"
#include "tests/runtime/report/sample_models.hpp"
#include "tests/runtime/trace/samples.hpp"

namespace {

using namespace mp::trace;

void write(const std::string& directory, const char* name, const test::Judged& run) {
    const auto start = std::chrono::steady_clock::now();
    const std::string page = html_page(run.model, run.judgement);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    test::write_bytes(directory + "/" + name + ".html", page);
    std::printf("%s %zu bytes, written in %.3f s\n", name, page.size(), took.count());
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    if (argc == 4) {
        write(argv[1], "large", test::large_run(std::atoi(argv[2]), std::atoi(argv[3])));
        return 0;
    }
    write(argv[1], "clean", test::clean_run());
    write(argv[1], "overflow", test::overflow_run());
    write(argv[1], "stagnation", test::stagnating_run());
    write(argv[1], "running_sum", test::running_sum_run());
    write(argv[1], "watch", test::watched_run());
    write(argv[1], "hostile", test::hostile_run());
    return 0;
}
