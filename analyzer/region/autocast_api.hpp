#pragma once

// The functions that read and set the autocast state of a thread, recognised by qualified name, and
// the names that the user adds. All regions are derived from them.

#include <cstdint>
#include <string_view>
#include <vector>

#include "analyzer/facts/model.hpp"
#include "analyzer/region/by_symbol.hpp"
#include "analyzer/region/program.hpp"
#include "analyzer/region/python_regions.hpp"

namespace mp::lint {

enum class ApiKind : std::uint8_t {
    none,
    set_enabled,
    read_enabled,
    set_dtype,
    read_dtype,
    exclude,       // a guard that takes autocast out of the dispatcher
    guard,         // a guard from the configuration: opens
    no_grad,       // a guard under which no gradients are recorded
    enter,         // a function from the configuration: opens
    leave,         // a function from the configuration: closes
    enter_python,  // `X.__enter__` of a library's context manager
    exit_python,   // `X.__exit__`: restores the state from before the __enter__ of its receiver
};

struct ApiCall {
    ApiKind kind = ApiKind::none;
    bool ends = false;  // the destructor of a guard
    Device device = kUnknownDevice;
    std::uint32_t value = 0;  // index of the argument that is set
    bool negated = false;     // ... to its opposite
    const PythonManager* manager = nullptr;
};

class AutocastApi {
public:
    explicit AutocastApi(const RegionConfig&);

    ApiCall classify(const Function&, const Call&) const;
    // Checks the name only.
    bool names_api(const Call&) const;
    bool runs_in_region(const Function&) const;  // named in RegionConfig::functions
    DType configured_dtype() const { return config_.dtype; }

private:
    struct Known {
        ApiKind kind = ApiKind::none;
        bool device_argument = false;
        Device device = kUnknownDevice;
        bool negated = false;
        const PythonManager* manager = nullptr;
    };
    // "set_autocast_enabled" takes its device as an argument, "set_autocast_cpu_dtype" names it;
    // "set_cpu_enabled" of C++ has no "autocast_" before the device.
    static Known accessor(std::string_view name, std::string_view before_device);
    Known look_up_python(std::string_view name) const;
    const Known& known(Symbol name) const;
    Known look_up(std::string_view name) const;

    RegionConfig config_;
    PythonManager configured_;  // the context managers of the configuration
    // Filled while linking, on one thread: index in found_ by name; 0: not looked up yet.
    mutable BySymbol<std::uint32_t> memo_;
    mutable std::vector<Known> found_;  // [1] is shared by all names that are not of the API
};

// "AmpGuard" for the constructor "AmpGuard::AmpGuard" and the destructor "AmpGuard::~AmpGuard". Any
// other name is returned unchanged: it is the class already.
std::string_view class_of(std::string_view name);

// The dtype that an argument such as torch::kBFloat16 or at::ScalarType::Half names.
DType dtype_of_constant(const Operand&);

}  // namespace mp::lint
