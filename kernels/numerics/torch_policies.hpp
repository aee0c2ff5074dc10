#pragma once

// The op lists that a run of mp-lint uses: one per device, for one version of torch.

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/numerics/policy.hpp"

namespace mp {

// "2.4", "1.13.1+cu117", "2.5.0a0": only the first two numbers are used. 0.0 means unknown.
struct TorchVersion {
    int major = 0;
    int minor = 0;

    bool known() const { return major > 0; }
    friend auto operator<=>(const TorchVersion&, const TorchVersion&) = default;
};

std::optional<TorchVersion> parse_torch_version(std::string_view text);

// The lists of all devices that have one: "cuda", "cpu", "xpu", "mps", "hpu", "xla"; and of the two kinds
// of region that are not autocast: "hmp" (Habana) and "apex" (apex.amp O1).
class Policies {
public:
    // An empty version selects the newest lists. Each file is a policy in the sectioned format. Its device
    // is its setting `device = cuda`; without the setting it is the default device.
    static Result<Policies> load(std::string_view torch_version, const std::vector<std::string>& files = {},
                                 std::string_view default_device = "cuda");

    // nullptr when the device has no list.
    const Policy* of(std::string_view device) const;
    TorchVersion torch() const { return torch_; }
    // The newest torch that the lists were compared with.
    static TorchVersion newest();
    static const std::vector<std::string_view>& devices();

    void set(std::string_view device, Policy policy);

private:
    std::map<std::string, Policy, std::less<>> by_device_;
    TorchVersion torch_;
};

}  // namespace mp
