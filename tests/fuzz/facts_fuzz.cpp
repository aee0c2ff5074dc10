// libFuzzer over facts as text and as bytes: what can be read can be written, linked and judged, and no
// damage to a cache reads beyond its bounds. The first byte selects text or a segment of the store.
// Checksums are made to fit, so that a mutation reaches what is behind them.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <xxhash.h>

#include "analyzer/cache/store.hpp"
#include "analyzer/facts/text.hpp"
#include "analyzer/python/extract.hpp"
#include "tests/fuzz/judged.hpp"

namespace {

using namespace mp::lint;

void put_check(std::string& bytes, std::size_t at) {
    const std::size_t from = at + sizeof(std::uint64_t);
    if (bytes.size() < from) return;
    const std::uint64_t check = XXH3_64bits(bytes.data() + from, bytes.size() - from);
    std::memcpy(bytes.data() + at, &check, sizeof check);
}

void read_text(std::string_view text) {
    auto unit = parse_facts(text);
    if (!unit) return;
    const std::string printed = print_facts(*unit);
    const auto again = parse_facts(printed);
    if (!again || print_facts(*again) != printed) std::abort();
    std::vector<Unit> units;
    units.push_back(std::move(*unit));
    (void)fuzz::judged(std::move(units));
}

void read_segment(std::string bytes) {
    constexpr std::size_t kSizeAt = 4, kCheckAt = 8;
    if (bytes.size() < kCheckAt) return;
    const auto size = static_cast<std::uint32_t>(bytes.size());
    std::memcpy(bytes.data() + kSizeAt, &size, sizeof size);
    put_check(bytes, kCheckAt);
    Segment segment;
    if (!segment.open(bytes)) return;
    for (std::size_t i = 0; i < segment.records() && i < 64; ++i) {
        RecordReader reader(segment, segment.record(i));
        const StoredHead head = read_head(reader);
        (void)reader.unit(head.facts.lines);
    }
}

constexpr std::string_view kProgram =
    "import torch\nfrom torch.cuda.amp import autocast, GradScaler\n"
    "scaler = GradScaler()\n"
    "def step(model: torch.nn.Module, x, opt):\n"
    "    with autocast(dtype=torch.float16):\n"
    "        loss = model(x.half()).sum(dtype=torch.float16)\n"
    "    if loss > 65504.0:\n        return loss\n"
    "    scaler.scale(loss).backward()\n    opt.step()\n    scaler.update()\n";

std::string seed(std::uint8_t kind) {
    const Unit unit = python::extract({"/p/a.py", "a", kProgram});
    const std::string text = print_facts(unit);
    if (kind == 0) return text;
    SegmentWriter writer;
    StoredHead head{.key = "/p/a.py", .imports = {1, 2}, .mentions = {"ds.json"}};
    head.inputs = {.files = {{mp::Symbol("/p/a.py"), {1, 2, 3}, 4}},
                   .missing = {mp::Symbol("b.h")},
                   .directories = {{mp::Symbol("/p"), 4, 5}}};
    write_record(writer, head, unit);
    return writer.take();
}

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t room);

// A corpus without a seed would take hours to find the first fact.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t room,
                                               unsigned random) {
    if (size < 2) {
        const auto kind = static_cast<std::uint8_t>(random % 2);
        const std::string whole = static_cast<char>(kind) + seed(kind);
        if (whole.size() > room) return LLVMFuzzerMutate(data, size, room);
        std::memcpy(data, whole.data(), whole.size());
        return whole.size();
    }
    return 1 + LLVMFuzzerMutate(data + 1, size - 1, room - 1);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
    if (data[0] % 2 == 0)
        read_text(rest);
    else
        read_segment(std::string(rest));
    return 0;
}
