// libFuzzer over recordings: folding any file gives a model or an error, within the memory limit.
//
// An input is the payloads of frames, each after a byte of kind and two of length, so that a mutation reaches the
// decoders and is not stopped by a frame's hash. An input that begins with 0xff is used as the file unchanged.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "runtime/fold/run_model.hpp"
#include "runtime/trace/bytes.hpp"
#include "runtime/trace/encode.hpp"
#include "runtime/trace/frame.hpp"
#include "tests/fakes/synthetic_run.hpp"

namespace {

using namespace mp::trace;

constexpr std::size_t kHead = 3;  // kind and length

// A separate directory, removed when the process ends in order.
class Directory {
public:
    Directory() {
        std::string path = (std::filesystem::temp_directory_path() / "mp-reader-fuzz-XXXXXX").string();
        if (!::mkdtemp(path.data())) std::abort();
        path_ = path;
    }
    ~Directory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    Directory(const Directory&) = delete;
    Directory& operator=(const Directory&) = delete;
    const std::string& path() const { return path_; }

private:
    std::string path_;
};

std::string file_of(std::string_view input) {
    if (input.starts_with('\xff')) return std::string(input.substr(1));
    Packer packer;
    std::string bytes = file_header();
    for (std::uint32_t sequence = 0; input.size() >= kHead; ++sequence) {
        const auto kind = static_cast<FrameKind>(static_cast<unsigned char>(input[0]) % 7);
        const std::size_t length = load_little<std::uint16_t>(input.data() + 1);
        input.remove_prefix(kHead);
        const std::string_view payload = input.substr(0, length);
        bytes += packer.frame(kind, sequence, payload);
        input.remove_prefix(payload.size());
    }
    return bytes;
}

void put(std::string& out, FrameKind kind, std::string_view payload) {
    out += static_cast<char>(kind);
    char length[2];
    store_little(length, static_cast<std::uint16_t>(payload.size()));
    out.append(length, sizeof length).append(payload);
}

// A small run with everything in it.
std::string seed() {
    const fakes::Plan plan{.ranks = 1,
                           .layers = 2,
                           .steps = 3,
                           .dtype = mp::DType::fp16,
                           .skipped = {1},
                           .stagnating = 0,
                           .low_reduction = true,
                           .absorbing_sum = true};
    const Recording recording = fakes::recording_of(plan, 0);
    std::string out, payload;
    encode(recording.process, payload);
    put(out, FrameKind::process, payload);
    NameTable names;
    std::size_t written = 0;
    for (const StepRecord& s : recording.steps) {
        std::string ops, step;
        encode_ops(s, names, ops);
        encode(s, names, true, step);
        names.encode(written, payload);
        written = names.size();
        put(out, FrameKind::names, payload);
        put(out, FrameKind::ops, ops);
        put(out, FrameKind::step, step);
    }
    for (const NoteRecord& n : recording.notes) {
        encode(n, payload);
        put(out, FrameKind::note, payload);
    }
    return out;
}

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t room);

// A corpus without a seed would take hours to find the shape of a frame.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t room,
                                               unsigned) {
    static const std::string whole = seed();
    if (size < kHead && whole.size() <= room) {
        std::memcpy(data, whole.data(), whole.size());
        return whole.size();
    }
    return LLVMFuzzerMutate(data, size, room);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const Directory directory;
    const std::string bytes = file_of({reinterpret_cast<const char*>(data), size});
    const std::string path = directory.path() + "/rank-0.mpt";
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    const auto model = fold_run(directory.path(), {.threads = 1});
    if (!model) std::abort();  // the directory is there: damage belongs into the model
    // Both ways of reading a file agree on what is in it.
    const auto recording = read_recording(path);
    if (recording.has_value() != model->unreadable.empty() && model->ranks.size() == 1) std::abort();
    if (!recording) return 0;
    if (model->ranks.empty() || static_cast<std::size_t>(model->ranks[0].steps) != recording->steps.size())
        std::abort();
    return 0;
}
