// A program with NVTX ranges and no CUDA: what NVTX's header-only library does in each module, without its headers.
//
//   nvtx_program plain|none|fails|fork|forks|threads|unbalanced|annotated|skips|accumulates|"never updates"|wide
//   nvtx_program domain|"two modules" NAME

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "instrument/cuda/abi.hpp"
#include "instrument/preload/mptrace.h"

namespace {

namespace abi = mp::raw::abi;

// One module of the program with its own tables.
struct Module {
    int (*push)(const char*) = nullptr;
    int (*pop)() = nullptr;
    std::uint64_t (*start)(const wchar_t*) = nullptr;
    void (*end)(std::uint64_t) = nullptr;
    const void* (*domain)(const char*) = nullptr;
    const void* (*string)(const void* domain, const char*) = nullptr;
    int (*domain_push)(const void* domain, const abi::NvtxAttributes*) = nullptr;
    int (*domain_pop)(const void* domain) = nullptr;
};

constexpr int kFunctions = 16;
template <int kModule>
struct Tables {
    static inline abi::NvtxFunction core[kFunctions], core2[kFunctions];

    static int functions_of(int module, abi::NvtxFunction*** table, unsigned* size) {
        if (module != abi::kNvtxCore && module != abi::kNvtxCore2) return 0;
        static abi::NvtxFunction* slots[2][kFunctions];
        const bool first = module == abi::kNvtxCore;
        for (int i = 0; i < kFunctions; ++i) slots[first][i] = first ? &core[i] : &core2[i];
        *table = slots[first];
        *size = kFunctions;
        return 1;
    }
    static const void* exports(std::uint32_t table) {
        static const abi::NvtxCallbackTable callbacks{sizeof callbacks, functions_of};
        return table == abi::kNvtxCallbacks ? &callbacks : nullptr;
    }
};

template <class Function>
void take(Function& function, abi::NvtxFunction from) {
    function = reinterpret_cast<Function>(from);
}

template <int kModule>
Module attach() {
    Module module;
    const char* const path = std::getenv("NVTX_INJECTION64_PATH");
    void* const library = path ? dlopen(path, RTLD_LAZY) : nullptr;
    if (!library) return module;
    const auto initialize =
        reinterpret_cast<int (*)(abi::NvtxExports)>(dlsym(library, "InitializeInjectionNvtx2"));
    using Own = Tables<kModule>;
    if (!initialize || !initialize(Own::exports)) return module;
    take(module.start, Own::core[6]);
    take(module.end, Own::core[7]);
    take(module.push, Own::core[9]);
    take(module.pop, Own::core[11]);
    take(module.domain_push, Own::core2[4]);
    take(module.domain_pop, Own::core2[5]);
    take(module.string, Own::core2[10]);
    take(module.domain, Own::core2[12]);
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

void train_by_wide_names(const Module& module) {
    for (int i = 0; i < 3 && module.start; ++i)
        module.end(module.start((L"Train step " + std::to_wstring(i)).c_str()));
}

// Each step is pushed by one module and popped by the other, each through its own handle of the domain.
void train_in_domain(const Module& pushes, const Module& pops, const char* name) {
    if (!pushes.domain || !pops.domain) return;
    const void* const from = pushes.domain(name);
    const void* const to = pops.domain(name);
    for (int i = 0; i < 3; ++i) {
        const std::string step = "Train step " + std::to_string(i);
        abi::NvtxAttributes attributes{};
        attributes.message_type = abi::kNvtxAscii;
        attributes.message.pointer = step.c_str();
        pushes.domain_push(from, &attributes);
        pops.domain_pop(to);
    }
}

// Children that begin while another thread is inside of NVTX. One that waits for that thread waits forever.
void fork_beside_a_thread(const Module& module) {
    std::atomic<bool> ends{false};
    std::thread other([&] {
        for (int i = 0; !ends; ++i)
            if (module.string) module.string(nullptr, ("name " + std::to_string(i % 50)).c_str());
    });
    int hung = 0;
    for (int i = 0; i < 200 && hung == 0; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(5);
            if (module.string) module.string(nullptr, "in the child");
            _exit(0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        hung += WIFSIGNALED(status);
    }
    ends = true;
    other.join();
    std::printf("children that hung: %d\n", hung);
}

}  // namespace

int main(int argc, char** argv) {
    const std::string how = argc > 1 ? argv[1] : "plain";
    if (how == "none") return std::puts("ran") < 0;
    const Module module = attach<0>();
    const std::string domain = argc > 2 ? argv[2] : "";
    if (how == "domain") train_in_domain(module, module, domain.c_str());
    if (how == "two modules") train_in_domain(module, attach<1>(), domain.c_str());
    if (how == "wide") train_by_wide_names(module);
    if (how == "forks") fork_beside_a_thread(module);
    if (how == "unbalanced" && module.pop) module.pop();
    if (how == "annotated")
        for (int i = 0; i < 2; ++i)
            if (mptrace_step) mptrace_step(i, 1024);
    const bool has_its_own = how == "annotated" || how == "domain" || how == "two modules" || how == "wide";
    train(module, has_its_own ? 0 : 3);
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
    return how == "fails" ? 3 : 0;
}
