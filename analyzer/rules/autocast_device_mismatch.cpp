// MP105 autocast-device-mismatch
//
// What   Autocast is switched off (or on) for one device inside a region of another:
//        torch.cuda.amp.autocast(enabled=False) inside torch.autocast("hpu"); or a region is opened
//        for a device on which its model and tensors are not: "cuda" with model.to("mps"), or
//        with --device hpu.
// Why    Every device has its own state. The region around it stays as it is, and what should run
//        in fp32 runs in half; a region of another device casts nothing.
// Fix    torch.autocast(x.device.type, enabled=False).
// Silent The same device; a device that is a variable; code that asked for the device first
//        (torch.cuda.is_available(), x.is_cuda); a model that is moved to several devices.
// Tests  testdata/lint/MP105.md, tests/analyzer/rules/autocast_device_mismatch_test.cpp

#include <algorithm>
#include <array>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/autocast_calls.hpp"
#include "analyzer/analyses/regions.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

bool asks_for_device(std::string_view text) {
    constexpr std::array<std::string_view, 5> kQuestions{"is_available", "is_cuda", "is_cpu", "device",
                                                         "is_hpu"};
    return std::ranges::any_of(kQuestions, [&](std::string_view part) { return mentions(text, part); });
}

// The branch depends on the device: by its condition, or because the block that branches asks.
bool is_device_branch(const Function& f, const Edge& edge, std::uint32_t from) {
    if (asks_for_device(edge.condition.str())) return true;
    if (f.flow[from].to.size() < 2) return false;
    return std::ranges::any_of(
        f.calls, [&](const Call& call) { return call.block == from && asks_for_device(call.name.str()); });
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

// "mps" of "mps", "mps:0" and torch.device("mps"); empty when it is not constant.
std::string_view device_named(const Function& f, const Operand& value) {
    if (const Call* made = call_of(f, value); made && made->name.str() == "torch.device")
        return made->args.empty() ? std::string_view{} : device_named(f, made->args[0]);
    const std::string_view text = spelled(value);
    const std::string_view device = text.substr(0, text.find(':'));
    constexpr std::array<std::string_view, 7> kDevices{"cuda", "cpu", "xpu", "mps", "hpu", "xla", "npu"};
    return any_of(device, kDevices) ? device : std::string_view{};
}

// Where a value was put on a device: x = x.to("mps"), x = torch.zeros(3, device="mps").
struct Placed {
    const Call* by = nullptr;
    std::string_view device;  // empty: one that is not constant, several, or only after its use
};
Placed placed(const Function& f, Symbol name, std::size_t used) {
    Placed found;
    for (std::size_t i = 0; i < f.calls.size(); ++i) {
        const Call& call = f.calls[i];
        const bool names =
            call.result.name == name || (call.kind == CallKind::method && !call.args.empty() &&
                                         call.args[0].name == name && call.args[0].shape == Shape::module);
        if (!names) continue;
        const std::string_view method = leaf(call.name.str());
        const Operand* to = method == "to" ? argument(call, 0, "device") : keyword_argument(call, "device");
        std::string_view device = to ? device_named(f, *to) : std::string_view{};
        if (method == "cuda" || method == "cpu") device = method;
        const bool moves = method == "to" || to || method == "cuda" || method == "cpu";
        // model = FSDP(model, device_id=rank): what makes it anew may move it.
        if (!moves && found.by && call.result.name == name && !call.op.known() && i < used)
            return {&call, {}};
        if (!moves) continue;
        if (i > used || (found.by && found.device != device)) return {&call, {}};
        found = {&call, device};
    }
    return found;
}

// The module or tensor that the region runs, where it is proven to be on another device.
struct Elsewhere {
    std::string name;
    Placed where;
};
Elsewhere elsewhere(const Function& f, const Call& constructor, std::string_view device) {
    const std::int32_t enter = enter_of(f, constructor);
    if (enter == kNone) return {};
    for (const std::size_t index : calls_inside(f, static_cast<std::size_t>(enter))) {
        const Call& call = f.calls[index];
        const std::string_view method = leaf(call.name.str());
        if (call.args.empty() || (method != "forward" && method != "__call__")) continue;
        for (const Operand& value : call.args) {
            if (value.name.empty()) continue;
            const Placed where = placed(f, value.name, index);
            if (where.by && !where.device.empty() && where.device != device)
                return {std::string(value.name.str()), where};
        }
    }
    return {};
}

void check_placement(const RuleContext& context, const Function& f, const Call& call,
                     const AutocastCall& region, Findings& out) {
    if (region.enabled && !is_true(region.enabled)) return;
    if (is_guarded(f, call.block, is_device_branch)) return;
    const std::string device(region.device);
    const Elsewhere other = elsewhere(f, call, region.device);
    const bool told = !context.device.empty() && context.device != region.device;
    if (!other.where.by && !told) return;
    std::vector<Note> notes;
    if (other.where.by) notes.push_back({other.where.by->span, "it is put there here"});
    const std::string what = other.where.by
                                 ? quoted(other.name).substr(1) + " is on " + std::string(other.where.device)
                                 : "the program runs on " + std::string(context.device);
    emit(context, f,
         {.rule = "MP105",
          .severity = Severity::warning,
          .span = call.span,
          .message =
              "autocast is enabled for " + device + ", but " + what + ": the region casts nothing there",
          .fix = "take the device from the tensor: torch.autocast(x.device.type, ...)",
          .notes = std::move(notes),
          .function = {}},
         out);
}

constexpr std::array<std::string_view, 1> kAutocast{"autocast"};

void check(const RuleContext& context, Findings& out) {
    for_each_call(context.program, last_part_in(kAutocast), [&](const Function& f, const Call& call) {
        const auto region = autocast_call(call);
        if (!region || region->device.empty()) return;
        const Context* around = other_region(context.program, f, call, region->device);
        if (!around) return check_placement(context, f, call, *region, out);
        if (is_guarded(f, call.block, is_device_branch)) return;
        const std::string device(region->device);
        emit(context, f,
             {.rule = "MP105",
              .severity = Severity::warning,
              .span = call.span,
              .message = is_disabled(*region)
                             ? "autocast is disabled for " + device + " inside " + describe(*around) +
                                   ", which stays on"
                             : "autocast is enabled for " + device + " inside " + describe(*around) +
                                   ": only one of them is the device in use",
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
                                                    .triggers = {kRegions, kEngines},
                                                    .check = check};

}  // namespace mp::lint
