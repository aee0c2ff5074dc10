#include "analyzer/region/python_regions.hpp"

#include <array>
#include <unordered_map>

namespace mp::lint {
namespace {

// torch.autocast(device_type, dtype=None, enabled=True, cache_enabled=None)
constexpr PythonManager kAutocast{.device_at = 0, .enabled_at = 2, .dtype_at = 1};

// torch.cuda.amp.autocast(enabled=True, dtype=torch.float16, cache_enabled=True) and its like.
constexpr PythonManager of_device(std::string_view name, DType dtype) {
    Device device = kUnknownDevice;
    for (std::size_t i = 1; i < kDevices; ++i)
        if (kDeviceNames[i] == name) device = static_cast<Device>(i);
    return {.device = device, .enabled_at = 0, .dtype_at = 1, .dtype = dtype};
}

// The object decides whether it is on, and in which dtype.
constexpr PythonManager kAsked{.dtype = DType::lowp, .sure = false};
constexpr PythonManager kHmpOff{.device = kHmp, .closes = true};
constexpr PythonManager kNoGradOn{.device = kNoGrad};

struct Named {
    std::string_view name;
    PythonManager manager;
};

constexpr std::array kManagers{
    Named{"torch.autocast", kAutocast},
    Named{"torch.amp.autocast", kAutocast},
    Named{"torch.amp.autocast_mode.autocast", kAutocast},
    Named{"torch.cuda.amp.autocast", of_device("cuda", DType::fp16)},
    Named{"torch.cuda.amp.autocast_mode.autocast", of_device("cuda", DType::fp16)},
    Named{"torch.cpu.amp.autocast", of_device("cpu", DType::bf16)},
    Named{"torch.cpu.amp.autocast_mode.autocast", of_device("cpu", DType::bf16)},
    Named{"torch.xpu.amp.autocast", of_device("xpu", DType::unknown)},
    Named{"torch.hpu.amp.autocast", of_device("hpu", DType::bf16)},
    Named{"torch_xla.amp.autocast", {.device = 6, .enabled_at = 1, .dtype_at = 2, .dtype = DType::bf16}},
    Named{"torch_xla.amp.autocast_mode.autocast",
          {.device = 6, .enabled_at = 1, .dtype_at = 2, .dtype = DType::bf16}},
    Named{"apex.amp.disable_casts", {.device = kApex, .closes = true}},
    Named{"torch.no_grad", kNoGradOn},
    Named{"torch.autograd.no_grad", kNoGradOn},
    Named{"torch.autograd.grad_mode.no_grad", kNoGradOn},
    Named{"torch.inference_mode", {.device = kNoGrad, .enabled_at = 0, .flag = "mode"}},
    Named{"torch.autograd.inference_mode", {.device = kNoGrad, .enabled_at = 0, .flag = "mode"}},
    Named{"torch.enable_grad", {.device = kNoGrad, .closes = true}},
    Named{"torch.autograd.enable_grad", {.device = kNoGrad, .closes = true}},
    Named{"torch.set_grad_enabled", {.device = kNoGrad, .enabled_at = 0, .flag = "mode", .negated = true}},
    Named{"torch.autograd.set_grad_enabled",
          {.device = kNoGrad, .enabled_at = 0, .flag = "mode", .negated = true}},
    Named{"accelerate.Accelerator.autocast", kAsked},
    Named{"lightning.Fabric.autocast", kAsked},
    Named{"lightning.fabric.Fabric.autocast", kAsked},
    Named{"lightning_fabric.Fabric.autocast", kAsked},
    Named{"transformers.Trainer.compute_loss_context_manager", kAsked},
    Named{"transformers.Trainer.autocast_smart_context_manager", kAsked},
    Named{"?.autocast", kAsked},
    Named{"?.forward_context", kAsked},
    Named{"?.compute_loss_context_manager", kAsked},
};
static_assert(kDeviceNames[6] == "xla");

bool is_false(const Operand& o) { return o.constant.str() == "false" || o.constant.str() == "0"; }
bool is_true(const Operand& o) { return o.constant.str() == "true" || o.constant.str() == "1"; }

Symbol condition_of(const Operand& o) { return o.text.empty() ? o.name : o.text; }

void read_device(const PythonManager& manager, const Call& call, PythonEntry& entry) {
    if (manager.device_at == kNone) return;
    const Operand* device = python_argument(call, "device_type", manager.device_at, 1);
    if (!device || device->constant.empty()) return;
    // torch does not accept "cuda:0" as a device type, but the meaning is clear.
    const std::string_view name = unquoted(device->constant.str());
    const Device known = device_named(name.substr(0, name.find(':')));
    entry.device = known == kUnknownDevice ? device_named("other") : known;
}

void read_dtype(const PythonManager& manager, const Call& call, PythonEntry& entry) {
    entry.dtype = manager.dtype;
    if (manager.dtype_at == kNone) return;
    const Operand* dtype = python_argument(call, "dtype", manager.dtype_at, 1);
    if (!dtype || dtype->constant.str() == "None") return;
    entry.dtype = dtype->dtype == DType::unknown ? DType::lowp : dtype->dtype;
    entry.sure &= !dtype->assumed;
    // A region that computes in fp32 does not count as a region.
    if (!is_low_precision(entry.dtype)) entry.opens = false;
}

void read_flag(const PythonManager& manager, const Call& call, PythonEntry& entry) {
    if (manager.enabled_at == kNone) return;
    const Operand* flag = python_argument(call, manager.flag, manager.enabled_at, 1);
    if (!flag) {
        // autocast(**kwargs): the unpacked arguments may contain the flag too.
        for (const Operand& o : call.args)
            if (o.keyword.str() == "**") entry.known = false;
        return;
    }
    if (is_true(*flag) || is_false(*flag)) {
        if (is_true(*flag) == manager.negated) entry.opens = false;
        return;
    }
    entry.flag = condition_of(*flag);
    if (entry.flag.empty()) entry.sure = false;
}

}  // namespace

const PythonManager* python_manager(std::string_view name) {
    static const std::unordered_map<std::string_view, const PythonManager*> kByName = [] {
        std::unordered_map<std::string_view, const PythonManager*> map;
        for (const Named& named : kManagers) map.emplace(named.name, &named.manager);
        return map;
    }();
    if (const auto found = kByName.find(name); found != kByName.end()) return found->second;
    // Habana moved the module more than once.
    if (name == "hmp.disable_casts" || name.ends_with(".hmp.disable_casts")) return &kHmpOff;
    return nullptr;
}

std::string_view unquoted(std::string_view text) {
    if (text.size() >= 2 && (text.front() == '\'' || text.front() == '"') && text.back() == text.front())
        return text.substr(1, text.size() - 2);
    return text;
}

const Operand* python_argument(const Call& call, std::string_view keyword, std::int32_t position,
                               std::size_t receiver) {
    const Operand* found = nullptr;
    auto left = position;
    bool unpacked = false;
    for (std::size_t i = receiver; i < call.args.size(); ++i) {
        const std::string_view by = call.args[i].keyword.str();
        if (by == keyword) return &call.args[i];
        unpacked = unpacked || by == "*";
        if (!by.empty() || unpacked || position < 0) continue;
        if (left-- == 0) found = &call.args[i];
    }
    return found;
}

PythonEntry python_entry(const PythonManager& manager, const Call& call) {
    PythonEntry entry;
    entry.device = manager.device;
    entry.opens = !manager.closes;
    entry.sure = manager.sure;
    read_device(manager, call, entry);
    read_dtype(manager, call, entry);
    read_flag(manager, call, entry);
    entry.flag_value = !manager.negated;
    if (const Operand* when = python_argument(call, "<when>", -1, 1)) {
        entry.when = condition_of(*when);
        entry.when_value = !is_false(*when);
    }
    return entry;
}

}  // namespace mp::lint
