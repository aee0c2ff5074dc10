// MP106 autocast-fp32-dtype
//
// What   Autocast is asked for fp32: autocast(dtype=torch.float32), set_autocast_dtype(.., kFloat).
// Why    It does not force fp32. Every device but CUDA warns and switches the region off. CUDA casts
//        the inputs of the ops of its list; in all others tensors that are half stay half.
// Fix    enabled=False, and .float() on the inputs that must be fp32.
// Silent enabled=False beside it; a dtype that is a variable; states restored from a variable; C++ that
//        opens regions, but of other devices. A note where the device may be CUDA, whose products
//        are fp32 then, and where the code inside upcasts.
// Tests  testdata/lint/MP106.md, tests/analyzer/rules/autocast_fp32_dtype_test.cpp

#include <algorithm>
#include <vector>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/autocast_calls.hpp"
#include "analyzer/analyses/python_code.hpp"
#include "analyzer/analyses/support.hpp"

#include "analyzer/region/autocast_api.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

bool is_wide_constant(const Operand& value) {
    return !value.constant.empty() && is_wide(dtype_of_constant(value));
}

bool may_set_enabled(std::string_view name) {
    const std::string_view function = leaf(name);
    return function.starts_with("set_") && function.ends_with("enabled");
}

// `torch.autocast(...)`, or a setter of C++.
bool may_take_dtype(std::string_view name) {
    return leaf(name) == "autocast" || (is_within(name, "at::autocast") && name.ends_with("_dtype"));
}

// The argument of a C++ setter, when it is fp32.
const Operand* set_to_fp32(const AutocastApi& api, const Function& f, const Call& call) {
    const bool is_setter =
        is_within(call.name.str(), "at::autocast") && api.classify(f, call).kind == ApiKind::set_dtype;
    if (!is_setter || call.args.empty() || !is_wide_constant(call.args.back())) return nullptr;
    return &call.args.back();
}

// What C++ opens: the devices whose regions something switches on.
struct Opened {
    std::vector<Device> devices;

    // A dtype of a region that stays off does nothing. Where nothing is opened, others do that.
    bool leaves_off(Device device) const {
        return !devices.empty() && device != kUnknownDevice &&
               std::ranges::find(devices, device) == devices.end() &&
               std::ranges::find(devices, kUnknownDevice) == devices.end();
    }
};

Opened opened_by(const RuleContext& context, const AutocastApi& api) {
    Opened out;
    for_each_call(context.program, may_set_enabled, [&](const Function& f, const Call& call) {
        if (f.kind == FunctionKind::python) return;
        const ApiCall known = api.classify(f, call);
        if (known.kind != ApiKind::set_enabled || known.value >= call.args.size()) return;
        if (call.args[known.value].constant.str() != "false") out.devices.push_back(known.device);
    });
    return out;
}

const Operand* asked_for_fp32(const AutocastApi& api, const Function& f, const Call& call) {
    if (const auto region = autocast_call(call)) {
        // Under a flag it may be off whenever the dtype is fp32.
        const bool may_be_off = region->enabled && !is_true(region->enabled);
        const bool is_wide = region->dtype && is_wide_constant(*region->dtype);
        return is_wide && !may_be_off ? region->dtype : nullptr;
    }
    return set_to_fp32(api, f, call);
}

// x.float() in the region: whether it is on does not matter.
bool upcasts_inside(const Function& f, const Call& constructor) {
    const std::int32_t enter = enter_of(f, constructor);
    if (enter == kNone) return false;
    return std::ranges::any_of(calls_inside(f, static_cast<std::size_t>(enter)), [&](std::size_t index) {
        const std::string_view name = leaf(f.calls[index].name.str());
        return (name == "float" || name == "to") && is_wide(f.calls[index].result.dtype);
    });
}

// The region of another device, which gets none: on CUDA the products inside do run in fp32.
bool is_of_other_device(const AutocastApi& api, const Function& f, const Call& call) {
    if (const auto region = autocast_call(call)) return !region->device.empty() && region->device != "cuda";
    const Device device = api.classify(f, call).device;
    return device != kCuda && device != kUnknownDevice;
}

Severity severity_of(const AutocastApi& api, const Function& f, const Call& call) {
    if (is_cuda_guarded(f, call.block) || (autocast_call(call) && upcasts_inside(f, call)))
        return Severity::note;
    return is_of_other_device(api, f, call) ? Severity::warning : Severity::note;
}

void check(const RuleContext& context, Findings& out) {
    const AutocastApi api{RegionConfig{}};
    const Opened opened = opened_by(context, api);
    for_each_call(context.program, may_take_dtype, [&](const Function& f, const Call& call) {
        const Operand* dtype = asked_for_fp32(api, f, call);
        if (!dtype) return;
        if (!autocast_call(call) && opened.leaves_off(api.classify(f, call).device)) return;
        Finding finding{.rule = "MP106",
                        .severity = severity_of(api, f, call),
                        .span = call.span,
                        .message =
                            "autocast to fp32 does not force fp32: only CUDA takes it, and "
                            "there only the ops of its list are cast",
                        .fix = "disable the region (enabled=False) and call .float() on its inputs",
                        .notes = {},
                        .function = {}};
        // This edit alone changes nothing: it does not add the upcasts, whose place is not known.
        if (dtype->span.known() && dtype->keyword.str() == "dtype" && !keyword_argument(call, "enabled")) {
            SourceSpan at = dtype->span;
            at.line = at.end_line;
            at.column = at.end_column;
            finding.edits = {{at, ", enabled=False"}};
        }
        emit(context, f, std::move(finding), out);
    });
}

}  // namespace

extern constinit const Rule kAutocastFp32Dtype{.id = "MP106",
                                               .name = "autocast-fp32-dtype",
                                               .severity = Severity::warning,
                                               .on_by_default = true,
                                               .confirmed_by = "MPT060",
                                               .triggers = {kRegions, kEngines},
                                               .check = check};

}  // namespace mp::lint
