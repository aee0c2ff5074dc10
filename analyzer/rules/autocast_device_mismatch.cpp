// MP105 autocast-device-mismatch
//
// What   Autocast is switched off (or on) for one device inside a region of another:
//        torch.cuda.amp.autocast(enabled=False) inside torch.autocast("hpu").
// Why    Every device has its own state. The region around it stays as it is, and what should run
//        in fp32 runs in half.
// Fix    torch.autocast(x.device.type, enabled=False).
// Silent The same device; a device that is a variable; code that asked for the device first
//        (torch.cuda.is_available(), x.is_cuda).
// Tests  testdata/lint/MP105.md, tests/analyzer/rules/autocast_device_mismatch_test.cpp

#include <algorithm>
#include <array>

#include "analyzer/rules/autocast_calls.hpp"
#include "analyzer/rules/regions.hpp"
#include "analyzer/rules/support.hpp"

namespace mp::lint {
namespace {

bool asks_for_device(std::string_view text) {
    constexpr std::array<std::string_view, 5> kQuestions{"is_available", "is_cuda", "is_cpu",
                                                         "device", "is_hpu"};
    return std::ranges::any_of(kQuestions,
                               [&](std::string_view part) { return mentions(text, part); });
}

// The branch depends on the device: by its condition, or because the block that branches asks.
bool is_device_branch(const Function& f, const Edge& edge, std::uint32_t from) {
    if (asks_for_device(edge.condition.str())) return true;
    if (f.flow[from].to.size() < 2) return false;
    return std::ranges::any_of(f.calls, [&](const Call& call) {
        return call.block == from && asks_for_device(call.name.str());
    });
}

// A region of another device around this call, when none of its own device is.
const Context* other_region(const Program& program, const Function& f, const Call& call,
                            std::string_view device) {
    const Context* other = nullptr;
    for (const Context& context : program.contexts(f, call)) {
        const std::string_view around = context.device.str();
        if (context.enabled != Switch::on || around.empty() || context.process_wide) continue;
        if (around == device) return nullptr;
        if (!other) other = &context;
    }
    return other;
}

void check(const RuleContext& context, Findings& out) {
    for_each(context, &Function::calls, [&](const Function& f, const Call& call) {
        const auto region = autocast_call(call);
        if (!region || region->device.empty()) return;
        const Context* around = other_region(context.program, f, call, region->device);
        if (!around || is_guarded(f, call.block, is_device_branch)) return;
        const std::string device(region->device);
        emit(context, f,
             {.rule = "MP105",
              .severity = Severity::warning,
              .span = call.span,
              .message = is_disabled(*region)
                             ? "autocast is disabled for " + device + " inside " +
                                   describe(*around) + ", which stays on"
                             : "autocast is enabled for " + device + " inside " +
                                   describe(*around) + ": only one of them is the device in use",
              .fix = "take the device from the tensor: torch.autocast(x.device.type, ...)",
              .notes = notes_of(*around),
              .function = {}},
             out);
    });
}

}  // namespace

extern constinit const Rule kAutocastDeviceMismatch{.id = "MP105",
                                                    .name = "autocast-device-mismatch",
                                                    .severity = Severity::warning,
                                                    .on_by_default = true,
                                                    .confirmed_by = "MPT060",
                                                    .check = check};

}  // namespace mp::lint
