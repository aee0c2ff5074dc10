// libFuzzer over mp-gate.toml: no file crashes, hangs or makes an error that a terminal would act on.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "runtime/gate/gate.hpp"

namespace {

bool is_plain(std::string_view text) {
    for (const char c : text) {
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return false;
    }
    return text.size() < 4096;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto rules = mp::trace::parse_rules(text, "mp-gate.toml");
    if (!rules) {
        if (!is_plain(rules.error().message) || !is_plain(rules.error().hint)) std::abort();
        return 0;
    }
    // What was read can be used.
    mp::trace::Judgement judgement;
    mp::trace::Finding finding;
    finding.rule = "MPT010";
    finding.layer = "blocks.1.fc";
    finding.op = "aten::addmm";
    judgement.findings.push_back(finding);
    (void)mp::trace::gate_text(mp::trace::gate(judgement, *rules, {}, "2026-11-21"), false);
    return 0;
}
