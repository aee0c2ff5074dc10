// libFuzzer: bytes become a file of well-formed frames around arbitrary payloads (checksums would keep a
// fuzzer out of everything behind them), or, for inputs that begin with an even byte, the file itself.
// Not part of any test run:  ninja recording_fuzz && bin/recording_fuzz -max_len=65536 CORPUS
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "runtime/fold/run_model.hpp"
#include "runtime/report/json_report.hpp"
#include "runtime/report/text_report.hpp"
#include "runtime/trace/bytes.hpp"
#include "runtime/trace/dump.hpp"
#include "runtime/trace/frame.hpp"
#include "runtime/trace/info.hpp"
#include "runtime/trace/options.hpp"
#include "runtime/trace/reader.hpp"

namespace {

std::string file_of(std::string_view input) {
    if (input.empty() || input.front() % 2 == 0) return std::string(input);
    input.remove_prefix(1);
    mp::trace::Packer packer;
    std::string file = mp::trace::file_header();
    for (std::uint32_t sequence = 0; input.size() >= 3; ++sequence) {
        const auto kind = static_cast<mp::trace::FrameKind>(input[0] & 7);
        const std::size_t length = mp::trace::load_little<std::uint16_t>(input.data() + 1);
        input.remove_prefix(3);
        const std::string_view payload = input.substr(0, length);
        input.remove_prefix(payload.size());
        file += packer.frame(kind, sequence, payload);
    }
    return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view input(reinterpret_cast<const char*>(data), size);
    static_cast<void>(mp::trace::options_from_text(input));
    const std::string file = file_of(input);
    const int fd = ::memfd_create("recording", MFD_CLOEXEC);
    if (fd < 0 || ::write(fd, file.data(), file.size()) != static_cast<ssize_t>(file.size())) std::abort();
    auto recording = mp::trace::read_recording("/proc/self/fd/" + std::to_string(fd));
    ::close(fd);
    if (!recording) return 0;
    mp::trace::dump_text(*recording);
    mp::trace::Run run;
    run.recordings.push_back(*std::move(recording));
    mp::trace::info_text(run);
    const mp::trace::RunModel model = mp::trace::fold(run, {.tables = true});
    mp::trace::text_report(model, {});
    if (!nlohmann::json::accept(mp::trace::json_text(mp::trace::json_report(model, {})))) std::abort();
    return 0;
}
