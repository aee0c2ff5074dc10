#pragma once

// The real binary, as a user runs it.

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/analyzer/driver/temporary_tree.hpp"

namespace mp::lint {

// A sum that every run of mp-lint has to find.
inline constexpr const char* kDefect = R"(#include <cuda_fp16.h>
__half sum(const __half* x) {
    __half total = __float2half(0.0f);
    for (int i = 0; i < 4096; ++i) total = __hadd(total, x[i]);
    return total;
}
)";

struct Outcome {
    int code = -1;
    std::string out;
    std::string err;
};

inline std::string content_of(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
}

class Cli : public TemporaryTree {
protected:
    void SetUp() override {
        TemporaryTree::SetUp();
        std::filesystem::create_directories(path("p"));
        for (const char* name : {"NO_COLOR", "FORCE_COLOR"}) ::unsetenv(name);
        ::setenv("XDG_CACHE_HOME", path("xdg").c_str(), 1);
    }

    // Runs in p/, through a shell, so that a test can say "| head" or "FORCE_COLOR=1".
    Outcome shell(const std::string& command) const {
        const std::string whole = "cd '" + path("p") + "' && { " + command + "; } >'" + path("out") +
                                  "' 2>'" + path("err") + "' </dev/null";
        const int status = std::system(whole.c_str());
        return {.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
                .out = content_of(path("out")),
                .err = content_of(path("err"))};
    }
    Outcome lint(const std::string& arguments) const { return shell(kLint + arguments); }
    Outcome stubs(const std::string& arguments) const { return lint("--cuda stubs " + arguments); }

    // "MP401 note": rule and level of each finding.
    std::vector<std::string> levels(const std::string& arguments) const {
        const nlohmann::json report = nlohmann::json::parse(stubs(arguments + " --output json").out);
        std::vector<std::string> found;
        for (const nlohmann::json& f : report["findings"])
            found.push_back(f["rule"].get<std::string>() + " " + f["severity"].get<std::string>());
        return found;
    }

    static inline const std::string kLint = std::string(MP_LINT) + " ";
};

}  // namespace mp::lint
