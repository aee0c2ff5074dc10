#include "analyzer/region/autocast_api.hpp"

#include <algorithm>
#include <cctype>

#include "analyzer/region/calls.hpp"

namespace mp::lint {
namespace {

// The device is the end of "at::kCUDA", "c10::DeviceType::CUDA" and "AutocastCUDA".
std::string enumerator(std::string_view constant) {
    std::string_view text = leaf(unquoted(constant));
    if (text.size() > 1 && text[0] == 'k' && std::isupper(static_cast<unsigned char>(text[1])))
        text.remove_prefix(1);
    std::string lower(text);
    for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return lower;
}

Device device_of_constant(const Operand& operand) {
    if (operand.constant.empty()) return kUnknownDevice;
    const Device known = device_named(enumerator(operand.constant.str()));
    return known == kUnknownDevice ? device_named("other") : known;
}

// The X of "set_X_enabled" when `name` is prefix + X + suffix with a device X.
Device device_between(std::string_view name, std::string_view prefix, std::string_view suffix) {
    if (name.size() <= prefix.size() + suffix.size() || !name.starts_with(prefix) || !name.ends_with(suffix))
        return kUnknownDevice;
    name.remove_prefix(prefix.size());
    name.remove_suffix(suffix.size());
    return device_named(name);
}

bool names(const std::vector<std::string>& list, std::string_view qualified) {
    return std::ranges::any_of(list, [&](const std::string& entry) {
        if (!qualified.ends_with(entry) || entry.empty()) return false;
        const std::size_t rest = qualified.size() - entry.size();
        const std::string_view scope = qualified.substr(0, rest);
        return rest == 0 || scope.ends_with("::") || scope.ends_with('.');
    });
}

// The device of an excluded dispatch key: Autocast is CUDA's, AutocastCPU is CPU's.
Device excluded_device(const Function& f, const Operand& operand, bool& is_autocast) {
    Symbol key = operand.constant;
    const auto index = static_cast<std::size_t>(operand.call);
    if (key.empty() && operand.call != kNone && index < f.calls.size() && !f.calls[index].args.empty())
        key = f.calls[index].args[0].constant;  // DispatchKeySet(DispatchKey::Autocast)
    std::string name = enumerator(key.empty() ? operand.text.str() : key.str());
    is_autocast = name.starts_with("autocast");
    if (!is_autocast) return kUnknownDevice;
    name = name.substr(8, name.find_first_not_of("abcdefghijklmnopqrstuvwxyz", 8) - 8);
    return name.empty() ? kCuda : device_named(name);
}

struct Accessor {
    std::string_view verb;
    std::string_view ending;
    ApiKind kind = ApiKind::none;
};
constexpr Accessor kAccessors[] = {
    {"set_", "_enabled", ApiKind::set_enabled},
    {"is_", "_enabled", ApiKind::read_enabled},
    {"set_", "_dtype", ApiKind::set_dtype},
    {"get_", "_dtype", ApiKind::read_dtype},
};

// "torch.autocast" of "torch.autocast.__enter__"; empty for other names.
std::string_view manager_of(std::string_view name, std::string_view method) {
    return name.ends_with(method) ? name.substr(0, name.size() - method.size()) : std::string_view{};
}

}  // namespace

Device device_named(std::string_view name) {
    if (name == "gpu" || name == "hip") return kCuda;
    for (std::size_t i = 1; i < kDevices; ++i)
        if (kDeviceNames[i] == name) return static_cast<Device>(i);
    return kUnknownDevice;
}

DType default_dtype(Device device) {
    const std::string_view name = kDeviceNames[device];
    if (name == "cpu" || name == "hpu" || name == "xla" || name == "hmp") return DType::bf16;
    if (name == "cuda" || name == "xpu" || name == "mps" || name == "privateuseone" || name == "apex")
        return DType::fp16;
    return DType::lowp;
}

std::string_view class_of(std::string_view name) {
    const std::size_t colon = name.rfind("::");
    if (colon == std::string_view::npos) return name.starts_with('~') ? name.substr(1) : name;
    std::string_view last = name.substr(colon + 2), before = name.substr(0, colon);
    if (last.starts_with('~')) return before;
    return leaf(before) == last ? before : name;
}

DType dtype_of_constant(const Operand& operand) {
    if (operand.dtype != DType::unknown && (operand.constant.empty() || operand.shape == Shape::dtype))
        return operand.dtype;
    const std::string name = enumerator(operand.constant.str());
    if (name == "half") return DType::fp16;
    if (name == "bfloat16") return DType::bf16;
    if (name == "float") return DType::fp32;
    if (name == "double") return DType::fp64;
    return dtype_from_name(name).value_or(DType::unknown);
}

AutocastApi::AutocastApi(const RegionConfig& config)
    : config_(config), configured_{.dtype = config.dtype}, found_(2) {}

AutocastApi::Known AutocastApi::accessor(std::string_view name, std::string_view before_device) {
    for (const Accessor& a : kAccessors) {
        if (!name.starts_with(a.verb) || !name.ends_with(a.ending)) continue;
        const std::string verb(a.verb);
        if (name == verb + "autocast" + std::string(a.ending))
            return {.kind = a.kind, .device_argument = true};
        const bool enables = a.ending == "_enabled";
        const std::string prefix = verb + std::string(enables ? before_device : "autocast_");
        if (const Device d = device_between(name, prefix, a.ending)) return {.kind = a.kind, .device = d};
    }
    return {};
}

AutocastApi::Known AutocastApi::look_up_python(std::string_view name) const {
    if (const std::string_view manager = manager_of(name, ".__exit__"); !manager.empty()) {
        const bool known = names(config_.guards, manager) || python_manager(manager);
        return {.kind = known ? ApiKind::exit_python : ApiKind::none};
    }
    if (const std::string_view manager = manager_of(name, ".__enter__"); !manager.empty()) {
        if (names(config_.guards, manager)) return {.kind = ApiKind::enter_python, .manager = &configured_};
        const PythonManager* known = python_manager(manager);
        return {.kind = known ? ApiKind::enter_python : ApiKind::none, .manager = known};
    }
    constexpr std::string_view kTorch = "torch.";
    if (!name.starts_with(kTorch)) return {};
    name.remove_prefix(kTorch.size());
    if (name == "set_grad_enabled") return {.kind = ApiKind::set_enabled, .device = kNoGrad, .negated = true};
    if (name == "is_grad_enabled") return {.kind = ApiKind::read_enabled, .device = kNoGrad};
    return accessor(name, "autocast_");
}

AutocastApi::Known AutocastApi::look_up(std::string_view name) const {
    const std::string_view owner = class_of(name);
    if (names(config_.guards, owner)) return {.kind = ApiKind::guard};
    if (names(config_.enter, name)) return {.kind = ApiKind::enter};
    if (names(config_.leave, name)) return {.kind = ApiKind::leave};
    const std::string_view guard = leaf(owner);
    if (guard == "ExcludeDispatchKeyGuard") return {.kind = ApiKind::exclude};
    if (name.find("::") == std::string_view::npos) return look_up_python(name);
    if (guard == "NoGradGuard" || guard == "InferenceMode")
        return {.kind = ApiKind::no_grad, .device = kNoGrad};
    constexpr std::string_view kNamespace = "at::autocast::";
    if (!name.starts_with(kNamespace)) return {};
    name.remove_prefix(kNamespace.size());
    if (name == "set_enabled") return {.kind = ApiKind::set_enabled, .device = kCuda};
    if (name == "is_enabled") return {.kind = ApiKind::read_enabled, .device = kCuda};
    return accessor(name, "");
}

const AutocastApi::Known& AutocastApi::known(Symbol name) const {
    std::uint32_t& at = memo_[name];
    if (at != 0) return found_[at];
    const Known found = look_up(name.str());
    at = found.kind == ApiKind::none ? 1 : static_cast<std::uint32_t>(found_.size());
    if (at > 1) found_.push_back(found);
    return found_[at];
}

bool AutocastApi::names_api(const Call& call) const { return known(call.name).kind != ApiKind::none; }

ApiCall AutocastApi::classify(const Function& f, const Call& call) const {
    const Known is = known(call.name);
    ApiCall api{.kind = is.kind,
                .ends = false,
                .device = is.device,
                .value = 0,
                .negated = is.negated,
                .manager = is.manager};
    if (is.kind == ApiKind::none) return api;
    // `with torch.set_grad_enabled(x)` makes an object; its __enter__ is classified instead.
    if (is.kind == ApiKind::set_enabled && call.kind == CallKind::constructor) return {};
    if (is.kind == ApiKind::guard || is.kind == ApiKind::exclude || is.kind == ApiKind::no_grad) {
        if (call.kind != CallKind::constructor && call.kind != CallKind::destructor) return {};
        api.ends = call.kind == CallKind::destructor;
    }
    if (is.kind == ApiKind::exclude && !api.ends) {
        bool is_autocast = false;
        const Operand none;
        api.device = excluded_device(f, call.args.empty() ? none : call.args[0], is_autocast);
        if (!is_autocast) return {};
    }
    if (is.device_argument) {
        // Without a device argument, the call is about CUDA.
        const bool setter = is.kind == ApiKind::set_enabled || is.kind == ApiKind::set_dtype;
        const bool has_device = call.args.size() > (setter ? 1u : 0u);
        api.device = has_device ? device_of_constant(call.args[0]) : kCuda;
        api.value = has_device ? 1 : 0;
    }
    return api;
}

bool AutocastApi::runs_in_region(const Function& f) const { return names(config_.functions, f.name.str()); }

}  // namespace mp::lint
