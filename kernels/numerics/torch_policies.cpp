#include "kernels/numerics/torch_policies.hpp"

#include <charconv>

namespace mp {
namespace {

bool is_torch_device(std::string_view device) { return device != "hmp" && device != "apex"; }

}  // namespace

std::optional<TorchVersion> parse_torch_version(std::string_view text) {
    TorchVersion v;
    const char* const end = text.data() + text.size();
    const auto first = std::from_chars(text.data(), end, v.major);
    if (first.ec != std::errc{} || first.ptr == end || *first.ptr != '.') return std::nullopt;
    const auto second = std::from_chars(first.ptr + 1, end, v.minor);
    if (second.ec != std::errc{} || v.major < 0 || v.minor < 0) return std::nullopt;
    return v;
}

const std::vector<std::string_view>& Policies::devices() {
    static const std::vector<std::string_view> all{"cuda", "cpu", "xpu", "mps", "hpu", "xla", "hmp", "apex"};
    return all;
}

Result<Policies> Policies::load(std::string_view torch_version, const std::vector<std::string>& files,
                                std::string_view default_device) {
    Policies policies;
    for (const std::string_view device : devices()) {
        Result<Policy> policy = is_torch_device(device) ? Policy::for_torch(device, torch_version)
                                : device == "hmp"       ? Policy::built_in("hmp")
                                                        : Policy::built_in("apex-o1");
        if (policy) {
            policies.by_device_.insert_or_assign(std::string(device), *std::move(policy));
            continue;
        }
        // Every version has lists for these two; lists for other devices were added later.
        if (device == "cuda" || device == "cpu") return policy.error();
    }
    if (const auto version = parse_torch_version(torch_version)) policies.torch_ = *version;
    for (const std::string& path : files) {
        Result<Policy> policy = Policy::from_file(path);
        if (!policy) return policy.error();
        const std::string device(policy->device().empty() ? default_device : policy->device());
        policies.by_device_.insert_or_assign(device, *std::move(policy));
    }
    return policies;
}

const Policy* Policies::of(std::string_view device) const {
    const auto found = by_device_.find(device);
    return found == by_device_.end() ? nullptr : &found->second;
}

void Policies::set(std::string_view device, Policy policy) {
    by_device_.insert_or_assign(std::string(device), std::move(policy));
}

}  // namespace mp
