// A program with NVTX ranges and no CUDA: what NVTX's header-only library does in each module, without its headers.
//
//   nvtx_program plain|none|fork|threads|unbalanced|annotated|skips|accumulates|"never updates"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "instrument/cuda/abi.hpp"
#include "instrument/preload/mptrace.h"

namespace {

namespace abi = mp::raw::abi;

// One module of the program with its own table.
struct Module {
    int (*push)(const char*) = nullptr;
    int (*pop)() = nullptr;
};

abi::NvtxFunction g_core[16];
abi::NvtxFunction* g_core_slots[16];

int functions_of(int module, abi::NvtxFunction*** table, unsigned* size) {
    if (module != abi::kNvtxCore) return 0;
    for (int i = 0; i < 16; ++i) g_core_slots[i] = &g_core[i];
    *table = g_core_slots;
    *size = 16;
    return 1;
}

const void* exports(std::uint32_t table) {
    static const abi::NvtxCallbackTable callbacks{sizeof callbacks, functions_of};
    return table == abi::kNvtxCallbacks ? &callbacks : nullptr;
}

Module attach() {
    Module module;
    const char* const path = std::getenv("NVTX_INJECTION64_PATH");
    void* const library = path ? dlopen(path, RTLD_LAZY) : nullptr;
    if (!library) return module;
    const auto initialize =
        reinterpret_cast<int (*)(abi::NvtxExports)>(dlsym(library, "InitializeInjectionNvtx2"));
    if (!initialize || !initialize(exports)) return module;
    module.push = reinterpret_cast<int (*)(const char*)>(g_core[9]);
    module.pop = reinterpret_cast<int (*)()>(g_core[11]);
    return module;
}

class Range {
public:
    Range(const Module& module, const std::string& name) : module_(module) {
        if (module_.push && module_.push(name.c_str()) != abi::kNvtxNotTracked) std::puts("a wrong level");
    }
    ~Range() {
        if (module_.pop) module_.pop();
    }
    Range(const Range&) = delete;
    Range& operator=(const Range&) = delete;

private:
    const Module& module_;
};

void train(const Module& module, int steps) {
    for (int i = 0; i < steps; ++i) {
        const Range step(module, "Train step " + std::to_string(i));
        const Range layer(module, "Layer 0");
    }
}

// Steps with a backward each, and an update in those for which `updates` is true.
template <class Updates>
void train_with_updates(const Module& module, const Updates& updates) {
    for (int i = 0; i < 20; ++i) {
        const Range step(module, "Train step " + std::to_string(i));
        {
            const Range backward(module, "backward");
        }
        if (updates(i)) const Range update(module, "optimizer");
    }
}

}  // namespace

int main(int argc, char** argv) {
    const std::string how = argc > 1 ? argv[1] : "plain";
    if (how == "none") return std::puts("ran") < 0;
    const Module module = attach();
    if (how == "unbalanced" && module.pop) module.pop();
    if (how == "annotated")
        for (int i = 0; i < 2; ++i)
            if (mptrace_step) mptrace_step(i, 1024);
    train(module, how == "annotated" ? 0 : 3);
    if (how == "skips") train_with_updates(module, [](int i) { return i != 1 && i != 12; });
    if (how == "accumulates") train_with_updates(module, [](int i) { return i % 2 == 1; });
    if (how == "never updates") train_with_updates(module, [](int) { return false; });
    if (how == "fork") {
        const pid_t child = fork();
        if (child == 0) {
            train(module, 2);
            return 0;
        }
        int status = 0;
        waitpid(child, &status, 0);
        std::printf("child %d\n", status);
        train(module, 1);
    }
    if (how == "threads") {
        std::thread other([&module] { train(module, 100); });
        train(module, 100);
        other.join();
    }
    std::puts("ran");
    return 0;
}
