#include <array>
#include <cstring>
#include <fstream>
#include <string_view>
#include <vector>

#include "runtime/launch/doctor/probe.hpp"
#include "runtime/launch/elf.hpp"

namespace mp::launch::doctor {
namespace {

constexpr std::size_t kPiece = 1 << 20;
constexpr std::size_t kLongest = 64;  // no text below is longer

struct Text {
    std::string_view text;
    bool ProgramFacts::* into;
};

// Names of libraries stand in the table of what the program is linked with; the others in the code of a library that is
// linked into it.
constexpr Text kTexts[] = {
    {"libcudart.so", &ProgramFacts::shared_runtime},
    {"libcuda.so.1", &ProgramFacts::opens_driver},
    {"libcublas.so", &ProgramFacts::cublas},
    {"libcublasLt.so", &ProgramFacts::cublas_lt},
    {"libnccl.so", &ProgramFacts::nccl},
    {"CUBLAS_WORKSPACE_CONFIG", &ProgramFacts::static_cublas},
    {"NCCL_DEBUG_SUBSYS", &ProgramFacts::static_nccl},
    {"NVTX_INJECTION64_PATH", &ProgramFacts::nvtx},
    {"libtorch", &ProgramFacts::torch},
};

void look(std::string_view piece, ProgramFacts& facts) {
    for (const Text& text : kTexts)
        if (!(facts.*text.into)) facts.*text.into = piece.find(text.text) != std::string_view::npos;
}

}  // namespace

ProgramFacts probe_program(const std::string& path) {
    ProgramFacts facts;
    facts.path = path;
    const Result<ElfFacts> elf = read_elf(path);
    if (!elf) {
        facts.fault = elf.error().message;
        return facts;
    }
    facts.is_static = elf->interpreter.empty();
    std::ifstream file(path, std::ios::binary);
    std::vector<char> buffer(kPiece + kLongest);
    std::size_t kept = 0;
    while (file) {
        file.read(buffer.data() + kept, kPiece);
        const std::size_t size = kept + static_cast<std::size_t>(file.gcount());
        look({buffer.data(), size}, facts);
        kept = std::min(size, kLongest);
        std::memmove(buffer.data(), buffer.data() + size - kept, kept);
    }
    return facts;
}

}  // namespace mp::launch::doctor
