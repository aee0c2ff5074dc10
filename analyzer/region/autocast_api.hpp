#pragma once

// The functions that read and set the autocast state of a thread, recognised by qualified name, and
// the names that the user adds. Everything else about regions follows from them.

#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "analyzer/facts/model.hpp"
#include "analyzer/region/program.hpp"

namespace mp::lint {

// Index into the devices that have an autocast state of their own; 0 is "not known which".
using Device = std::uint8_t;

inline constexpr std::array<std::string_view, 10> kDeviceNames{
    "", "cuda", "cpu", "xpu", "hpu", "ipu", "xla", "mps", "privateuseone", "other"};
inline constexpr std::size_t kDevices = kDeviceNames.size();
inline constexpr Device kUnknownDevice = 0;
inline constexpr Device kCuda = 1;

// What a region computes in when nobody chose: PyTorch's defaults per device.
DType default_dtype(Device);

enum class ApiKind : std::uint8_t {
    none,
    set_enabled,
    read_enabled,
    set_dtype,
    read_dtype,
    exclude,   // a guard that takes autocast out of the dispatcher
    guard,     // a guard the user named: opens
    enter,     // a function the user named: opens
    leave,     // a function the user named: closes
};

struct ApiCall {
    ApiKind kind = ApiKind::none;
    bool ends = false;  // the destructor of a guard
    Device device = kUnknownDevice;
    std::uint32_t value = 0;  // index of the argument that is set
};

class AutocastApi {
public:
    explicit AutocastApi(const RegionConfig&);

    ApiCall classify(const Function&, const Call&) const;
    // Cheap test by name alone.
    bool names_api(const Call&) const;
    bool runs_in_region(const Function&) const;  // named in RegionConfig::functions
    DType configured_dtype() const { return config_.dtype; }

private:
    struct Known {
        ApiKind kind = ApiKind::none;
        bool device_argument = false;
        Device device = kUnknownDevice;
    };
    Known known(Symbol name) const;
    Known look_up(std::string_view name) const;

    RegionConfig config_;
    mutable std::unordered_map<Symbol, Known> memo_;  // filled while linking, on one thread
};

// "AmpGuard" of the constructor "AmpGuard::AmpGuard" and the destructor "AmpGuard::~AmpGuard"; a
// name without that form is the class already.
std::string_view class_of(std::string_view name);

// The dtype that an argument such as torch::kBFloat16 or at::ScalarType::Half names.
DType dtype_of_constant(const Operand&);

}  // namespace mp::lint
