#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/launch/doctor/probe.hpp"
#include "runtime/launch/elf.hpp"
#include "runtime/launch/variables.hpp"
#include "runtime/trace/note_texts.hpp"
#include "runtime/trace/reader.hpp"

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
    {"libnvToolsExt.so", &ProgramFacts::nvtx2},
    {"libtorch", &ProgramFacts::torch},
};

// "2.28.9" of "NCCL version 2.28.9+cuda13.0", which each NCCL has.
std::string version_in(std::string_view piece) {
    constexpr std::string_view kBefore = "NCCL version ";
    for (std::size_t at = piece.find(kBefore); at != std::string_view::npos;
         at = piece.find(kBefore, at + 1)) {
        const std::string_view rest = piece.substr(at + kBefore.size(), 16);
        const std::string_view version = rest.substr(0, rest.find_first_not_of("0123456789."));
        if (version.find('.') != std::string_view::npos) return std::string(version);
    }
    return {};
}

// Reads a file in pieces; what is shorter than kLongest is whole in one of them.
template <class Look>
void for_each_piece(const std::string& path, const Look& look) {
    std::ifstream file(path, std::ios::binary);
    std::vector<char> buffer(kPiece + kLongest);
    std::size_t kept = 0;
    while (file) {
        file.read(buffer.data() + kept, kPiece);
        const std::size_t size = kept + static_cast<std::size_t>(file.gcount());
        look(std::string_view(buffer.data(), size));
        kept = std::min(size, kLongest);
        std::memmove(buffer.data(), buffer.data() + size - kept, kept);
    }
}

// The version of the shared library that a program would load from here.
std::string version_of_nccl() {
    std::string directories = "/usr/lib/x86_64-linux-gnu:/usr/lib64:/usr/local/lib";
    if (const char* const own = std::getenv("LD_LIBRARY_PATH"))
        directories = std::string(own) + ":" + directories;
    std::string version;
    for (std::size_t at = 0; at < directories.size() && version.empty();) {
        const std::size_t end = std::min(directories.find(':', at), directories.size());
        const std::string path = directories.substr(at, end - at) + "/libnccl.so.2";
        for_each_piece(path, [&version](std::string_view piece) {
            if (version.empty()) version = version_in(piece);
        });
        at = end + 1;
    }
    return version;
}

void look(std::string_view piece, ProgramFacts& facts) {
    if (facts.nccl_version.empty()) facts.nccl_version = version_in(piece);
    for (const Text& text : kTexts)
        if (!(facts.*text.into)) facts.*text.into = piece.find(text.text) != std::string_view::npos;
}

bool tells_what_is_missing(const trace::NoteRecord& note) {
    return note.kind == trace::NoteKind::disarmed ||
           (note.kind == trace::NoteKind::not_observed && !note.text.starts_with(trace::kSeenByName));
}

}  // namespace

RecordingFacts probe_recording(const std::string& directory) {
    RecordingFacts facts;
    facts.path = directory;
    const Result<trace::Run> run = trace::read_run(directory);
    if (!run) {
        facts.fault = run.error().message;
        return facts;
    }
    std::set<std::string> missing;
    for (const trace::Recording& r : run->recordings) {
        if (r.has_process) facts.processes.push_back(r.process);
        for (const trace::NoteRecord& note : r.notes)
            if (tells_what_is_missing(note)) missing.insert(note.text);
    }
    facts.missing.assign(missing.begin(), missing.end());
    return facts;
}

ProgramFacts probe_program(const std::string& path) {
    ProgramFacts facts;
    facts.path = path;
    for (const char* const name : kCudaPlaces) {
        const char* const value = std::getenv(name);
        facts.places[name] = value ? value : "";
    }
    const Result<ElfFacts> elf = read_elf(path);
    if (!elf) {
        facts.fault = elf.error().message;
        return facts;
    }
    facts.is_static = elf->interpreter.empty();
    for_each_piece(path, [&facts](std::string_view piece) { look(piece, facts); });
    if (facts.nccl && facts.nccl_version.empty()) facts.nccl_version = version_of_nccl();
    return facts;
}

}  // namespace mp::launch::doctor
